"""Addresses that go from edge to edge by VRRP: who is to have which, what keepalived is told, what hosts let it be."""

from __future__ import annotations

import itertools
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path, PurePosixPath

import pytest
from support.golden import Golden

from quarterdeck.components.traffic.keepalived import (
    KEEPALIVED,
    PromotedSettings,
    Routing,
    configuration,
    keepalived_unit,
    not_usable,
    own_address,
    priority,
    promoted_priority,
    promoted_unit,
    router_ids,
    router_settings,
    served_file,
)
from quarterdeck.model.units import MachineRole
from quarterdeck.sites.base.records import UnitRecord
from quarterdeck.sites.ssh.checks import judge_floating
from quarterdeck.sites.ssh.facts import read_facts
from quarterdeck.sites.ssh.hosts import Login, SshHost, SshSettings
from quarterdeck.sites.ssh.unit_archive import account_of
from quarterdeck.sites.ssh.wire import script
from quarterdeck.sites.vrrp import PIECE

EDGES = {"e1": "192.0.2.1", "e2": "192.0.2.2", "e3": "192.0.2.3"}
FOLDER = PurePosixPath("/var/lib/quarterdeck/units/keepalived/files")
ROUTING = Routing(argv=("/usr/local/lib/quarterdeck/host", "vrrp", KEEPALIVED))
PROMOTED = PromotedSettings(unit="demo-keepalived", address="198.51.100.1", own="192.0.2.1", place=0, note="1 2 3 demo")


def places(*addresses: str) -> dict[str, dict[str, int]]:
    return {edge: dict(router_settings(edge, EDGES, addresses).places) for edge in EDGES}


def test_each_edge_has_an_address_of_its_own_and_the_others_follow_in_turn() -> None:
    three = ("198.51.100.1", "198.51.100.2", "198.51.100.3")
    assert [own_address(edge, EDGES, three) for edge in EDGES] == [*three]
    assert [dict(each) for each in places(*three).values()] == [
        dict(zip(three, order, strict=True)) for order in ((0, 2, 1), (1, 0, 2), (2, 1, 0))
    ]


def test_edges_without_an_address_of_their_own_stand_by_for_one() -> None:
    assert {own_address(edge, EDGES, ("198.51.100.1",)) for edge in EDGES} == {"198.51.100.1"}
    assert places("198.51.100.1") == {each: {"198.51.100.1": place} for place, each in enumerate(EDGES)}
    assert own_address("e3", EDGES, ("198.51.100.1", "198.51.100.2")) == "198.51.100.1"


def test_peers_are_all_other_edges_told_by_their_own_addresses() -> None:
    text = configuration(router_settings("e2", EDGES, ("198.51.100.1",)))
    assert "    unicast_src_ip 192.0.2.2\n" in text
    assert [line.split()[0] for line in text.splitlines() if "min_ttl 255" in line] == ["192.0.2.1", "192.0.2.3"]
    assert "        198.51.100.1/32\n" in text


@pytest.mark.parametrize("edges", range(2, 9))
def test_priorities_move_an_address_for_a_failure_and_home_only_when_that_cuts_nobody(edges: int) -> None:
    for has, other in itertools.permutations(range(edges), 2):
        failing, well = priority(has, clients=True, serves=False), priority(other)
        assert failing < well, "whoever does not serve gives it to one who does, clients or not"
        assert priority(has, serves=False) < well
        assert priority(has, clients=True) > well, "whoever has clients keeps it"
        assert priority(has, clients=True, serves=False) > priority(other, serves=False), "to whom nothing is better"
    own, others = priority(0), [priority(each) for each in range(1, edges)]
    assert own > max(others), "without clients it goes home"
    assert len({own, *others}) == edges
    assert all(1 <= priority(each, clients=True) <= 254 for each in range(edges))


def test_a_promoted_address_stays_with_its_clients_until_nobody_serves_them_there() -> None:
    assert promoted_priority(None, clients=True) > promoted_priority(0), "who has clients keeps it, named or not"
    assert promoted_priority(None) < promoted_priority(7), "without clients it goes to those that are to have it"
    for place in (None, 0, 1):
        failing = promoted_priority(place, clients=True, serves=False)
        assert failing < min(promoted_priority(None), promoted_priority(1)), "any other that serves is better"
    assert promoted_priority(0, clients=True) <= 254
    assert promoted_priority(0) > promoted_priority(1) > promoted_priority(2)


def test_another_place_of_a_machine_is_a_change_of_files_alone() -> None:
    former = replace(PROMOTED, place=None, note="4")
    first, later = (promoted_unit(each, FOLDER, ROUTING) for each in (PROMOTED, former))
    assert first.differs_in_files_alone(later)
    assert first.digest != later.digest
    assert "    priority 150\n" in first.files[0].content.decode()
    assert "    priority 45\n" in later.files[0].content.decode()
    assert "unicast" not in later.files[0].content.decode(), "it is heard by machines that come later"


def test_a_machine_knows_by_the_priority_whether_an_address_belongs_to_it() -> None:
    (home,) = re.findall(r"^VRRP_AT_HOME=(\d+)", PIECE.read_text(), re.MULTILINE)
    assert int(home) == priority(0) == promoted_priority(0)
    assert int(home) > max(priority(1), promoted_priority(1), promoted_priority(None))


def test_router_ids_are_the_last_of_the_address_and_each_another() -> None:
    assert router_ids(("198.51.100.7", "198.51.100.9")) == (7, 9)
    assert router_ids(("198.51.100.7", "203.0.113.7", "203.0.113.8")) == (7, 8, 9)
    assert router_ids(("198.51.100.255", "203.0.113.255", "203.0.113.0")) == (255, 1, 2)


def test_its_unit_is_of_a_user_of_its_own_whatever_the_role() -> None:
    record = UnitRecord.of(keepalived_unit(router_settings("e1", EDGES, ("198.51.100.1",)), FOLDER, ROUTING))
    assert account_of(MachineRole.EDGE, record) == "quarterdeck-vrrp"
    assert account_of(MachineRole.CONTROL, replace(record, name="demo-keepalived")) == "quarterdeck-vrrp"
    assert account_of(MachineRole.EDGE, replace(record, name="demo-envoy")) == "quarterdeck-edge"
    assert served_file(FOLDER, "demo", ready=26443, port=6443).path == FOLDER / "live" / "demo"
    assert served_file(FOLDER, "demo", ready=None, port=6443).content == b"- 6443\n"


@pytest.mark.parametrize(
    ("version", "output"),
    [("2.2.7", ""), ("2.1", ""), ("3.0.1", ""), ("2.0.19", "2.0.19 is too old"), ("", "is not installed")],
)
def test_what_keepalived_an_edge_needs(version: str, output: str, golden: Golden) -> None:
    found = not_usable(version)
    golden(found)
    assert bool(found) == bool(output)


class Host:
    """The host's script, up to where it does what it is asked to, with folders of the test's own."""

    def __init__(self, folder: Path) -> None:
        text = script().decode()
        self.functions = folder / "functions.sh"
        self.functions.write_text(text[: text.rindex("[ $# -gt 0 ] || fail")])
        self.folder, self.files = folder, folder / "units" / KEEPALIVED / "files"
        self.files.mkdir(parents=True)
        (folder / "etc").mkdir()
        (folder / "lib/tmp").mkdir(parents=True)
        (folder / "keepalived").write_text("#!/bin/sh\n")
        (folder / "keepalived").chmod(0o755)
        (folder / "etc/addresses").write_text("198.51.100.1\n198.51.100.2\n")

    def run(self, call: str) -> subprocess.CompletedProcess[str]:
        own = {"LIB": "lib", "UNITS": "units", "RUN": "", "ETC": "etc", "VRRP_BINARY": "keepalived"}
        here = " ".join(f"{name}={self.folder}/{path}" for name, path in own.items())
        ip = 'ip() { [ "$6" = 192.0.2.1/32 ] && echo "2: ens3    inet 192.0.2.1/24 scope global ens3"; }'
        text = f'cd /; . {self.functions}; {here}; {ip}; as_vrrp() {{ "$@"; }}; {call}'
        bash = shutil.which("bash")
        assert bash is not None
        return subprocess.run([bash, "-p", "-c", text], capture_output=True, text=True, timeout=30.0, check=False)

    def take(self, text: str) -> str:
        (self.files / "keepalived.conf").write_text(text)
        (self.folder / "keepalived.conf").unlink(missing_ok=True)
        done = self.run(f"take_routing {KEEPALIVED}")
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


GOOD = configuration(router_settings("e1", EDGES, ("198.51.100.1", "198.51.100.2")))


def test_a_host_takes_what_is_rendered_and_puts_its_own_interface_in(host: Host) -> None:
    assert host.take(GOOD) == ""
    taken = (host.folder / "keepalived.conf").read_text()
    assert taken.rstrip() == GOOD.replace("@INTERFACE@", "ens3").replace("@STATE@", "/tmp").rstrip()
    assert host.take(promoted_unit(PROMOTED, FOLDER, ROUTING).files[0].content.decode()) == ""


@pytest.mark.parametrize(
    ("was", "becomes"),
    [
        pytest.param("file @STATE@/fails", "file /etc/shadow", id="another file that it reads"),
        pytest.param("track_file fails", "vrrp_script x", id="a script"),
        pytest.param("state BACKUP", 'notify "/bin/sh"', id="a notification"),
        pytest.param("global_defs {", "include /tmp/more\nglobal_defs {", id="another file"),
        pytest.param("vrrp_version 3", "script_user root", id="another user"),
        pytest.param("@INTERFACE@", "eth1", id="another interface"),
        pytest.param("198.51.100.2/32", "198.51.100.254/32", id="another address"),
        pytest.param("unicast_src_ip 192.0.2.1", "unicast_src_ip 192.0.2.9", id="not this host's"),
    ],
)
def test_a_host_refuses_what_a_caller_may_not_have(host: Host, was: str, becomes: str, golden: Golden) -> None:
    assert was in GOOD
    golden(host.take(GOOD.replace(was, becomes)))
    assert not (host.folder / "keepalived.conf").exists()


def test_a_host_without_keepalived_says_so(host: Host, golden: Golden) -> None:
    (host.folder / "keepalived").unlink()
    golden(host.take(GOOD))


def test_the_unit_runs_the_one_program_that_a_host_lets_it_run(host: Host) -> None:
    real = host.run('printf %s "$SELF vrrp $VRRP"').stdout
    assert " ".join(ROUTING.argv) == real
    for name, expected in (("keepalived", 0), ("demo-keepalived", 0), ("demo-envoy", 1), ("keepalived-demo", 1)):
        assert host.run(f"is_vrrp {name}").returncode == expected


EDGE = SshHost(name="e1", address="192.0.2.1", zone="a", roles=(MachineRole.EDGE,), login=Login(host="e1"))


@pytest.mark.parametrize(
    ("output", "checks"),
    [
        ("keepalived\t2.2.7\nip\tyes\n", []),
        ("ip\tyes\n", ["keepalived"]),
        ("keepalived\t2.0.19\n", ["keepalived", "programs"]),
    ],
)
def test_a_check_of_a_site_says_what_an_edge_lacks(output: str, checks: list[str]) -> None:
    settings = SshSettings(name="east", hosts=(EDGE,), floating_addresses=("198.51.100.1",))
    facts = read_facts("asking", output, 0.0, 0.0)
    assert [each.finding.check for each in judge_floating(settings, EDGE, facts)] == checks
    assert not [*judge_floating(replace(settings, floating_addresses=()), EDGE, facts)]
    replicas = replace(EDGE, roles=(MachineRole.CONTROL,))
    assert not [*judge_floating(settings, replicas, facts)]
    promotes = replace(settings, floating_addresses=(), promoted_addresses=("198.51.100.1",))
    assert [each.finding.check for each in judge_floating(promotes, replicas, facts)] == checks
