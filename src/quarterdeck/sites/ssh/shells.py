"""Running scripts on a host, whatever its login shell is, and whatever it prints besides.

sshd passes every command to the login shell of the user, after ``/etc/ssh/sshrc`` and the shell's own files have run.
They may print something, end, or run another command (``ForceCommand``, ``command=`` in authorized_keys). So the
command has no character that any shell treats specially, and output counts from a marker on that the script prints. A
host that never prints the marker did not run the script, and its output is the reason.
"""

from __future__ import annotations

import asyncio
import base64
import secrets
import shlex
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import asyncssh
from asyncssh.constants import OPEN_REQUEST_SESSION_FAILED

from quarterdeck.errors import PreconditionFailed, TimedOut, Unavailable
from quarterdeck.sites.ssh.hosts import Login
from quarterdeck.sites.ssh.login import LoginClient, logged_in

#: Seconds until the login shell must have run the script.
STARTING = 60.0
#: Bytes that may come before the marker, and in one line.
MOST_NOISE = 2**24
_MOST_LINE = 2**20
_PIECE = 2**16
#: Bytes of a host's output that are kept for people, and characters that they are shown.
_KEPT = 8192
_SHOWN = 400
#: Characters of a word of the command: csh has limits.
_WORD = 400


def command_of(script: str, words: Sequence[str], marker: str) -> str:
    """A command that makes /bin/sh print the marker, and run a script with these words, in any login shell.

    csh replaces ``!`` and ends at newlines also within quotes, fish reads backslashes there: the script is in base64.
    """
    mark = f"printf '\\n%s\\n' {marker}"
    text = f"LC_ALL=C; export LC_ALL; {mark}; {mark} >&2\nset -- {shlex.join(words)}\n{script}"
    packed = base64.b64encode(text.encode()).decode()
    pieces = " ".join(packed[at : at + _WORD] for at in range(0, len(packed), _WORD))
    return f"""exec /bin/sh -c 'eval "$(printf %s "$@" | base64 -d)"' sh {pieces}"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptResult:
    """A script that has ended: its exit code, and its output. Never without a code (see ``HostLink.run``)."""

    code: int
    stdout: str
    stderr: str


@dataclass(eq=False)
class Shell:
    """A script that runs on a host. ``user``: its user, for people."""

    process: asyncssh.SSHClientProcess[bytes]
    marker: bytes
    user: str
    forced: str = ""
    _ahead: bytearray = field(default_factory=bytearray)
    _noise: bytearray = field(default_factory=bytearray)
    _errors: bytearray = field(default_factory=bytearray)
    _draining: asyncio.Task[None] = field(init=False)

    def __post_init__(self) -> None:
        # Both streams share the channel's window: leaving one of them unread stops the other.
        self._draining = asyncio.create_task(self._drain())

    async def started(self) -> None:
        """Wait until the script runs. Raises PreconditionFailed when the host runs something else, Unavailable when it
        does not begin in time, or the connection ends.
        """
        doing = "starting a shell"
        try:
            async with asyncio.timeout(STARTING):
                if await self._marked():
                    return
                await self.process.wait_closed()
                await asyncio.wait((self._draining,))
        except TimeoutError:
            self._keep_noise(self._ahead)
            seen = f"user {self.user} is logged in, but the shell has not run a command within {STARTING:.0f} s"
            raise Unavailable(doing, f"{seen}{self.last_output()}", "find out what its login shell waits for") from None
        code = self.process.returncode
        if was_cut(code):
            raise Unavailable(doing, f"the session was cut before it ran a command{self.last_output()}")
        if self.forced:
            seen = (
                f"sshd runs a forced command for this key in place of quarterdeck's ({self.forced}){self.last_output()}"
            )
            raise PreconditionFailed(doing, seen, "use a key whose line in authorized_keys has no command=")
        seen = f"the login shell of user {self.user}, or a ForceCommand, ended with {code} and ran no command"
        step = (
            f"see 'getent passwd {self.user}' and ForceCommand in sshd_config there; the user needs a shell such as "
            "/bin/sh"
        )
        raise PreconditionFailed(doing, f"{seen}{self.last_output()}", step)

    async def _marked(self) -> bool:
        """Read up to the marker; whether it came."""
        marker, read = self.marker + b"\n", 0
        while piece := await self.process.stdout.read(_PIECE):
            read += len(piece)
            self._ahead += piece
            before, found, after = bytes(self._ahead).partition(marker)
            if found:
                self._keep_noise(before)
                self._ahead = bytearray(after)
                return True
            kept = len(marker) - 1
            self._keep_noise(self._ahead[:-kept])
            del self._ahead[:-kept]
            if read > MOST_NOISE:
                seen = f"user {self.user} is logged in, but more than {MOST_NOISE >> 20} MiB come before a command runs"
                raise PreconditionFailed(
                    "starting a shell",
                    f"{seen}{self.last_output()}",
                    "see what ~/.bashrc and /etc/ssh/sshrc print there",
                )
        self._keep_noise(self._ahead)
        self._ahead.clear()
        return False

    def _keep_noise(self, noise: bytes | bytearray) -> None:
        self._noise += noise
        del self._noise[:-_KEPT]

    async def _drain(self) -> None:
        with suppress(asyncssh.Error, OSError):
            while piece := await self.process.stderr.read(_PIECE):
                self._errors += piece
                _, found, after = bytes(self._errors).rpartition(self.marker)
                if found:
                    self._errors = bytearray(self.marker + after)
                del self._errors[: max(0, len(self._errors) - _KEPT)]

    def last_output(self) -> str:
        """Its last output besides the answers of the script, as the end of a sentence."""
        return last_words(self._noise.decode(errors="replace"), self._errors.decode(errors="replace"))

    async def readuntil(self, separator: bytes) -> bytes:
        """Up to and with a separator. A line that is too long is dropped: no script prints one.

        Raises asyncio.IncompleteReadError at the end.
        """
        while True:
            line, found, after = bytes(self._ahead).partition(separator)
            if found:
                self._ahead = bytearray(after)
                return line + found
            if len(self._ahead) > _MOST_LINE:
                self._ahead.clear()
            piece = await self.process.stdout.read(_PIECE)
            if not piece:
                raise asyncio.IncompleteReadError(bytes(self._ahead), None)
            self._ahead += piece

    async def rest(self) -> bytes:
        """All its output from here on, until it ends."""
        pieces = [bytes(self._ahead)]
        self._ahead.clear()
        while piece := await self.process.stdout.read(_PIECE):
            pieces.append(piece)
        await self.process.wait_closed()
        return b"".join(pieces)

    async def complaint(self) -> str:
        """Its standard error until it ended, without that of the login shell."""
        await self.process.wait_closed()
        await asyncio.wait((self._draining,))
        return self._errors.decode(errors="replace").removeprefix(self.marker.decode()).strip()

    @property
    def code(self) -> int | None:
        """Its exit code; None or negative where it was cut (asyncssh: returncode)."""
        return self.process.returncode

    def write(self, data: bytes) -> None:
        """Write to its standard input."""
        self.process.stdin.write(data)

    def close(self) -> None:
        """End it."""
        self.process.close()


def was_cut(code: int | None) -> bool:
    """Whether a program did not end by itself: the connection did, or a signal ended it."""
    return code is None or code < 0


def last_words(*texts: str) -> str:
    """The last output of a host, as the end of a sentence about its action."""
    for text in texts:
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        if lines:
            return f"; its output: {printable('; '.join(lines[-3:]))}"
    return "; it printed nothing"


def printable(text: str) -> str:
    """The end of a host's output, in characters that a terminal shows."""
    return "".join(each if each.isprintable() else "?" for each in text[-_SHOWN:])


@dataclass(eq=False)
class HostLink:
    """The link to a host: a connection, and another one whenever its sshd grants no further session on one
    (``MaxSessions``).
    """

    login: Login
    client: LoginClient
    connection: asyncssh.SSHClientConnection
    _further: list[asyncssh.SSHClientConnection] = field(default_factory=list)

    @classmethod
    async def made(cls, login: Login, client: LoginClient | None = None) -> HostLink:
        """Log in. Raises as ``logged_in``."""
        client = client or LoginClient()
        return cls(login, client, await logged_in(login, client))

    async def start(self, script: str, words: Sequence[str] = ()) -> Shell:
        """A script that has begun to run. Raises as ``Shell.started``, Unavailable when the connection breaks,
        PreconditionFailed when sshd grants no session.
        """
        marker = f"quarterdeck-{secrets.token_hex(8)}"
        process = await self._opened(command_of(script, words, marker))
        user = str(self.connection.get_extra_info("username"))
        shell = Shell(process, marker.encode(), user, _forced(self.client.remarks))
        try:
            await shell.started()
        except (asyncssh.Error, OSError) as error:
            shell.close()
            raise broke("starting a shell", error) from None
        except BaseException:
            shell.close()
            raise
        return shell

    async def _opened(self, command: str) -> asyncssh.SSHClientProcess[bytes]:
        doing = "opening a session"
        try:
            try:
                return await self.connection.create_process(command, encoding=None)
            except asyncssh.ChannelOpenError as error:
                if error.code == OPEN_REQUEST_SESSION_FAILED:
                    raise
            further = await logged_in(self.login)
            self._further.append(further)
            return await further.create_process(command, encoding=None)
        except asyncssh.ChannelOpenError as error:
            step = "see MaxSessions and PermitTTY in sshd_config there: it takes one session"
            raise PreconditionFailed(
                doing, f"its sshd lets the user in and refuses a session ({error.reason})", step
            ) from None
        except (asyncssh.Error, OSError) as error:
            raise broke(doing, error) from None

    async def run(
        self, script: str, words: Sequence[str] = (), *, doing: str, deadline: float, body: bytes = b""
    ) -> ScriptResult:
        """Run a script to its end; ``body`` is its standard input.

        Raises as ``start``, TimedOut after ``deadline`` seconds.
        """
        shell = await self.start(script, words)
        try:
            async with asyncio.timeout(deadline):
                with suppress(
                    asyncssh.Error, OSError
                ):  # a script that ended without reading it reports the reason by its exit code
                    shell.write(body)
                    shell.process.stdin.write_eof()
                stdout = await shell.rest()
                stderr = await shell.complaint()
        except TimeoutError:
            raise TimedOut(
                doing, f"not done within {deadline:.0f} s{shell.last_output()}", "find out why it is slow"
            ) from None
        except (asyncssh.Error, OSError) as error:
            raise broke(doing, error) from None
        finally:
            shell.close()
        if (code := shell.code) is None or was_cut(code):
            raise Unavailable(doing, "the session was cut", "try again")
        return ScriptResult(code=code, stdout=stdout.decode(errors="replace"), stderr=stderr)

    def abort(self) -> None:
        """Abort all connections."""
        for each in (*self._further, self.connection):
            each.abort()


def _forced(remarks: Sequence[str]) -> str:
    """The line of authorized_keys that has a forced command, as sshd reports it ("" for none): it lists the options of
    the accepted key (``auth_log_authopts`` of OpenSSH's auth.c).
    """
    for each in remarks:
        where, found, options = each.partition(": key options:")
        if found and "command" in options.split():
            return f"command= in {where}"
    return ""


def broke(doing: str, error: Exception) -> Unavailable:
    """A connection that broke."""
    return Unavailable(doing, f"the connection broke ({str(error) or type(error).__name__})")
