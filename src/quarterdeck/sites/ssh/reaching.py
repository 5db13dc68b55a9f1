"""Logging in to a host, and what exactly keeps one from it: each failure is another thing to mend."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import asyncssh

from quarterdeck.errors import PreconditionFailed, Unavailable
from quarterdeck.sites.ssh import wire
from quarterdeck.sites.ssh.hosts import Login

#: Seconds for a connection with its login.
CONNECTING = 15.0
#: Where ssh looks for keys of hosts, and for its own.
_KNOWN = ("~/.ssh/known_hosts", "/etc/ssh/ssh_known_hosts")
_KEYS = ("id_ed25519", "id_ecdsa", "id_rsa", "id_ed25519_sk", "id_ecdsa_sk")


@dataclass
class _Seen(asyncssh.SSHClient):
    """Remembers the key that a host has and that is not known to be its own."""

    unknown: list[tuple[str, str, int, asyncssh.SSHKey]] = field(default_factory=list)

    def validate_host_public_key(self, host: str, addr: str, port: int, key: asyncssh.SSHKey) -> bool:
        """Nobody is there to be asked."""
        self.unknown.append((host, addr, port, key))
        return False


async def logged_in(login: Login) -> asyncssh.SSHClientConnection:
    """A connection to a host. Raises Unavailable when it cannot be reached, PreconditionFailed when it is not the host
    that is known, or lets nobody in.
    """
    seen = _Seen()
    try:
        return await asyncssh.connect(
            login.host,
            port=login.port or (),
            username=login.user or (),
            client_keys=[login.identity] if login.identity else (),
            client_factory=lambda: seen,
            keepalive_interval=wire.HEARTBEAT,
            keepalive_count_max=3,
            connect_timeout=CONNECTING,
        )
    except asyncssh.HostKeyNotVerifiable as error:
        raise await asyncio.to_thread(_strange, login, seen, str(error)) from None
    except asyncssh.PermissionDenied as error:
        raise await asyncio.to_thread(_denied, login, str(error)) from None
    except (asyncssh.KeyEncryptionError, asyncssh.KeyImportError) as error:
        raise _locked(login.identity or "the key", str(error)) from None
    except (asyncssh.Error, OSError, ValueError) as error:
        raise _unreached(login, error) from None


def _unreached(login: Login, error: Exception) -> Unavailable:
    doing = "connecting"
    if isinstance(error, socket.gaierror):
        return Unavailable(doing, f"the name {login.host} is not known", "see that it resolves, or is in ~/.ssh/config")
    if isinstance(error, ConnectionRefusedError):
        return Unavailable(doing, "it refuses the connection", "see that sshd runs there, and at which port")
    if isinstance(error, TimeoutError | asyncssh.ConnectionLost) and not str(error).strip():
        return Unavailable(
            doing, f"no answer within {CONNECTING:.0f} s", "see that it is on, and what filters its port"
        )
    if isinstance(error, OSError) and error.errno is not None and error.errno > 0:
        seen = os.strerror(error.errno)  # not what asyncio makes of it
    else:
        seen = str(error) or type(error).__name__
    if "timeout" in seen.lower() or "timed out" in seen.lower():
        return Unavailable(
            doing, f"no answer within {CONNECTING:.0f} s", "see that it is on, and what filters its port"
        )
    return Unavailable(doing, seen, f"see what 'ssh {login.host}' says")


def _strange(login: Login, seen: _Seen, said: str) -> PreconditionFailed:
    """A host whose key is not the one that is known, or of which none is."""
    doing = "connecting"
    if not seen.unknown:
        return PreconditionFailed(doing, said, f"see what 'ssh {login.host}' says")
    host, addr, port, key = seen.unknown[-1]
    print_of = key.get_fingerprint()
    named = host if port == 22 else f"[{host}]:{port}"  # as known_hosts writes it
    if any(_known_keys(Path(file).expanduser(), host, addr, port) for file in _KNOWN):
        return PreconditionFailed(
            doing,
            f"its host key has CHANGED: it shows {print_of}",
            f"if it was installed anew, run 'ssh-keygen -R {named}' and compare the new one with its console; else"
            " somebody stands in between",
        )
    return PreconditionFailed(
        doing,
        f"its host key is not known: it shows {print_of}",
        f"compare it with its console, and log in once by 'ssh {login.host}', or add it to ~/.ssh/known_hosts",
    )


def _known_keys(file: Path, host: str, addr: str, port: int) -> bool:
    """Whether a file of known hosts has any key of a host."""
    if not file.is_file():
        return False
    at = None if port == 22 else port
    try:
        keys, *_ = asyncssh.match_known_hosts(str(file), host, addr, at)
    except ValueError:  # a line that cannot be read, which ssh passes over
        return False
    return bool(keys)


def _denied(login: Login, said: str) -> PreconditionFailed:
    locked = [str(each) for each in _own_keys(login) if _is_locked(each)]
    agent = bool(os.environ.get("SSH_AUTH_SOCK"))
    if locked and not agent:
        return _locked(locked[0], "there is no agent that has it")
    who = f"user {login.user}" if login.user else "the user"
    step = f"see that 'ssh {login.host}' asks for nothing; the agent, or a key without a passphrase, must be let in"
    return PreconditionFailed("logging in", f"no key of {who} is accepted ({said})", step)


def _locked(key: str, why: str) -> PreconditionFailed:
    return PreconditionFailed("logging in", f"{key} has a passphrase: {why}", "add it to an ssh agent ('ssh-add')")


def _own_keys(login: Login) -> Iterator[Path]:
    if login.identity:
        yield Path(login.identity).expanduser()
        return
    for name in _KEYS:
        yield Path("~/.ssh").expanduser() / name


def _is_locked(file: Path) -> bool:
    """Whether a key's file asks for a passphrase."""
    if not file.is_file():
        return False
    try:
        asyncssh.read_private_key(str(file))
    except (asyncssh.KeyEncryptionError, asyncssh.KeyImportError, OSError) as error:
        return "passphrase" in str(error).lower()
    return False
