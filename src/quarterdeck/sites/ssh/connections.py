"""Connections to hosts: one for each login of a process, kept, and made anew when it broke."""

from __future__ import annotations

import asyncio
import shlex
import time
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import PurePosixPath

import asyncssh

from quarterdeck.errors import PreconditionFailed, QuarterdeckError, Unavailable
from quarterdeck.model.units import Fence
from quarterdeck.sites.ssh import wire
from quarterdeck.sites.ssh.hosts import Login
from quarterdeck.sites.ssh.reaching import CONNECTING, logged_in
from quarterdeck.sites.ssh.script import script, script_digest
from quarterdeck.sites.ssh.session import Session

#: Where it is on a host, as root's.
INSTALLED = "/usr/local/lib/quarterdeck/host"
#: Seconds for which whoever asks waits for a connection, and for which where the last try came to nothing.
PATIENCE = 4.0
AGAIN = 0.3
#: Seconds between two tries.
_PAUSE = 1.0

_AS_ROOT = 'if [ "$(id -u)" = 0 ]; then s=; else s="sudo -n"; fi; exec $s '
_PUT = (
    f"/bin/sh -c 'umask 022; mkdir -p {PurePosixPath(INSTALLED).parent} && cat > {INSTALLED}.new-$$ &&"
    f" chmod 755 {INSTALLED}.new-$$ && mv -f {INSTALLED}.new-$$ {INSTALLED}'"
)


@dataclass(eq=False)
class Connection:
    """The connection to one host, made when it is first needed. ``owner``: whose the host is to be."""

    login: Login
    owner: str
    _session: Session | None = None
    _transport: asyncssh.SSHClientConnection | None = None
    _connecting: asyncio.Task[Session] | None = None
    _failed: QuarterdeckError | None = None
    _tried: float = 0.0
    packing: str = "gzip"
    #: What is known of the host since this connection was made: it may be another one the next time.
    known: set[str] = field(default_factory=set)
    locks: defaultdict[str, asyncio.Lock] = field(default_factory=lambda: defaultdict(asyncio.Lock))

    @property
    def silent(self) -> bool:
        """Whether nothing was heard since somebody waited in vain."""
        return self._failed is not None or (self._session is not None and self._session.silent)

    @property
    def name(self) -> str:
        """The host, for people."""
        return f"host {self.login.host}"

    async def ask(
        self,
        *words: str,
        doing: str,
        deadline: float,
        fence: Fence | None = None,
        body: bytes = b"",
        cancels: bool = False,
    ) -> bytes:
        """See ``Session.ask``. Raises besides what keeps a connection from being made."""
        session = await self._connected(doing)
        return await session.ask(*words, doing=doing, deadline=deadline, fence=fence, body=body, cancels=cancels)

    async def _connected(self, doing: str) -> Session:
        if self._session is not None and not self._session.ended:
            return self._session
        now = time.monotonic()
        tried = self._failed is not None and now - self._tried < _PAUSE
        if self._connecting is None or (self._connecting.done() and not tried):
            self._tried = now
            self._connecting = asyncio.create_task(self._connect())
            self._connecting.add_done_callback(_looked_at)
        # It goes on when nobody waits for it: a handshake over a long way takes several round trips.
        left = 0.0 if self._failed is not None else PATIENCE - (now - self._tried)
        await asyncio.wait((self._connecting,), timeout=max(AGAIN, left))
        if not self._connecting.done():
            seen = self._failed.seen if self._failed is not None else f"no connection within {PATIENCE:g} s"
            raise Unavailable(doing, f"{self.name}: {seen}")
        if self._connecting.cancelled():
            raise Unavailable(doing, f"the connection to {self.name} was closed")
        if (error := self._connecting.exception()) is None:
            return self._connecting.result()
        if isinstance(error, QuarterdeckError):
            raise type(error)(doing, f"{self.name}: {error.seen}", error.next_step)
        raise error

    async def _connect(self) -> Session:
        try:
            async with asyncio.timeout(CONNECTING):
                await self._drop()
                self.known.clear()
                self._transport = await logged_in(self.login)
                self._session = await self._served(self._transport)
        except TimeoutError:
            self._failed = Unavailable("connecting", f"no answer within {CONNECTING:.0f} s")
            raise self._failed from None
        except QuarterdeckError as error:
            self._failed = error
            raise
        except (asyncssh.Error, OSError) as error:
            self._failed = _broke("connecting", error)
            raise self._failed from None
        except ValueError as error:
            self._failed = Unavailable("connecting", f"it said what makes no sense ({error})")
            raise self._failed from None
        self._failed = None
        return self._session

    async def _served(self, transport: asyncssh.SSHClientConnection) -> Session:
        digest = await asyncio.to_thread(script_digest)
        session = await self._begun(transport, digest)
        if session is None:
            await self._install(transport)
            session = await self._begun(transport, digest)
        if session is None:
            raise Unavailable("starting its script", "it was replaced meanwhile: another quarterdeck uses this host")
        return session

    async def _begun(self, transport: asyncssh.SSHClientConnection, digest: str) -> Session | None:
        """A session; None where the host has no script, or an older one."""
        command = f"{_AS_ROOT}{INSTALLED} serve {digest} {self.owner} $SSH_CONNECTION"
        process: asyncssh.SSHClientProcess[bytes] = await transport.create_process(
            f"exec /bin/sh -c {shlex.quote(command)}", encoding=None
        )
        said = (await process.stdout.readline()).decode(errors="replace").split()
        match said:
            case ["quarterdeck", _, uptime, packing]:
                self.packing = packing
                return Session(self.name, process.stdout, process.stdin.write, process.close, float(uptime))
            case ["other", protocol, _] if int(protocol) > wire.PROTOCOL:
                seen = "a newer quarterdeck has set it up"
                raise PreconditionFailed("starting its script", seen, "use that one, or a newer one")
            case ["other", *_]:
                return None
            case ["owned", owner]:
                seen = f"it belongs to another home of quarterdeck ({owner})"
                raise PreconditionFailed("starting its script", seen, "forget it there, or see docs/ssh.md")
            case ["no-systemd"]:
                raise PreconditionFailed("starting its script", "systemd does not run it", "use a host with systemd")
            case ["unprepared", *why]:
                seen = f"its folders and users cannot be made: {' '.join(why)}"
                raise Unavailable("starting its script", seen, "see 'quarterdeck site check'")
        complaint = (await process.stderr.read()).decode(errors="replace").strip()
        await process.wait()
        if _was_cut(process.returncode):
            raise Unavailable("starting its script", complaint or "the session was cut before it said anything")
        if process.returncode in (126, 127) or "command not found" in complaint or "No such file" in complaint:
            return None
        raise PreconditionFailed(
            "becoming root", complaint or f"the session ended at once ({process.returncode})", _SUDO
        )

    async def _install(self, transport: asyncssh.SSHClientConnection) -> None:
        done = await transport.run(
            f"exec /bin/sh -c {shlex.quote(_AS_ROOT + _PUT)}",
            input=await asyncio.to_thread(script),
            encoding=None,
        )
        if _was_cut(done.returncode):
            raise Unavailable("putting its script there", "the session was cut")
        if done.returncode != 0:
            complaint = _text(done.stderr)
            raise PreconditionFailed("putting its script there", complaint or "it failed without a word", _SUDO)

    async def allow(self, doing: str, words: tuple[str, ...]) -> None:
        """Let volumes be kept below these paths of the host, and its edge have these addresses."""
        await self._connected(doing)
        assert self._transport is not None
        command = f"{_AS_ROOT}{INSTALLED} allow {' '.join(map(shlex.quote, words))}"
        try:
            done = await self._transport.run(f"exec /bin/sh -c {shlex.quote(command)}", encoding=None)
        except (asyncssh.Error, OSError) as error:
            raise _broke(doing, error, f"{self.name}: ") from None
        if _was_cut(done.returncode):
            raise Unavailable(doing, f"{self.name}: the session was cut", "do it again")
        if done.returncode != 0:
            complaint = _text(done.stderr)
            raise PreconditionFailed(doing, f"{self.name}: {complaint}", _SUDO)

    async def _drop(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None
        if self._transport is not None:
            self._transport.abort()
            self._transport = None

    async def close(self) -> None:
        """End it; it is made again when it is needed again."""
        if self._connecting is not None:
            self._connecting.cancel()
            with suppress(asyncio.CancelledError, QuarterdeckError):
                await self._connecting
            self._connecting = None
        await self._drop()


def _looked_at(task: asyncio.Task[Session]) -> None:
    """Whoever asks next is told, which may be nobody."""
    if not task.cancelled():
        task.exception()


def _was_cut(code: int | None) -> bool:
    """Whether a program did not end by itself: the connection did, or a signal ended it (asyncssh: returncode)."""
    return code is None or code < 0


def _broke(doing: str, error: Exception, who: str = "") -> Unavailable:
    return Unavailable(doing, f"{who}the connection broke ({str(error) or type(error).__name__})")


def _text(said: bytes | str | None) -> str:
    return (said.decode(errors="replace") if isinstance(said, bytes) else said or "").strip()


_SUDO = "let the user run sudo without a password, or see 'quarterdeck site bootstrap'"


class Hosts:
    """The connections of one process. ``owner``: a name for whoever keeps planes on these hosts; a host that says that
    it is another one's is refused.
    """

    def __init__(self, owner: str) -> None:
        self._owner = owner
        self._connections: dict[Login, Connection] = {}

    def at(self, login: Login) -> Connection:
        """The connection to a host. No IO."""
        if login not in self._connections:
            self._connections[login] = Connection(login, self._owner)
        return self._connections[login]

    async def close(self) -> None:
        """End all of them."""
        await asyncio.gather(*(each.close() for each in self._connections.values()))
