"""What is made of what hosts say of themselves and of each other, before anything is put on them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from support.golden import Golden

from quarterdeck.errors import Corrupt
from quarterdeck.model.endpoints import ExternalLoadBalancer
from quarterdeck.model.findings import HostFinding, Verdict
from quarterdeck.model.units import MachineRole
from quarterdeck.sites.ssh.checks import (
    Here,
    judge_host,
    judge_listening,
    judge_ports,
    judge_way,
    ports_between,
    ports_of_host,
    summary,
)
from quarterdeck.sites.ssh.facts import ClassFacts, HostFacts, Reachability, read_facts, read_listening, read_ways
from quarterdeck.sites.ssh.hosts import Login, SshHost, SshSettings

HERE = Here(architecture="x86_64", owner="ours")
OUTPUT = """\
rights\tsudo
bash\t5.2.15(1)-release
systemd\tsystemd 252 (252.39-1~deb12u2)\truns
architecture\tx86_64\t6.18.0
cgroups\tcgroup2fs
owner\t
units\t0
memory\tMemTotal:\t8000000
memory\tMemAvailable:\t6000000
listening\ttcp\t   0: 010200C0:094B 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1
listening\ttcp\t   1: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1
listening\tudp\t   2: 00000000:0035 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 1
process\tetcd\t812
class\tstandard\t/var/lib\tyes\t100000000000
sync\tstandard\t0.001\t0.002\t0.003
clock\t1000.5
"""
WELL = HostFacts(
    rights="root",
    bash="5.2",
    systemd="systemd 252 (x)",
    runs_systemd=True,
    architecture="x86_64",
    cgroups="cgroup2fs",
    memory=8 * 2**30,
    free_memory=6 * 2**30,
    classes={"standard": ClassFacts(folder="/var/lib", there=True, free=100 * 2**30, syncs=(0.001,) * 100)},
)


def host(name: str, *roles: MachineRole) -> SshHost:
    address = f"192.0.2.{name[-1]}"
    return SshHost(name=name, address=address, zone="a", roles=roles, login=Login(host=address))


ONE = host("one1", MachineRole.CONTROL, MachineRole.EDGE)
TWO = host("two2", MachineRole.CONTROL)
DNS = host("dns3", MachineRole.DNS)
SITE = SshSettings(name="rack", hosts=(ONE, TWO, DNS))


def verdicts(found: Any) -> list[tuple[str, str, str]]:
    return [(each.host, each.finding.check, str(each.finding.verdict)) for each in found]


def only(found: Any) -> HostFinding:
    (one,) = found
    assert isinstance(one, HostFinding)
    return one


def test_what_a_host_says_is_read() -> None:
    facts = read_facts("x", OUTPUT, 1000.0, 1001.0)
    assert (facts.rights, facts.runs_systemd, facts.architecture) == ("sudo", True, "x86_64")
    assert (facts.memory, facts.free_memory) == (8_000_000 * 1024, 6_000_000 * 1024)
    assert facts.listening("192.0.2.1") == {2379, 22}, "what listens everywhere listens here"
    assert facts.listening("192.0.2.2") == {22}
    assert facts.listening("192.0.2.1", "udp") == {53}
    assert facts.processes == (("etcd", "812"),)
    assert facts.classes["standard"] == ClassFacts(
        folder="/var/lib", there=True, free=100_000_000_000, syncs=(0.001, 0.002, 0.003)
    )
    assert facts.clock == 0.0, "within the time that its word took nobody knows more"
    assert read_facts("x", OUTPUT, 990.0, 995.0).clock == 5.5
    assert read_facts("x", OUTPUT, 1010.0, 1011.0).clock == -9.5


@pytest.mark.parametrize(
    "line", ["units\tmany", "memory\tMemTotal:\tx", "sync\tother\t0.1", "unwritable\tother\twhy", "clock\tnoon"]
)
def test_what_cannot_be_parsed_is_shown_as_the_host_said_it(line: str, golden: Golden) -> None:
    with golden.raises(Corrupt):
        read_facts("checking host one", f"{line}\n", 0.0, 1.0)
    with golden.raises(Corrupt):
        read_ways("connecting", "open\tone\n")


def test_a_host_that_is_well_gives_no_line() -> None:
    assert verdicts(judge_host(ONE, WELL, HERE)) == []
    assert verdicts(judge_ports(SITE, ONE, WELL)) == []


@pytest.mark.parametrize(
    ("other", "check", "verdict"),
    [
        ({"rights": "none", "refused": "no tty"}, "sudo", Verdict.REFUSE),
        ({"rights": "script", "script": "other 1 old"}, "script", Verdict.REFUSE),
        ({"sudo_took": 12.3}, "sudo", Verdict.WARN),
        ({"login_took": 12.3}, "ssh", Verdict.WARN),
        ({"rights": "no-sudo"}, "sudo", Verdict.REFUSE),
        ({"bash": "4.4.20"}, "bash", Verdict.REFUSE),
        ({"bash": ""}, "bash", Verdict.REFUSE),
        ({"runs_systemd": False}, "systemd", Verdict.REFUSE),
        ({"systemd": "systemd 239 (239-58.el8)"}, "systemd", Verdict.REFUSE),
        ({"architecture": "aarch64"}, "architecture", Verdict.REFUSE),
        ({"missing": ("tar", "flock")}, "programs", Verdict.REFUSE),
        ({"cgroups": "tmpfs"}, "cgroups", Verdict.WARN),
        ({"owner": "theirs"}, "owner", Verdict.REFUSE),
        ({"free_memory": 600 * 2**20}, "memory", Verdict.WARN),
        ({"free_memory": 200 * 2**20}, "memory", Verdict.REFUSE),
        ({"clock": 5.0}, "clock", Verdict.WARN),
        ({"clock": -31.0}, "clock", Verdict.REFUSE),
    ],
)
def test_what_is_not_well_is_one_line_with_what_to_do(
    other: dict[str, Any], check: str, verdict: Verdict, golden: Golden
) -> None:
    found = only(judge_host(ONE, replace(WELL, **other), HERE)).finding
    assert (found.check, found.verdict) == (check, verdict)
    golden(found.seen)
    assert found.next_step


@pytest.mark.parametrize(
    ("other", "check", "verdict"),
    [
        ({"there": False}, "disk", Verdict.REFUSE),
        ({"free": 2**29}, "disk", Verdict.REFUSE),
        ({"syncs": (), "unwritable": "mktemp: Read-only file system"}, "disk", Verdict.REFUSE),
        ({"free": 2 * 2**30}, "disk", Verdict.WARN),
        ({"syncs": ()}, "fsync", Verdict.WARN),
        ({"syncs": (*(0.001,) * 98, 0.015, 0.02)}, "fsync", Verdict.WARN),
        ({"syncs": (0.6,) * 100}, "fsync", Verdict.REFUSE),
    ],
)
def test_a_disk_that_etcd_would_suffer_from_is_named(
    other: dict[str, Any], check: str, verdict: Verdict, golden: Golden
) -> None:
    facts = replace(WELL, classes={"standard": replace(WELL.classes["standard"], **other)})
    found = only(judge_host(TWO, facts, HERE)).finding
    assert (found.check, found.verdict) == (check, verdict)
    golden(found.seen)
    assert "standard (/var/lib)" in found.seen
    assert verdicts(judge_host(DNS, facts, HERE)) == [], "no volumes are put there"


def test_one_slow_write_of_a_hundred_is_no_slow_disk() -> None:
    facts = replace(WELL.classes["standard"], syncs=(*(0.001,) * 99, *(0.0015,) * 100, 2.0))
    assert verdicts(judge_host(TWO, replace(WELL, classes={"standard": facts}), HERE)) == []


def test_the_memory_of_a_host_that_runs_planes_is_theirs() -> None:
    assert verdicts(judge_host(TWO, replace(WELL, units=4, free_memory=1), HERE)) == []


def listening(*ends: tuple[str, int], protocol: str = "tcp") -> HostFacts:
    state = "0A" if protocol == "tcp" else "07"
    packed = ["".join(f"{int(part):02X}" for part in reversed(address.split("."))) for address, _ in ends]
    rows = [f" 0: {at}:{port:04X} 00000000:0000 {state} x" for at, (_, port) in zip(packed, ends, strict=True)]
    return replace(WELL, tables={protocol: "\n".join(rows)})


def test_ports_that_somebody_has_are_named_and_those_of_load_balancers_refuse() -> None:
    found = only(judge_ports(SITE, TWO, listening(("192.0.2.2", 2379), ("0.0.0.0", 10257)))).finding
    assert found.verdict is Verdict.WARN
    assert "2379, 10257" in found.seen
    found = only(judge_ports(SITE, ONE, listening(("0.0.0.0", 6443)))).finding
    assert (found.verdict, "6443" in found.seen) == (Verdict.REFUSE, True)
    assert verdicts(judge_ports(SITE, TWO, listening(("127.0.0.1", 2379)))) == [], "another address is another matter"


@pytest.mark.parametrize("protocol", ["tcp", "udp"])
def test_somebody_elses_dns_server_stands_in_the_way(protocol: str) -> None:
    found = only(judge_ports(SITE, DNS, listening(("0.0.0.0", 53), protocol=protocol))).finding
    assert (found.check, found.verdict) == ("ports", Verdict.REFUSE)


def test_what_planes_listen_at_themselves_is_not_taken_and_a_foreign_etcd_is_named(golden: Golden) -> None:
    mine = replace(listening(("192.0.2.1", 6443)), units=3)
    assert verdicts(judge_ports(SITE, ONE, mine)) == []
    foreign = replace(mine, processes=(("etcd", "812"), ("kubelet", "9")))
    golden([each.finding.seen for each in judge_ports(SITE, ONE, foreign)])


def test_apiservers_leave_load_balancers_their_ports_at_all_sites_that_may_have_these() -> None:
    assert {6443, 26443, 16443} <= {*ports_of_host(SITE, ONE)}
    assert 6443 not in ports_of_host(SITE, TWO)
    apart = SshSettings(name="apart", hosts=(TWO, host("edge4", MachineRole.EDGE)))
    assert 16443 in ports_of_host(apart, TWO)
    outside = replace(apart, hosts=(TWO,), external=ExternalLoadBalancer(("198.51.100.7",)))
    assert 16443 in ports_of_host(outside, TWO)
    alone = replace(apart, hosts=(TWO,))
    assert {6443, 16443} & {*ports_of_host(alone, TWO)} == {6443}, "clients come to apiservers themselves there"
    assert ports_of_host(SITE, DNS) == (53,)


def test_hosts_need_of_each_other_what_their_roles_ask_for() -> None:
    assert ports_between(SITE, TWO, ONE) == (2380, 2383)
    assert ports_between(SITE, ONE, TWO) == (2380, 2383, 16443), "its load balancer sends to apiservers there"
    assert ports_between(SITE, ONE, DNS) == ()
    assert ports_between(SITE, DNS, ONE) == ()


def test_a_firewall_is_named_by_pair_and_port(golden: Golden) -> None:
    way = Reachability(ports={2380: "open", 2383: "silent", 16443: "refused"}, round_trip=0.001, bulk=True)
    found = [*judge_way("one1", "two2", (2380, 2383, 16443), way)]
    assert verdicts(found) == [("one1 -> two2", "firewall", "refuse")] * 2
    golden([each.finding.seen for each in found])


def test_a_way_that_loses_large_packets_alone_is_named() -> None:
    assert verdicts(judge_way("a", "b", (2380,), Reachability(ports={2380: "open"}, bulk=False))) == [
        ("a -> b", "mtu", "refuse")
    ]
    closed = Reachability(ports={2380: "silent"}, bulk=False)
    assert verdicts(judge_way("a", "b", (2380,), closed)) == [("a -> b", "firewall", "refuse")], "nothing arrives there"


def test_hosts_of_one_site_are_near_each_other() -> None:
    def far(seconds: float) -> list[tuple[str, str, str]]:
        return verdicts(judge_way("a", "b", (2380,), Reachability(ports={2380: "open"}, round_trip=seconds, bulk=True)))

    assert far(0.019) == []
    assert far(0.05) == [("a -> b", "distance", "warn")]
    assert far(0.2) == [("a -> b", "distance", "refuse")]


def test_what_was_not_tried_is_not_well() -> None:
    assert verdicts(judge_way("a", "b", (2380,), None)) == [("a -> b", "firewall", "refuse")]
    assert verdicts(judge_listening(SITE, DNS, (), {})) == [("dns3", "network", "warn")]
    assert verdicts(judge_listening(SITE, DNS, (53,), {})) == []


def test_a_port_at_which_nothing_can_listen_stands_in_the_way_with_the_words_of_the_host(golden: Golden) -> None:
    lines = (
        "welcome",
        "listens\t2379",
        "failed\t53\tFailed to listen on 192.0.2.3:53: Address already in use",
        "tried",
    )
    listens, refused = read_listening(lines)
    assert listens == (2379,)
    found = only(judge_listening(SITE, DNS, listens, refused))
    assert found.finding.verdict is Verdict.REFUSE
    golden(found.finding.seen)


def test_ways_are_read_with_their_shortest_round_trip() -> None:
    found = read_ways("x", "open\tone\t2380\t1.000\t1.004\nopen\tone\t2383\t1.0\t1.002\nsilent\ttwo\t2380\ncame\tone\n")
    assert found["one"].ports == {2380: "open", 2383: "open"}
    assert found["one"].round_trip == pytest.approx(0.002)
    assert found["one"].bulk is True
    assert found["two"] == Reachability(ports={2380: "silent"})


def test_the_summary_counts(golden: Golden) -> None:
    found = [*judge_way("a", "b", (1,), None), *judge_listening(SITE, DNS, (), {})]
    ways = {("a", "b"): Reachability(ports={}, round_trip=0.0042)}
    golden(summary(3, ways, found))
    golden(summary(1, {}, []))
