"""The configuration of the ssh client: as ``ssh`` evaluates it, and as far as possible without it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import asyncssh
import pytest
from support.golden import Golden

from quarterdeck.errors import PreconditionFailed, Unavailable
from quarterdeck.sites.ssh import configuration
from quarterdeck.sites.ssh.configuration import client_configuration, known_hosts_of
from quarterdeck.sites.ssh.hosts import Login
from quarterdeck.sites.ssh.login import logged_in

needs_ssh = pytest.mark.skipif(shutil.which("ssh") is None, reason="it takes an ssh client")


class Jump(asyncssh.SSHServer):
    """Lets everybody in, and on to other hosts."""

    def begin_auth(self, username: str) -> bool:
        return False

    def connection_requested(self, dest_host: str, dest_port: int, orig_host: str, orig_port: int) -> bool:
        return True


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / ".ssh").mkdir(mode=0o700)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    return tmp_path / ".ssh"


@needs_ssh
async def test_what_ssh_evaluates_counts(home: Path, golden: Golden) -> None:
    (home / "config").write_text(
        f"Include {home}/config.d/*\nHost *\n  User deck\n  ProxyCommand nc -X %% %h %p %r %n\n"
    )
    (home / "config.d").mkdir()
    (home / "config.d/one").write_text(
        "Host one\n  HostName 192.0.2.1\n  Port 2222\n  HostKeyAlias alias\n  AddressFamily inet\n"
        f"  IdentityFile ~/.ssh/own\n  IdentitiesOnly yes\n  UserKnownHostsFile {home}/others\n"
        "Match originalhost two user deck\n  ProxyJump admin@jump:2200,[::1]:22\n  IdentityAgent none\n"
    )
    one = await client_configuration(Login(host="one"))
    assert (one.host, one.options["port"], one.options["username"]) == ("192.0.2.1", 2222, "deck")
    assert one.options["host_key_alias"] == "alias"
    golden(one.options["proxy_command"])
    assert one.identities == (home / "own",)
    assert one.options["agent_path"] is None, "an agent has no key that may be used"
    assert one.known_hosts[0] == home / "others"
    assert Path("/etc/ssh/ssh_known_hosts") in one.known_hosts
    given = await client_configuration(Login(host="one", user="root", port=22, identity="/keys/mine"))
    assert (given.options["port"], given.options["username"]) == (22, "root")
    assert given.identities == (Path("/keys/mine"),)
    two = await client_configuration(Login(host="two", user="deck"))
    assert two.jumps == (Login(host="jump", user="admin", port=2200), Login(host="::1", port=22))
    assert two.options["agent_path"] is None
    assert two.known_hosts[0] == home / "known_hosts"


@needs_ssh
async def test_a_configuration_that_ssh_does_not_read_is_shown_with_its_words(home: Path, golden: Golden) -> None:
    (home / "config").write_text("Host one\n  NoSuchOption yes\n")
    with golden.raises(PreconditionFailed):
        await client_configuration(Login(host="one"))


async def test_without_an_ssh_client_the_files_are_read(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _name: None)
    (home / "config").write_text("Host one\n  HostName 192.0.2.1\n")
    found = await client_configuration(Login(host="one", user="deck"))
    assert str(home / "config") in found.options["config"]
    assert (found.host, found.options["username"]) == ("one", "deck")


def test_lines_of_known_hosts_that_cannot_be_read_are_passed_over(home: Path) -> None:
    key = asyncssh.generate_private_key("ssh-ed25519").export_public_key().decode()
    (home / "known_hosts").write_text(f"one what-is-this AAAA\n\n@odd x y\none {key}\n")
    keys, *_ = known_hosts_of((home / "nowhere", home / "known_hosts")).match("one", "", None)
    assert len(keys) == 1


@needs_ssh
async def test_a_changed_key_is_called_changed_whichever_file_has_the_former_one(home: Path, golden: Golden) -> None:
    key, other = (asyncssh.generate_private_key("ssh-ed25519") for _ in range(2))
    async with await asyncssh.listen("127.0.0.1", 0, server_factory=Jump, server_host_keys=[key]) as server:
        port = server.get_port()
        (home / "config").write_text(f"UserKnownHostsFile {home}/known_hosts {home}/more\n")
        (home / "more").write_text(f"[127.0.0.1]:{port} {other.export_public_key().decode()}")
        login = Login(host="127.0.0.1", port=port, user="deck")
        with pytest.raises(PreconditionFailed) as caught:
            await logged_in(login)
        assert "its host key has CHANGED" in caught.value.seen
        golden(caught.value.seen)
        golden(caught.value.next_step)
        (home / "config").write_text(f"HostKeyAlias east\nUserKnownHostsFile {home}/more\n")
        (home / "more").write_text(f"[east]:{port} {key.export_public_key().decode()}")
        (await logged_in(login)).abort()


@needs_ssh
async def test_jump_hosts_are_logged_in_to_by_their_own_configuration(home: Path) -> None:
    keys = [asyncssh.generate_private_key("ssh-ed25519") for _ in range(2)]
    async with (
        await asyncssh.listen("127.0.0.1", 0, server_factory=Jump, server_host_keys=[keys[0]]) as jump,
        await asyncssh.listen("127.0.0.1", 0, server_factory=Jump, server_host_keys=[keys[1]]) as target,
    ):
        ports = jump.get_port(), target.get_port()
        (home / "config").write_text(
            f"Host gate\n  HostName 127.0.0.1\n  Port {ports[0]}\n  User jumper\n  HostKeyAlias gate\n"
            f"Host one\n  HostName 127.0.0.1\n  Port {ports[1]}\n  User deck\n  HostKeyAlias one\n  ProxyJump gate\n"
        )
        lines = [
            f"[{name}]:{port} {key.export_public_key().decode()}"
            for name, port, key in zip(("gate", "one"), ports, keys, strict=True)
        ]
        (home / "known_hosts").write_text(lines[1])
        with pytest.raises(PreconditionFailed, match="jump host gate: its host key is not known"):
            await logged_in(Login(host="one"))
        (home / "known_hosts").write_text("".join(lines))
        connection = await logged_in(Login(host="one"))
        assert connection.get_extra_info("username") == "deck"
        connection.abort()


#: What an old sshd offers alone, as arguments of asyncssh, and the line of ssh's configuration that allows it.
OLD: dict[str, tuple[dict[str, Any], str]] = {
    "key exchange": ({"kex_algs": ["diffie-hellman-group1-sha1"]}, "KexAlgorithms +diffie-hellman-group1-sha1"),
    "encryption": ({"encryption_algs": ["aes128-cbc"]}, "Ciphers +aes128-cbc"),
    "MAC": ({"mac_algs": ["hmac-md5"], "encryption_algs": ["aes128-ctr"]}, "MACs ^hmac-md5"),
}


@needs_ssh
@pytest.mark.filterwarnings("ignore:Diffie-Hellman over finite fields")
@pytest.mark.parametrize("kind", [*OLD])
async def test_a_host_with_an_old_algorithm_alone_is_reached_where_ssh_is_configured_for_it(
    home: Path, kind: str
) -> None:
    offered, line = OLD[kind]
    key = asyncssh.generate_private_key("ssh-ed25519")
    async with await asyncssh.listen("127.0.0.1", 0, server_factory=Jump, server_host_keys=[key], **offered) as server:
        login = Login(host="127.0.0.1", port=server.get_port(), user="deck")
        (home / "known_hosts").write_text(f"[127.0.0.1]:{login.port} {key.export_public_key().decode()}")
        with pytest.raises(Unavailable, match=f"No matching {kind} algorithm"):
            await logged_in(login)
        (home / "config").write_text(f"Host 127.0.0.1\n{line}\n")
        (await logged_in(login)).abort()


@needs_ssh
async def test_the_known_host_key_is_asked_for_whatever_the_order_of_the_configured_algorithms(home: Path) -> None:
    keys = [asyncssh.generate_private_key(each) for each in ("ssh-ed25519", "ssh-rsa")]
    async with await asyncssh.listen("127.0.0.1", 0, server_factory=Jump, server_host_keys=keys) as server:
        login = Login(host="127.0.0.1", port=server.get_port(), user="deck")
        (home / "known_hosts").write_text(f"[127.0.0.1]:{login.port} {keys[1].export_public_key().decode()}")
        (await logged_in(login)).abort()
        (home / "config").write_text("HostKeyAlgorithms +ssh-rsa\n")
        (await logged_in(login)).abort()
        (home / "config").write_text("HostKeyAlgorithms ssh-ed25519\n")
        with pytest.raises(PreconditionFailed, match="host key has CHANGED"):
            await logged_in(login)


@needs_ssh
async def test_a_user_key_signs_with_the_configured_algorithms_alone(home: Path, golden: Golden) -> None:
    host, user = asyncssh.generate_private_key("ssh-ed25519"), asyncssh.generate_private_key("ssh-rsa")
    user.write_private_key(home / "id_rsa")
    user.write_public_key(home / "authorized")
    async with await asyncssh.listen(
        "127.0.0.1", 0, server_host_keys=[host], authorized_client_keys=str(home / "authorized")
    ) as server:
        login = Login(host="127.0.0.1", port=server.get_port(), user="deck", identity=str(home / "id_rsa"))
        (home / "known_hosts").write_text(f"[127.0.0.1]:{login.port} {host.export_public_key().decode()}")
        (home / "config").write_text("PubkeyAcceptedAlgorithms ssh-ed25519\n")
        with golden.raises(PreconditionFailed):
            await logged_in(login)
        (home / "config").write_text("PubkeyAcceptedAlgorithms rsa-sha2-512-cert-v01@openssh.com\n")
        assert (await client_configuration(login)).options["signature_algs"] == ["rsa-sha2-512"]
        (await logged_in(login)).abort()


async def test_only_algorithms_that_are_configured_and_supported_are_passed_on(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By an ssh whose defaults and own algorithms asyncssh does not support."""
    (home / "ssh").write_text(
        "#!/bin/sh\n"
        "echo hostname one; echo port 22; echo user deck\n"
        "echo ciphers future-cipher; echo knownhostscommand none\n"
        'case "$*" in *" /dev/null "*) echo macs future-mac; echo kexalgorithms future-kex;;\n'
        "*) echo macs hmac-md5,other-future-mac,hmac-sha1; echo kexalgorithms other-future-kex;; esac\n"
    )
    (home / "ssh").chmod(0o755)
    monkeypatch.setattr("shutil.which", lambda _name: str(home / "ssh"))
    found = await client_configuration(Login(host="one"))
    lists = {key: value for key, value in found.options.items() if key.endswith("_algs")}
    assert lists == {"mac_algs": ["hmac-md5", "hmac-sha1"]}
    assert not found.known_hosts_command
    asyncssh.SSHClientConnectionOptions(**lists)


async def test_ssh_is_run_once_for_each_connection(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And once more in all, for its defaults, which are of the program and not of a host."""
    (home / "ssh").write_text(f"#!/bin/sh\necho hostname one; echo port 22; echo run >> {home}/runs\n")
    (home / "ssh").chmod(0o755)
    monkeypatch.setattr("shutil.which", lambda _name: str(home / "ssh"))
    for count in range(3):
        await client_configuration(Login(host=f"host{count}"))
    assert (home / "runs").read_text().split() == ["run"] * 4


@needs_ssh
async def test_hosts_of_included_and_system_wide_files_are_read_as_ssh_does(
    home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    system = tmp_path / "etc"
    (system / "ssh_config.d").mkdir(parents=True)
    (system / "ssh_config").write_text(f"Include {system}/ssh_config.d/*.conf\nHost *\n  Port 2200\n")
    (system / "ssh_config.d/rack.conf").write_text("Host rack-a\n  HostName 192.0.2.7\n  User deck\n")
    monkeypatch.setattr(configuration, "_FILES", ("~/.ssh/config", str(system / "ssh_config")))
    found = await client_configuration(Login(host="rack-a"))
    assert (found.host, found.options["port"], found.options["username"]) == ("192.0.2.7", 2200, "deck")
    (home / "config").write_text("Host rack-a\n  Port 2222\n")
    found = await client_configuration(Login(host="rack-a"))
    assert (found.host, found.options["port"]) == ("192.0.2.7", 2222), "one's own file comes first"
    monkeypatch.setattr("shutil.which", lambda _name: None)
    found = await client_configuration(Login(host="rack-a"))
    parsed = asyncssh.SSHClientConnectionOptions(host="rack-a", config=found.options["config"])
    assert (parsed.host, parsed.port, parsed.username) == ("192.0.2.7", 2222, "deck"), "also without an ssh client"


@needs_ssh
async def test_what_ssh_has_by_default_is_left_to_asyncssh(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(configuration, "_FILES", ("~/.ssh/config", str(home / "none")))  # not this system's
    found = await client_configuration(Login(host="one"))
    assert found.options["port"] == 22
    assert not [key for key in found.options if key.endswith("_algs")]


@needs_ssh
async def test_a_command_for_known_hosts_is_named_where_no_file_has_the_key(home: Path, golden: Golden) -> None:
    key = asyncssh.generate_private_key("ssh-ed25519")
    async with await asyncssh.listen("127.0.0.1", 0, server_factory=Jump, server_host_keys=[key]) as server:
        login = Login(host="127.0.0.1", port=server.get_port(), user="deck")
        (home / "config").write_text("KnownHostsCommand /usr/bin/keys-of %H\n")
        with pytest.raises(PreconditionFailed) as caught:
            await logged_in(login)
        assert "its host key is not known" in caught.value.seen
        golden(caught.value.seen)
        golden(caught.value.next_step)
        (home / "known_hosts").write_text(f"[127.0.0.1]:{login.port} {key.export_public_key().decode()}")
        (await logged_in(login)).abort()
