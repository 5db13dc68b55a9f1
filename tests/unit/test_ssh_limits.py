"""Limits of hosts, as they were tried there."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

from support.golden import Golden

from quarterdeck.errors import PreconditionFailed, Unavailable
from quarterdeck.model.findings import Verdict
from quarterdeck.model.units import MachineRole
from quarterdeck.sites.ssh.facts import HostFacts, read_facts
from quarterdeck.sites.ssh.host_queries import SshHosts
from quarterdeck.sites.ssh.hosts import Login, SshHost, SshSettings
from quarterdeck.sites.ssh.limits import instances_needed, judge_limits, require_instances


def host(name: str, *roles: MachineRole) -> SshHost:
    return SshHost(name=name, address="192.0.2.1", zone="a", roles=roles, login=Login(host=name))


ONE = host("one", MachineRole.CONTROL)
EDGE = host("edge", MachineRole.EDGE, MachineRole.DNS)
DNS = host("dns", MachineRole.DNS)
SITE = SshSettings(name="rack", hosts=(ONE, EDGE, DNS))


@dataclass
class Hosts:
    """Hosts that can open so many instances, and no others answer."""

    can: dict[str, int]
    asked: dict[str, str] = field(default_factory=dict)

    async def ask(self, machine: str, verb: str, count: str, *, doing: str) -> bytes:
        if machine not in self.can:
            raise Unavailable(doing, "no answer")
        self.asked[machine] = f"{verb} {count}"
        return f"{min(self.can[machine], int(count))}\n".encode()


def test_a_host_that_cannot_open_what_a_plane_takes_stands_in_the_way(golden: Golden) -> None:
    (found,) = judge_limits(ONE, HostFacts(instances=3, open_files=1_048_576))
    assert found.finding.verdict is Verdict.REFUSE
    golden(found.finding.seen)
    assert "max_user_instances" in found.finding.next_step
    (found,) = judge_limits(ONE, HostFacts(instances=16, open_files=4096))
    assert found.finding.verdict is Verdict.WARN
    golden(found.finding.seen)


def test_what_was_not_tried_is_not_judged() -> None:
    facts = read_facts("x", "instances\t\nopen-files\t\n", 0.0, 1.0)
    assert (facts.instances, facts.open_files) == (None, None)
    assert [*judge_limits(ONE, facts)] == []
    facts = read_facts("x", "instances\t7\nopen-files\t1024\n", 0.0, 1.0)
    assert (facts.instances, facts.open_files) == (7, 1024)


async def test_each_host_is_asked_for_its_part_of_the_replicas(golden: Golden) -> None:
    hosts = Hosts({"one": 100, "edge-edge": 100})
    findings = await require_instances(cast("SshHosts", hosts), SITE, "creating plane x", 3)
    assert hosts.asked == {"one": f"instances {instances_needed(ONE, 3)}", "edge-edge": "instances 3"}
    golden(findings)


async def test_the_host_that_has_too_few_is_named_and_one_that_is_silent_is_no_reason(golden: Golden) -> None:
    findings = await require_instances(cast("SshHosts", Hosts({"edge-edge": 3})), SITE, "creating plane x", 1)
    golden(findings)
    with golden.raises(PreconditionFailed):
        await require_instances(cast("SshHosts", Hosts({"one": 2, "edge-edge": 3})), SITE, "creating plane x", 1)
