"""Connections to hosts: one for each login of a process, kept, and replaced when it breaks."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import PurePosixPath

import asyncssh

from quarterdeck.errors import PreconditionFailed, QuarterdeckError, TimedOut, Unavailable
from quarterdeck.model.units import Fence
from quarterdeck.sites.ssh import wire
from quarterdeck.sites.ssh.hosts import Login
from quarterdeck.sites.ssh.login import LoginClient
from quarterdeck.sites.ssh.session import Session
from quarterdeck.sites.ssh.shells import HostLink, Shell, broke, last_words, printable, was_cut
from quarterdeck.sites.ssh.wire import script, script_digest

#: The script's path on a host, owned by root.
INSTALLED = "/usr/local/lib/quarterdeck/host"
#: Seconds for which a caller waits for a connection; for one to a host whose sshd answers, and which is only slow to
#: log the user in; and after a failed attempt.
PATIENCE = 4.0
PATIENCE_ALIVE = 30.0
AGAIN = 0.3
#: Seconds for sudo, which may wait for the resolver of its host several times.
BECOMING_ROOT = 60.0
#: Seconds beyond which a host is reported to be slow to log the user in.
SLOW = 3.0
#: Seconds between two attempts. After a refusal they double, up to the longest: hosts log each attempt of a login and
#: of sudo, and may lock the account; and a correction must take effect within half a minute.
_PAUSE = 1.0
_LONGEST_PAUSE = 20.0
_INSTALLING = 60.0
_ALLOWING = 15.0

AS_ROOT = 'if [ "$(id -u)" = 0 ]; then s=; else s="sudo -n"; fi\n'
_PUT = (
    f"exec $s /bin/sh -c 'LC_ALL=C; export LC_ALL; umask 022; mkdir -p {PurePosixPath(INSTALLED).parent}"
    f" && cat > {INSTALLED}.new-$$ &&"
    f" chmod 755 {INSTALLED}.new-$$ && mv -f {INSTALLED}.new-$$ {INSTALLED}'"
)
#: The first word of the script's answer.
_GREETINGS = {"quarterdeck", "other", "owned", "no-systemd", "unprepared"}


@dataclass(eq=False)
class HostConnection:
    """The connection to one host, opened when it is first needed. ``owner``: the expected owner of the host."""

    login: Login
    owner: str
    _session: Session | None = None
    _link: HostLink | None = None
    _client: LoginClient = field(default_factory=LoginClient)
    _connecting: asyncio.Task[Session] | None = None
    _failed: QuarterdeckError | None = None
    _tried: float = 0.0
    #: Seconds between the start of the last failed attempt and the next one.
    _pause: float = 0.0
    _stage: str = ""
    _took: dict[str, float] = field(default_factory=dict)
    packing: str = "gzip"
    #: Facts of the host since this connection was opened: it may be another one the next time.
    known: set[str] = field(default_factory=set)
    locks: defaultdict[str, asyncio.Lock] = field(default_factory=lambda: defaultdict(asyncio.Lock))

    @property
    def silent(self) -> bool:
        """Whether nothing was received since a caller timed out."""
        return self._failed is not None or (self._session is not None and self._session.silent)

    @property
    def slowness(self) -> str:
        """What took long during the login ("" if nothing did), for people."""
        slow = [f"{stage} took {took:.0f} s" for stage, took in self._took.items() if took > SLOW]
        return ", ".join(slow)

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
        """See ``Session.ask``. Also raises the errors of opening a connection."""
        session = await self._connected(doing)
        return await session.ask(*words, doing=doing, deadline=deadline, fence=fence, body=body, cancels=cancels)

    async def _connected(self, doing: str) -> Session:
        if self._session is not None and not self._session.ended:
            return self._session
        now = time.monotonic()
        tried = self._failed is not None and now - self._tried < self._pause
        if self._connecting is None or (self._connecting.done() and not tried):
            self._tried = now
            self._connecting = asyncio.create_task(self._connect())
            self._connecting.add_done_callback(_looked_at)
        # It continues without waiting callers: a handshake over a long distance takes several round trips.
        await self._waited_for(self._connecting, now - self._tried)
        if not self._connecting.done():
            raise Unavailable(doing, f"{self.name}: {self._waiting_for(time.monotonic() - self._tried)}")
        if self._connecting.cancelled():
            raise Unavailable(doing, f"the connection to {self.name} was closed")
        if (error := self._connecting.exception()) is None:
            return self._connecting.result()
        if isinstance(error, QuarterdeckError):
            raise type(error)(doing, f"{self.name}: {error.seen}", error.next_step)
        raise error

    async def _waited_for(self, connecting: asyncio.Task[Session], tried_for: float) -> None:
        """A host whose sshd answers is alive, and waited for longer; the first time, with a limit."""
        if self._failed is not None:
            await asyncio.wait((connecting,), timeout=AGAIN)
            return
        await asyncio.wait((connecting,), timeout=max(AGAIN, PATIENCE - tried_for))
        if not connecting.done() and self._client.greeted:
            await asyncio.wait((connecting,), timeout=max(AGAIN, PATIENCE_ALIVE - max(PATIENCE, tried_for)))

    def _waiting_for(self, tried_for: float) -> str:
        if self._client.greeted:
            return f"its sshd answers, and {self._stage} has taken {tried_for:.0f} s so far"
        return self._failed.seen if self._failed is not None else f"no connection within {PATIENCE:g} s"

    async def _connect(self) -> Session:
        try:
            await self._drop()
            self.known.clear()
            self._took = {}
            self._client = LoginClient()
            with self._timed("logging in"):
                self._link = await HostLink.made(self.login, self._client)
            self._session = await self._served(self._link)
        except QuarterdeckError as error:
            self._failed, refused = error, isinstance(error, PreconditionFailed)
            self._pause = min(max(2 * self._pause, _PAUSE), _LONGEST_PAUSE) if refused else _PAUSE
            await self._drop()
            raise
        except BaseException:
            await self._drop()
            raise
        self._failed, self._pause = None, 0.0
        return self._session

    @contextmanager
    def _timed(self, stage: str) -> Iterator[None]:
        self._stage, began = stage, time.monotonic()
        try:
            yield
        finally:
            self._took[stage] = self._took.get(stage, 0.0) + time.monotonic() - began

    async def _served(self, link: HostLink) -> Session:
        digest = await asyncio.to_thread(script_digest)
        session = await self._begun(link, digest)
        if session is None:
            await self._install(link)
            session = await self._begun(link, digest)
        if session is None:
            raise Unavailable(
                "starting its script", "it was replaced in the meantime: another quarterdeck uses this host"
            )
        return session

    async def _begun(self, link: HostLink, digest: str) -> Session | None:
        """A session; None where the host has no script, or an older one."""
        with self._timed("its login shell"):
            shell = await link.start(f'{AS_ROOT}exec $s {INSTALLED} serve "$@" $SSH_CONNECTION', (digest, self.owner))
        try:
            with self._timed("sudo" if self.login.user != "root" else "its script"):
                words = await _greeting(shell)
            if words[:1] == ["quarterdeck"]:
                return self._session_of(words, shell)
            await (_refused(words, shell) if words else _ended_early(shell))
        except BaseException:
            shell.close()
            raise
        return None

    def _session_of(self, words: Sequence[str], shell: Shell) -> Session:
        try:
            _, _, uptime, self.packing = words
            since_boot = float(uptime)
        except ValueError:
            raise _unread(words) from None
        return Session(self.name, shell, shell.write, shell.close, since_boot)

    async def _install(self, link: HostLink) -> None:
        doing = "copying its script there"
        with self._timed("installing its script"):
            done = await link.run(
                AS_ROOT + _PUT, doing=doing, deadline=_INSTALLING, body=await asyncio.to_thread(script)
            )
        if done.code != 0:
            raise PreconditionFailed(doing, f"it ended with {done.code}{last_words(done.stderr, done.stdout)}", _SUDO)

    async def allow(self, doing: str, words: tuple[str, ...]) -> None:
        """Allow volumes below these paths of the host, and these addresses of its edge."""
        answer = await self.ask("allowed", *words, doing=doing, deadline=_ALLOWING)
        missing = answer.decode(errors="replace").split()
        if not missing:
            return
        assert self._link is not None
        command = f'{AS_ROOT}exec $s {INSTALLED} allow "$@"'
        try:
            done = await self._link.run(command, missing, doing=doing, deadline=BECOMING_ROOT)
        except QuarterdeckError as error:
            raise type(error)(doing, f"{self.name}: {error.seen}", error.next_step) from None
        if done.code != 0:
            seen = f"{self.name}: {', '.join(missing)} cannot be allowed there{last_words(done.stderr, done.stdout)}"
            raise PreconditionFailed(doing, seen, f"have root run '{INSTALLED} allow {' '.join(missing)}' there")

    async def _drop(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None
        if self._link is not None:
            self._link.abort()
            self._link = None

    async def close(self) -> None:
        """Close it; it is opened again when it is needed again."""
        if self._connecting is not None:
            self._connecting.cancel()
            with suppress(asyncio.CancelledError, QuarterdeckError):
                await self._connecting
            self._connecting = None
        await self._drop()


async def _greeting(shell: Shell) -> list[str]:
    """The first words of the script; [] if it ended without any. PAM modules of sudo may print something before."""
    heard = b""
    try:
        async with asyncio.timeout(BECOMING_ROOT):
            while True:
                line = await shell.readuntil(b"\n")
                words = line.decode(errors="replace").split()
                if words and words[0] in _GREETINGS:
                    return words
                heard = line
    except TimeoutError:
        seen = f"nothing within {BECOMING_ROOT:.0f} s{last_words(heard.decode(errors='replace'))}"
        step = "find out why sudo is slow there: 'sudo -n true' (often the host cannot resolve its own name)"
        raise TimedOut("becoming root", seen, step) from None
    except asyncio.IncompleteReadError:
        return []
    except (asyncssh.Error, OSError) as error:
        raise broke("becoming root", error) from None


async def _refused(words: Sequence[str], shell: Shell) -> None:
    """Judge the script's answer to a refused session; returns where it is an older script, which has ended."""
    doing = "starting its script"
    match words:
        case ["other", protocol, _] if protocol.isdecimal():
            if int(protocol) > wire.PROTOCOL:
                seen = "a newer quarterdeck has set it up"
                raise PreconditionFailed(doing, seen, "use that version, or a newer one")
            await shell.complaint()  # sshd may grant no further session before this one has ended
        case ["owned", owner]:
            seen = f"it belongs to another home of quarterdeck ({printable(owner)})"
            raise PreconditionFailed(doing, seen, "forget it there, or see docs/how-to/ssh.md")
        case ["no-systemd"]:
            raise PreconditionFailed(doing, "systemd does not run it", "use a host with systemd")
        case ["unprepared", *why]:
            seen = f"its folders and users cannot be made: {printable(' '.join(why))}"
            raise Unavailable(doing, seen, "see 'quarterdeck site check'")
        case _:
            error = _unread(words)
            raise Unavailable(error.doing, f"{error.seen}{last_words(await shell.complaint())}")


def _unread(words: Sequence[str]) -> Unavailable:
    return Unavailable("starting its script", f"its answer cannot be read: {printable(' '.join(words))}")


async def _ended_early(shell: Shell) -> None:
    """Judge a session that ended before the script printed anything: returns where the host has none."""
    complaint = await shell.complaint()
    if was_cut(shell.code):
        raise Unavailable("starting its script", complaint or "the session was cut before it printed anything")
    if shell.code in (126, 127) or "command not found" in complaint or "No such file" in complaint:
        return
    raise PreconditionFailed("becoming root", f"it ended with {shell.code}{last_words(complaint)}", _SUDO)


def _looked_at(task: asyncio.Task[Session]) -> None:
    """The next caller, if any, gets the error."""
    if not task.cancelled():
        task.exception()


_SUDO = "let the user run sudo without a password, or see 'quarterdeck site bootstrap'"


class HostConnections:
    """The connections of one process. ``owner``: the id of the home that manages planes on these hosts; a host that
    reports another owner is refused.
    """

    def __init__(self, owner: str) -> None:
        self._owner = owner
        self._connections: dict[Login, HostConnection] = {}

    def at(self, login: Login) -> HostConnection:
        """The connection to a host. No IO."""
        if login not in self._connections:
            self._connections[login] = HostConnection(login, self._owner)
        return self._connections[login]

    async def close(self) -> None:
        """Close all of them."""
        await asyncio.gather(*(each.close() for each in self._connections.values()))
