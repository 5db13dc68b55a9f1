"""Hosts whose login shell, sshd or sudo is not as a fresh installation has it: what works works, and what does not is
named by its true reason, in the words of the host.
"""

from __future__ import annotations

import asyncio
import re
import subprocess
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import asyncssh
import pytest
from support.golden import Golden

from quarterdeck.errors import PreconditionFailed, QuarterdeckError, Unavailable
from quarterdeck.sites.ssh import connections, host_survey, shells
from quarterdeck.sites.ssh.bootstrap import bootstrap_script
from quarterdeck.sites.ssh.connections import HostConnection
from quarterdeck.sites.ssh.hosts import Login
from quarterdeck.sites.ssh.login import LoginClient
from quarterdeck.sites.ssh.shells import HostLink, command_of
from quarterdeck.sites.ssh.wire import script

Process = asyncssh.SSHServerProcess[bytes]
Shell = Callable[[Process], Awaitable[None]]
HELLO = b"quarterdeck 1 100.0 gzip\n"
MARKER = re.compile(rb"quarterdeck-[0-9a-f]{16}")
CHECKS = Path(connections.__file__).parent / "check"
NOISE = b"welcome\r\nno newline" + b"y" * 3_000_000


class Sshd(asyncssh.SSHServer):
    """An sshd that grants so many sessions at a time on one connection, and takes its time for a login."""

    def __init__(self, host: FakeHost) -> None:
        self._host = host
        self._sessions = 0

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._host.connections += 1
        if self._host.remark:
            conn.send_debug(self._host.remark)

    async def begin_auth(self, username: str) -> bool:
        await asyncio.sleep(self._host.login_s)
        return False

    def session_requested(self) -> asyncssh.SSHServerProcess[bytes] | bool:
        if self._sessions >= self._host.most_sessions:
            return False
        self._sessions += 1
        return asyncssh.SSHServerProcess(self._run, None, 3, False)

    async def _run(self, process: Process) -> None:
        try:
            await self._host.shell(process)
        finally:
            self._sessions -= 1


class FakeHost:
    """A host's sshd within this process. ``shell``: what it does with a command."""

    def __init__(self) -> None:
        self.shell: Shell = runs
        self.most_sessions = 10
        self.login_s = 0.0
        self.remark = ""
        self.connections = 0
        self.login = Login(host="127.0.0.1")

    async def start(self, home: Path) -> asyncssh.SSHAcceptor:
        key = asyncssh.generate_private_key("ssh-ed25519")
        acceptor = await asyncssh.listen(
            "127.0.0.1", 0, server_factory=lambda: Sshd(self), server_host_keys=[key], encoding=None
        )
        port = acceptor.get_port()
        (home / ".ssh").mkdir(mode=0o700, exist_ok=True)
        (home / ".ssh/known_hosts").write_text(f"[127.0.0.1]:{port} {key.export_public_key().decode()}")
        self.login = Login(host="127.0.0.1", port=port, user="deck")
        return acceptor


@pytest.fixture
async def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[FakeHost]:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    made = FakeHost()
    async with await made.start(tmp_path):
        yield made


def marker_of(process: Process) -> bytes:
    """What the script prints first."""
    assert process.command is not None
    printed = subprocess.run(
        ["/bin/sh", "-c", process.command], input=b"", capture_output=True, check=False, env={"PATH": "/bin"}
    )
    found = MARKER.search(printed.stdout)
    assert found is not None
    return found[0]


async def runs(process: Process) -> None:
    """Prints a lot, and runs the command, as a login shell does; something that it left behind prints later."""
    assert process.command is not None
    process.stdout.write(NOISE)
    process.stderr.write(b"setlocale: cannot change locale\n" * 20_000)
    argv = ("/bin/sh", "-c", process.command)
    shell = await asyncio.create_subprocess_exec(
        *argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert shell.stdout is not None
    for _ in range(2):  # an empty line, and the marker: whoever has seen it sends the standard input
        process.stdout.write(await shell.stdout.readuntil(b"\n"))
    out, errors = await shell.communicate(await process.stdin.read())
    process.stdout.write(out)
    process.stderr.write(errors)
    process.exit(shell.returncode or 0)


def answers(*before: bytes, pause_s: float = 0.0) -> Shell:
    """A shell that runs the host's script, of which something else prints the lines ``before`` each answer."""

    async def serve(process: Process) -> None:
        process.stdout.write(b"noise\n" + marker_of(process) + b"\n")
        await asyncio.sleep(pause_s)
        process.stdout.write(b"Last login: never\n" + HELLO)
        while line := await process.stdin.readline():
            for each in before:
                process.stdout.write(each + b"\n")
            process.stdout.write(line.split(b" ", 1)[0] + b" 0 100.0 well\n")

    return serve


def ends(code: int, out: bytes = b"", errors: bytes = b"") -> Shell:
    """A login shell, or a forced command, that runs nothing of ours."""

    async def serve(process: Process) -> None:
        process.stdout.write(out)
        process.stderr.write(errors)
        process.exit(code)

    return serve


async def hangs(process: Process) -> None:
    """A login shell that waits for somebody."""
    process.stdout.write(b"Choose a project [1-9]: ")
    await process.stdin.read()
    process.exit(0)


@pytest.fixture
async def connection(host: FakeHost) -> AsyncIterator[HostConnection]:
    made = HostConnection(host.login, "test")
    yield made
    await made.close()


async def asked(connection: HostConnection, deadline: float = 5.0) -> bytes:
    return await connection.ask("ping", doing="asking", deadline=deadline)


async def refusal(connection: HostConnection) -> QuarterdeckError:
    with pytest.raises(QuarterdeckError) as caught:
        await asked(connection)
    return caught.value


async def test_what_a_login_shell_prints_is_not_taken_for_an_answer(host: FakeHost) -> None:
    link = await HostLink.made(host.login)
    try:
        text = 'cat; printf "%s," "$@" "$LC_ALL"; echo well >&2; exit 3'
        words = ("a b", "it's", "new\nline", "x!y", "$HOME", "")
        done = await link.run(text, words, doing="trying", deadline=20, body=b"body ")
        assert done == shells.ScriptResult(code=3, stdout="body a b,it's,new\nline,x!y,$HOME,,C,", stderr="well")
    finally:
        link.abort()


def test_a_command_has_nothing_that_a_login_shell_treats_specially() -> None:
    command = command_of("echo 'it''s'!\n" * 100, ("a!b\n",), "marker")
    before, _, pieces = command.partition("' sh ")
    assert not {*"!\n\\"} & {*command}
    assert before.count("'") == 1
    assert all(re.fullmatch(r"[A-Za-z0-9+/]+=*", each) and len(each) <= 400 for each in pieces.split())


async def test_lines_that_are_no_answers_are_passed_over(host: FakeHost, connection: HostConnection) -> None:
    host.shell = answers(b"still here", b"7 0 nothing", b"999 0 1.0 of nobody", b"")
    assert await asked(connection) == b"well"


async def test_a_host_that_says_only_other_things_is_quoted(
    host: FakeHost, connection: HostConnection, golden: Golden
) -> None:
    async def babbles(process: Process) -> None:
        process.stdout.write(b"\n" + marker_of(process) + b"\n" + HELLO)
        while await process.stdin.readline():
            process.stdout.write(b"disk full\n")

    host.shell = babbles
    with golden.raises(Unavailable):
        await asked(connection, 0.5)


@pytest.mark.parametrize(
    "shell",
    [
        ends(1),
        ends(1, b"This account is currently not available.\n"),
        ends(0, b"go away\n"),
        ends(127, errors=b"tcsh: exec: not found\n"),
    ],
)
async def test_a_shell_that_runs_nothing_is_named_with_what_it_said(
    host: FakeHost, connection: HostConnection, shell: Shell, golden: Golden
) -> None:
    host.shell = shell
    error = await refusal(connection)
    assert isinstance(error, PreconditionFailed)
    golden(error.seen)
    golden(error.next_step)


async def test_a_forced_command_is_named_by_the_line_that_has_it(host: FakeHost, golden: Golden) -> None:
    host.shell = ends(0, b"backup done\n")
    client = LoginClient(remarks=["/home/deck/.ssh/authorized_keys:1: key options: command user-rc"])
    link = await HostLink.made(host.login, client)
    try:
        with golden.raises(PreconditionFailed):
            await link.start("true")
    finally:
        link.abort()


async def test_a_shell_that_does_not_come_to_an_end_is_named(
    host: FakeHost, connection: HostConnection, monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    monkeypatch.setattr(shells, "STARTING", 0.5)
    host.shell = hangs
    error = await refusal(connection)
    assert isinstance(error, Unavailable)
    golden(error.seen)


async def test_a_shell_that_prints_without_end_is_named(
    host: FakeHost, connection: HostConnection, monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    monkeypatch.setattr(shells, "MOST_NOISE", 2**20)
    host.shell = ends(0, NOISE)  # it leaves no process behind that outlives the test
    error = await refusal(connection)
    golden(error.seen)
    assert "~/.bashrc" in error.next_step


async def test_one_session_at_a_time_suffices(host: FakeHost) -> None:
    host.most_sessions = 1
    link = await HostLink.made(host.login)
    try:
        host.shell = answers()
        first, second = await link.start("true"), await link.start("true")
        assert host.connections == 2
        first.close()
        second.close()
    finally:
        link.abort()


async def test_an_sshd_that_grants_no_session_is_named_and_once_it_does_the_same_connection_serves(
    host: FakeHost, connection: HostConnection, monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    monkeypatch.setattr(connections, "_PAUSE", 0.0)
    host.most_sessions, host.shell = 0, answers()
    with golden.raises(PreconditionFailed):
        await asked(connection)
    host.most_sessions = 1
    assert await asked(connection) == b"well"


class Tries:
    """Somebody who asks a host each half second of a clock that stands still otherwise. ``at``: when the host was
    tried, in seconds.
    """

    def __init__(self, host: FakeHost, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
        self.at: list[float] = []
        self._now = 1000.0
        monkeypatch.setattr(connections, "AGAIN", 20.0)
        monkeypatch.setattr(connections, "time", SimpleNamespace(monotonic=lambda: self._now))
        self._host, self._shell = host, shell
        host.shell = self._counted

    async def _counted(self, process: Process) -> None:
        self.at.append(self._now)
        await self._shell(process)

    async def ask_for(self, seconds: int, connection: HostConnection) -> list[float]:
        """Seconds from each try to the next one, rounded up to the half second of the question."""
        self.at.clear()
        for _ in range(2 * seconds):
            with suppress(QuarterdeckError):
                await asked(connection)
            self._now += 0.5
        return [later - earlier for earlier, later in pairwise(self.at)]


async def sudo_refuses(process: Process) -> None:
    """The user is logged in, and may not become root."""
    marker = marker_of(process)
    process.stdout.write(marker + b"\n")
    process.stderr.write(marker + b"\nsudo: a password is required\n")
    process.exit(1)


async def is_cut(process: Process) -> None:
    """The network is lost."""
    process.channel.get_connection().abort()


async def test_after_refusals_a_host_is_tried_less_and_less_often_and_served_once_it_does(
    host: FakeHost, connection: HostConnection, monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    tries = Tries(host, sudo_refuses, monkeypatch)
    assert await tries.ask_for(75, connection) == [1, 2, 4, 8, 16, 20, 20]
    with golden.raises(PreconditionFailed):
        await asked(connection)
    host.shell = answers()
    await tries.ask_for(20, connection)
    assert await asked(connection) == b"well"


async def test_a_host_whose_connection_is_lost_is_tried_each_second(
    host: FakeHost, connection: HostConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = Tries(host, is_cut, monkeypatch)
    assert await tries.ask_for(6, connection) == [1, 1, 1, 1, 1]


@pytest.mark.parametrize("slow", ["login", "sudo"])
async def test_a_host_that_is_slow_to_let_the_user_in_is_waited_for_and_named(
    host: FakeHost, connection: HostConnection, monkeypatch: pytest.MonkeyPatch, slow: str
) -> None:
    monkeypatch.setattr(connections, "PATIENCE", 0.3)
    monkeypatch.setattr(connections, "SLOW", 0.5)
    host.login_s = 1.0 if slow == "login" else 0.0
    host.shell = answers(pause_s=1.0 if slow == "sudo" else 0.0)
    assert await asked(connection) == b"well"
    assert connection.slowness == ("logging in took 1 s" if slow == "login" else "sudo took 1 s")


async def test_a_host_that_is_slower_than_anybody_waits_is_said_to_be_alive_and_to_do_what(
    host: FakeHost, connection: HostConnection, monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    monkeypatch.setattr(connections, "PATIENCE", 0.3)
    monkeypatch.setattr(connections, "PATIENCE_ALIVE", 0.4)
    host.shell = answers(pause_s=1.5)
    with golden.raises(Unavailable):
        await asked(connection)
    monkeypatch.setattr(connections, "AGAIN", 5.0)
    assert await asked(connection) == b"well", "it went on meanwhile"


async def test_a_port_that_accepts_and_says_nothing_is_not_waited_for_longer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(connections, "PATIENCE", 0.3)
    server = await asyncio.start_server(_says_nothing, "127.0.0.1", 0)
    async with server:
        login = Login(host="127.0.0.1", port=server.sockets[0].getsockname()[1], user="deck")
        connection, began = HostConnection(login, "test"), time.monotonic()
        with golden.raises(Unavailable):
            await asked(connection)
        assert time.monotonic() - began < 3
        await connection.close()


async def _says_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionResetError):
        await reader.read()
    writer.close()


@pytest.mark.parametrize(
    ("output", "kind"),
    [
        (b"owned theirs\n", PreconditionFailed),
        (b"other 99 abc\n", PreconditionFailed),
        (b"other 1\n", Unavailable),
        (b"quarterdeck 1 0,5 gzip\n", Unavailable),
        (b"", PreconditionFailed),
    ],
)
async def test_an_answer_that_is_no_session_is_shown_as_the_host_gave_it(
    host: FakeHost, connection: HostConnection, output: bytes, kind: type[QuarterdeckError], golden: Golden
) -> None:
    async def serve(process: Process) -> None:
        marker = marker_of(process)
        process.stdout.write(marker + b"\n" + output)
        process.stderr.write(b"noise\n" + marker + b"\nsha256sum: Permission denied\n")
        process.exit(1)

    host.shell = serve
    error = await refusal(connection)
    assert isinstance(error, kind)
    golden(error.seen)


SUDO = """\
#!/bin/sh
shift
case $1 in /usr/local/*) echo "sudo: $1: command not found" >&2; exit 1 ;; esac
exec env -i PATH="$PATH" "$@"
"""


@pytest.mark.parametrize("runs_it", [host_survey._TRY_RIGHTS, host_survey._RUN])
def test_pieces_of_the_check_have_the_locale_also_behind_a_sudo_that_resets_the_environment(
    tmp_path: Path, runs_it: str
) -> None:
    for name, text in {"sudo": SUDO, "id": "#!/bin/sh\necho 1000\n"}.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    piece = f'{host_survey._piece()}\nprintenv LC_ALL; printf "%s\\n" "${{OUTSIDE-reset}}"'
    done = subprocess.run(
        ["/bin/sh", "-c", runs_it, "sh", piece, "sudo"],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin", "LC_ALL": "POSIX", "OUTSIDE": "kept"},
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert done.stdout.splitlines()[-2:] == ["C", "reset"]


def test_every_script_for_hosts_sets_the_locale_before_it_runs_anything() -> None:
    scripts = {name: host_survey._piece(name) for name in (each.stem for each in CHECKS.glob("*.sh"))}
    scripts["host"] = script().decode()
    scripts["bootstrap"] = bootstrap_script(user="deck", keys=(), script="true\n")
    scripts["installation"] = connections._PUT.partition("/bin/sh -c '")[2]
    scripts["command"] = decoded(command_of("true", (), "marker"))
    assert len(scripts) >= 9
    for name, text in scripts.items():
        commands = [line for line in text.splitlines() if line and not line.startswith("#")]
        first = next(line for line in commands if not re.match(r"(set|umask) [^;&|]*$", line))
        assert re.match(r"export LC_ALL=C\b|LC_ALL=C; export LC_ALL\b", first), name


def decoded(command: str) -> str:
    """The script of a command, as the host unpacks it."""
    shown = subprocess.run(
        ["/bin/sh", "-c", 'printf %s "$@" | base64 -d', "sh", *command.partition("' sh ")[2].split()],
        capture_output=True,
        check=True,
    )
    return shown.stdout.decode()
