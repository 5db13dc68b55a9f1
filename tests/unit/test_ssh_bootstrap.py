"""What root runs on a host to set it up, and what keeps one from logging in."""

from __future__ import annotations

import errno
import socket
import subprocess
from pathlib import Path

import asyncssh
import pytest
from support.cli_lab import Cli
from support.golden import Golden

from quarterdeck.app.site.hosts import bootstrap_script
from quarterdeck.errors import InvalidInput, PreconditionFailed, Unavailable
from quarterdeck.sites.ssh.hosts import Login
from quarterdeck.sites.ssh.login import _unreached, logged_in
from quarterdeck.sites.ssh.wire import script

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ0 ann@desk"
INVALID = 2


def test_the_user_may_run_one_program_and_the_key_does_nothing_else() -> None:
    text = bootstrap_script(user="quarterdeck", keys=[f"{KEY}\n"], paths=("/data",))
    assert "quarterdeck ALL=(root) NOPASSWD: /usr/local/lib/quarterdeck/host serve *\n" in text
    assert f"\nrestrict {KEY}\n" in text
    assert "/usr/local/lib/quarterdeck/host allow /data\n" in text
    assert "visudo -cqf" in text
    assert subprocess.run(("sh", "-n"), input=text, text=True, check=False).returncode == 0


def test_a_host_that_may_be_probed_from_lets_that_key_make_connections() -> None:
    text = bootstrap_script(user="quarterdeck", keys=[KEY], probe=True)
    assert f"\nrestrict,port-forwarding {KEY}\n" in text


def test_the_script_that_it_puts_there_is_the_one_that_is_asked_for() -> None:
    text = bootstrap_script(user="quarterdeck", keys=[KEY])
    _, _, rest = text.partition("cat > /usr/local/lib/quarterdeck/host.new << 'END-OF-QUARTERDECK'\n")
    assert rest.partition("END-OF-QUARTERDECK\n")[0].encode() == script()


@pytest.mark.parametrize("key", ["", "-----BEGIN OPENSSH PRIVATE KEY-----", "ssh-ed25519", f"{KEY}\nnothing"])
def test_what_is_no_public_key_is_refused(key: str, golden: Golden) -> None:
    with golden.raises(InvalidInput):
        bootstrap_script(user="quarterdeck", keys=[key])


def test_bad_input_is_one_line(cli: Cli, monkeypatch: pytest.MonkeyPatch, golden: Golden) -> None:
    monkeypatch.setenv("HOME", str(cli.folder))
    golden(cli.refused("site", "bootstrap", "192.0.2.1", code=INVALID).err)
    key = cli.folder / "id.pub"
    key.write_text(KEY)
    argv = ("site", "bootstrap", "192.0.2.1", "--key", str(key))
    golden(cli.refused(*argv, "--user", "a b", code=INVALID).err)
    golden(cli.refused(*argv, "--apply", code=4).err)
    assert cli(*argv).out.startswith("#!/bin/sh\n")
    assert f"\nrestrict,port-forwarding {KEY}\n" in cli(*argv, "--allow-probe").out


def test_a_check_names_a_site_or_an_inventory(cli: Cli, golden: Golden) -> None:
    golden(cli.refused("site", "check", code=INVALID).err)
    golden(cli.refused("site", "check", "east", "--inventory", "-", code=INVALID).err)
    golden(cli("site", "check", "east").out)
    golden(cli.refused("site", "check", "north", code=3).err)


class Sshd(asyncssh.SSHServer):
    """Lets nobody in."""

    def begin_auth(self, username: str) -> bool:
        return True


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / ".ssh").mkdir(mode=0o700)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    return tmp_path / ".ssh"


async def refusal(login: Login) -> Unavailable | PreconditionFailed:
    with pytest.raises((Unavailable, PreconditionFailed)) as caught:
        await logged_in(login)
    return caught.value


async def test_each_reason_why_nobody_gets_in_is_told_apart(home: Path, golden: Golden) -> None:
    host_key = asyncssh.generate_private_key("ssh-ed25519")
    server = await asyncssh.listen("127.0.0.1", 0, server_factory=Sshd, server_host_keys=[host_key])
    async with server:
        port = server.get_port()
        login = Login(host="127.0.0.1", port=port, user="deck")
        error = await refusal(login)
        assert isinstance(error, PreconditionFailed)
        assert f"its host key is not known: it presents {host_key.get_fingerprint()}" in error.seen

        other = asyncssh.generate_private_key("ssh-ed25519").export_public_key().decode()
        (home / "known_hosts").write_text(f"[127.0.0.1]:{port} {other}")
        error = await refusal(login)
        assert "its host key has CHANGED" in error.seen
        golden(error.next_step)

        (home / "known_hosts").write_text(f"[127.0.0.1]:{port} {host_key.export_public_key().decode()}")
        error = await refusal(login)
        golden(error.seen)

        own = asyncssh.generate_private_key("ssh-ed25519")
        own.write_private_key(str(home / "id_ed25519"), "pkcs8-pem", passphrase="secret")
        error = await refusal(login)
        golden(error.seen)
        assert "ssh-add" in error.next_step
        error = await refusal(Login(host="127.0.0.1", port=port, user="deck", identity=str(home / "id_ed25519")))
        golden(error.seen)
    error = await refusal(login)
    assert isinstance(error, Unavailable)
    golden(error.seen)


@pytest.mark.parametrize(
    "error",
    [
        socket.gaierror(-2, "Name or service not known"),
        OSError(errno.EHOSTUNREACH, "Connect call failed ('192.0.2.1', 22)"),
        TimeoutError(),
        OSError(errno.ETIMEDOUT, "Connect call failed"),
        asyncssh.ConnectionLost("Connection lost"),
    ],
)
def test_a_host_that_cannot_be_reached_is_said_not_to_be_in_words(error: Exception, golden: Golden) -> None:
    refusal = _unreached(Login(host="one"), error)
    golden(refusal.seen)
    assert refusal.next_step
