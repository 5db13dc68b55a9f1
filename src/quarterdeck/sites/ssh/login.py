"""Logging in to a host, and the exact reason of a failure: each needs another correction."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncssh
from typing_extensions import override

from quarterdeck.errors import PreconditionFailed, Unavailable
from quarterdeck.sites.ssh import wire
from quarterdeck.sites.ssh.configuration import (
    ClientConfiguration,
    client_configuration,
    default_identities,
    known_algorithms_first,
    known_hosts_of,
)
from quarterdeck.sites.ssh.hosts import Login

#: Seconds until sshd must have sent its version; a host whose sshd has sent it is alive, and may take this long to log
#: the user in (reverse DNS look-ups and PAM modules of the host take their time).
CONNECTING = 15.0
LOGGING_IN = 60.0


@dataclass(eq=False)
class LoginClient(asyncssh.SSHClient):
    """The messages of sshd to this client."""

    unknown: list[tuple[str, str, int, asyncssh.SSHKey]] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    tunnel: asyncssh.SSHClientConnection | None = None
    _connection: asyncssh.SSHClientConnection | None = None

    @property
    def greeted(self) -> bool:
        """Whether sshd has sent its version: the host is running."""
        return self._connection is not None and bool(self._connection.get_extra_info("server_version"))

    @override
    def connection_made(self, conn: asyncssh.SSHClientConnection) -> None:
        """See asyncssh."""
        self._connection = conn

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncssh. A jump host is used for this connection alone."""
        if self.tunnel is not None:
            self.tunnel.abort()

    @override
    def debug_msg_received(self, msg: str, lang: str, always_display: bool) -> None:
        """See asyncssh."""
        self.remarks.append(msg)

    @override
    def validate_host_public_key(self, host: str, addr: str, port: int, key: asyncssh.SSHKey) -> bool:
        """See asyncssh: no person could be asked."""
        self.unknown.append((host, addr, port, key))
        return False


async def logged_in(login: Login, client: LoginClient | None = None) -> asyncssh.SSHClientConnection:
    """A connection to a host, whose ``client`` receives sshd's messages. Raises Unavailable when it cannot be reached,
    PreconditionFailed when it is not the known host, or refuses the login.
    """
    client = client or LoginClient()
    configuration = await client_configuration(login)
    for jump in configuration.jumps:
        client.tunnel = await _jumped(jump, client.tunnel)
    try:
        return await _connected(login, configuration, client)
    except BaseException:
        if client.tunnel is not None:
            client.tunnel.abort()
        raise


async def _jumped(jump: Login, tunnel: asyncssh.SSHClientConnection | None) -> asyncssh.SSHClientConnection:
    """A connection to a jump host; the jumps of its own configuration do not count (ssh_config(5), ProxyJump)."""
    try:
        return await _connected(jump, await client_configuration(jump), LoginClient(tunnel=tunnel))
    except (Unavailable, PreconditionFailed) as error:
        if tunnel is not None:
            tunnel.abort()
        raise type(error)(error.doing, f"jump host {jump.host}: {error.seen}", error.next_step) from None


async def _connected(
    login: Login, configuration: ClientConfiguration, client: LoginClient
) -> asyncssh.SSHClientConnection:
    options: dict[str, Any] = {**configuration.options, "tunnel": client.tunnel or ()}
    options["known_hosts"] = known = await asyncio.to_thread(known_hosts_of, configuration.known_hosts)
    if algorithms := options.get("server_host_key_algs"):
        name = options.get("host_key_alias") or configuration.host
        options["server_host_key_algs"] = known_algorithms_first(algorithms, known, name, options["port"])
    if keys := await asyncio.to_thread(_readable_keys, configuration.identities):
        options["client_keys"] = keys
    connecting = asyncio.create_task(_dialed(configuration.host, client, options))
    try:
        await asyncio.wait((connecting,), timeout=CONNECTING)
        if not connecting.done() and client.greeted:
            await asyncio.wait((connecting,), timeout=LOGGING_IN - CONNECTING)
        if not connecting.done():
            raise _too_slow(client)
        return connecting.result()
    except asyncssh.HostKeyNotVerifiable as error:
        raise await asyncio.to_thread(_strange, login, configuration, client, str(error)) from None
    except asyncssh.PermissionDenied as error:
        raise await asyncio.to_thread(_denied, login, configuration, str(error)) from None
    except (asyncssh.KeyEncryptionError, asyncssh.KeyImportError) as error:
        raise _locked(login.identity or "the key", str(error)) from None
    except (asyncssh.Error, OSError, ValueError) as error:
        raise _unreached(login, error) from None
    finally:
        await _given_up(connecting)


async def _dialed(host: str, client: LoginClient, options: Mapping[str, Any]) -> asyncssh.SSHClientConnection:
    return await asyncssh.connect(
        host,
        client_factory=lambda: client,
        keepalive_interval=wire.HEARTBEAT,
        keepalive_count_max=3,
        login_timeout=LOGGING_IN,
        **options,
    )


async def _given_up(connecting: asyncio.Task[asyncssh.SSHClientConnection]) -> None:
    if not connecting.done():
        connecting.cancel()
        await asyncio.gather(connecting, return_exceptions=True)


def _too_slow(client: LoginClient) -> Unavailable:
    if client.greeted:
        seen = f"its sshd answers, and has not logged the user in within {LOGGING_IN:.0f} s"
        return Unavailable("logging in", seen, "find out why logins take so long there (UseDNS, PAM)")
    return Unavailable(
        "connecting",
        f"no answer within {CONNECTING:.0f} s",
        "check that it is on, and whether a firewall filters its port",
    )


def _readable_keys(files: Sequence[Path]) -> list[asyncssh.SSHKeyPair]:
    """The keys that need no passphrase: ssh skips the other ones, and files that do not exist."""
    found: list[asyncssh.SSHKeyPair] = []
    for file in files:
        try:
            found += asyncssh.load_keypairs([str(file)])
        except (asyncssh.KeyEncryptionError, asyncssh.KeyImportError, OSError):
            continue
    return found


def _unreached(login: Login, error: Exception) -> Unavailable:
    doing = "connecting"
    if isinstance(error, socket.gaierror):
        return Unavailable(
            doing, f"the name {login.host} is not known", "make sure that it resolves, or is in ~/.ssh/config"
        )
    if isinstance(error, ConnectionRefusedError):
        return Unavailable(doing, "it refuses the connection", "check that sshd runs there, and on which port")
    if isinstance(error, TimeoutError | asyncssh.ConnectionLost) and not str(error).strip():
        return Unavailable(
            doing,
            f"no answer within {CONNECTING:.0f} s",
            "check that it is on, and whether a firewall filters its port",
        )
    if isinstance(error, OSError) and error.errno is not None and error.errno > 0:
        seen = os.strerror(error.errno)  # not what asyncio makes of it
    else:
        seen = str(error) or type(error).__name__
    if "timeout" in seen.lower() or "timed out" in seen.lower():
        return Unavailable(
            doing,
            f"no answer within {CONNECTING:.0f} s",
            "check that it is on, and whether a firewall filters its port",
        )
    return Unavailable(doing, seen, f"check the output of 'ssh {login.host}'")


def _strange(login: Login, configuration: ClientConfiguration, client: LoginClient, seen: str) -> PreconditionFailed:
    """The error for a host whose key is not the known one, or is unknown."""
    doing = "connecting"
    if not client.unknown:
        return PreconditionFailed(doing, seen, f"check the output of 'ssh {login.host}'")
    host, addr, port, key = client.unknown[-1]
    print_of = key.get_fingerprint()
    named = host if port == 22 else f"[{host}]:{port}"  # as known_hosts writes it
    first = configuration.known_hosts[0] if configuration.known_hosts else Path("~/.ssh/known_hosts")
    for file in configuration.known_hosts:
        if _knows(file, host, addr, port):
            where = "" if file == Path("~/.ssh/known_hosts").expanduser() else f"-f {file} "
            return PreconditionFailed(
                doing,
                f"its host key has CHANGED: it presents {print_of}, and {file} has another one",
                f"if it was reinstalled, run 'ssh-keygen {where}-R {named}' and compare the new one with its "
                "console; otherwise another machine intercepts the connection",
            )
    seen = f"its host key is not known: it presents {print_of}"
    if configuration.known_hosts_command:
        seen += f"; KnownHostsCommand ({configuration.known_hosts_command}) is set, and quarterdeck does not run it"
        return PreconditionFailed(doing, seen, f"compare it with its console, and add it to {first}")
    step = f"compare it with its console, and log in once by 'ssh {login.host}', or add it to {first}"
    return PreconditionFailed(doing, seen, step)


def _knows(file: Path, host: str, addr: str, port: int) -> bool:
    """Whether a file of known hosts has any key of a host."""
    keys, _, revoked, *_ = known_hosts_of((file,)).match(host, addr, None if port == 22 else port)
    return bool(keys or revoked)


def _denied(login: Login, configuration: ClientConfiguration, answer: str) -> PreconditionFailed:
    locked = [str(each) for each in _own_keys(configuration) if _is_locked(each)]
    agent = bool(os.environ.get("SSH_AUTH_SOCK"))
    if locked and not agent:
        return _locked(locked[0], "no agent has it")
    user = login.user or configuration.options.get("username") or ""
    owner = f"user {user}" if user else "the user"
    step = f"check that 'ssh {login.host}' prompts for nothing; it must accept the agent, or a key without a passphrase"
    return PreconditionFailed("logging in", f"no key of {owner} is accepted ({answer})", step)


def _locked(key: str, why: str) -> PreconditionFailed:
    return PreconditionFailed("logging in", f"{key} has a passphrase: {why}", "add it to an ssh agent ('ssh-add')")


def _own_keys(configuration: ClientConfiguration) -> Iterator[Path]:
    yield from configuration.identities or default_identities()


def _is_locked(file: Path) -> bool:
    """Whether a key's file needs a passphrase."""
    if not file.is_file():
        return False
    try:
        asyncssh.read_private_key(str(file))
    except (asyncssh.KeyEncryptionError, asyncssh.KeyImportError, OSError) as error:
        return "passphrase" in str(error).lower()
    return False
