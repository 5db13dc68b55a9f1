"""Connections that break while they are made: what is told, and that the next try has a connection again."""

from __future__ import annotations

import base64
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import asyncssh
import pytest
from support.golden import Golden

from quarterdeck.errors import Unavailable
from quarterdeck.sites.ssh.connections import HostConnection
from quarterdeck.sites.ssh.hosts import Login

Serve = Callable[[asyncssh.SSHServerProcess[bytes]], Awaitable[None]]

HELLO = b"quarterdeck 1 100.0 gzip\n"


def script_of(process: asyncssh.SSHServerProcess[bytes]) -> str:
    """The script that a command carries (see ``command_of``)."""
    assert process.command is not None
    return base64.b64decode("".join(process.command.partition("' sh ")[2].split())).decode()


class Host:
    """A host's sshd, within this process. ``serves``: what it does with the sessions that come, the first of them
    first; the last does for all that follow.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.serves: list[Serve] = []
        #: What its login shell prints before it runs a command, and whether it runs none.
        self.noise = b""
        self.shell_refuses = False
        #: The scripts that it was given.
        self.commands: list[str] = []
        #: What its sshd is built with, besides.
        self.options: dict[str, Any] = {}
        self.login = Login(host="127.0.0.1", user="root", identity=str(folder / "key"))

    async def start(self) -> asyncssh.SSHAcceptor:
        """It listens at a port of its own, and is known to who logs in."""
        own, user = (asyncssh.generate_private_key("ssh-ed25519") for _ in range(2))
        user.write_private_key(self.folder / "key")
        user.write_public_key(self.folder / "authorized")
        acceptor = await asyncssh.listen(
            "127.0.0.1",
            0,
            server_host_keys=[own],
            authorized_client_keys=str(self.folder / "authorized"),
            process_factory=self._serve,
            encoding=None,
            **self.options,
        )
        port = acceptor.get_port()
        known = self.folder / ".ssh" / "known_hosts"
        known.parent.mkdir()
        known.write_text(f"[127.0.0.1]:{port} {own.export_public_key().decode()}")
        self.login = Login(host="127.0.0.1", port=port, user="root", identity=str(self.folder / "key"))
        return acceptor

    async def _serve(self, process: asyncssh.SSHServerProcess[bytes]) -> None:
        self.commands.append(command := script_of(process))
        if not self.shell_refuses:
            marker = re.findall(r"quarterdeck-[0-9a-f]{16}", command)[0].encode()
            process.stdout.write(self.noise + b"\n" + marker + b"\n")
            process.stderr.write(self.noise + b"\n" + marker + b"\n")
            await process.stdout.drain()
        serve = self.serves.pop(0) if len(self.serves) > 1 else self.serves[0]
        await serve(process)


@pytest.fixture
async def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Host]:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    made = Host(tmp_path)
    acceptor = await made.start()
    yield made
    acceptor.close()
    await acceptor.wait_closed()


async def breaks(process: asyncssh.SSHServerProcess[bytes]) -> None:
    """The connection ends before the session has said anything."""
    process.channel.get_connection().abort()


async def is_killed(process: asyncssh.SSHServerProcess[bytes]) -> None:
    """What serves the session is killed."""
    process.exit_with_signal("KILL")


async def says_half(process: asyncssh.SSHServerProcess[bytes]) -> None:
    """The connection ends in the middle of the first word."""
    process.stdout.write(HELLO[:9])
    await process.stdout.drain()
    process.channel.get_connection().abort()


async def babbles(process: asyncssh.SSHServerProcess[bytes]) -> None:
    """It says what no script says."""
    process.stdout.write(HELLO.replace(b"100.0", b"long"))
    process.exit(0)


async def answers(process: asyncssh.SSHServerProcess[bytes]) -> None:
    """As a host's script does."""
    process.stdout.write(HELLO)
    while line := await process.stdin.readline():
        process.stdout.write(line.split(b" ", 1)[0] + b" 0 100.0 well\n")


async def has_nothing_allowed(process: asyncssh.SSHServerProcess[bytes]) -> None:
    """As a host's script does on which root has yet to allow a folder."""
    process.stdout.write(HELLO)
    while line := await process.stdin.readline():
        number, *_, verb, _ = [*line.split(), b""][:7]
        process.stdout.write(number + b" 0 100.0 " + (b"/srv" if verb == b"allowed" else b"well") + b"\n")


async def is_old(process: asyncssh.SSHServerProcess[bytes]) -> None:
    """It has the script of an older quarterdeck."""
    process.stdout.write(b"other 0 100.0\n")
    process.exit(0)


async def asked(connection: HostConnection) -> bytes:
    return await connection.ask("ping", doing="asking", deadline=5)


@pytest.mark.parametrize(
    "serves", [[breaks], [is_killed], [says_half], [babbles], [is_old, breaks], [is_old, is_killed]]
)
async def test_a_connection_that_breaks_while_it_is_made_is_an_outage_and_the_next_one_serves(
    host: Host, monkeypatch: pytest.MonkeyPatch, serves: list[Serve], golden: Golden
) -> None:
    monkeypatch.setattr("quarterdeck.sites.ssh.connections._PAUSE", 0.0)
    host.serves = [*serves]
    connection = HostConnection(host.login, "test")
    try:
        with golden.raises(Unavailable):
            await asked(connection)
        host.serves = [answers]
        assert await asked(connection) == b"well"
    finally:
        await connection.close()


@pytest.mark.parametrize("serve", [breaks, is_killed])
async def test_a_connection_that_breaks_while_a_path_is_allowed_is_an_outage(
    host: Host, serve: Serve, golden: Golden
) -> None:
    host.serves = [has_nothing_allowed, serve]
    connection = HostConnection(host.login, "test")
    try:
        with golden.raises(Unavailable):
            await connection.allow("allowing", ("/srv",))
    finally:
        await connection.close()
