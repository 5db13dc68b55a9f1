"""What a person does to the etcd of a plane with etcdctl while clients use it and a change is under way: no request
fails because of a step of quarterdeck's, and what a person has to do about it is said, with the command.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.client_view import watched
from support.conditions import until
from support.etcdctl import Etcdctl
from support.plane_lab import Command, PlaneLab, managed

from quarterdeck.api.base import find_condition
from quarterdeck.api.conditions import ConditionType
from quarterdeck.model.units import UnitStatus
from quarterdeck.sites.local.site import LocalSite

pytestmark = [pytest.mark.soak, pytest.mark.timeout(900)]

NAME = "demo"
#: Where nobody is.
NOWHERE = "127.99.9.9"
#: Writes of a client, one each 50 ms and longer: longer than a driver needs to look again and to act.
WHILE = 160


@pytest.fixture
def kept(demo: PlaneLab) -> Iterator[PlaneLab]:
    """The plane demo, kept by a manager."""
    with managed(demo):
        yield demo


def etcds(lab: PlaneLab) -> dict[str, int | None]:
    """The process of each replica's etcd; None where it does not run."""
    site = lab.plane(NAME).spec.placement.site
    records = lab.plane(NAME).status.memory.replicas
    units = {each.machine: lab.on_site(site, units_of(each.machine)) for each in records}
    return {
        each.name: next((unit.pid for unit in units[each.machine] if unit.name == f"{NAME}-{each.name}-etcd"), None)
        for each in records
    }


def units_of(machine: str) -> Callable[[LocalSite], Awaitable[Sequence[UnitStatus]]]:
    return lambda site: site.units(machine)


def restarts_since(lab: PlaneLab, before: Mapping[str, int | None]) -> int:
    """How many etcds run that have been started since."""
    return sum(pid not in (None, before[name]) for name, pid in etcds(lab).items())


def flagged(lab: PlaneLab, component: str, **flags: str) -> Path:
    """A file that declares the plane with these flags of a component."""
    document = yaml.safe_load(lab.run("get", NAME, "-o", "yaml").out)
    document.pop("status", None)
    document["metadata"] = {"name": NAME}
    given = {name.replace("_", "-"): value for name, value in flags.items()}
    document["spec"].setdefault("extraArgs", {})[component] = given
    return lab.file(yaml.safe_dump(document))


def restarted(lab: PlaneLab, count: str) -> Command:
    """A change that starts every etcd again, under way."""
    return lab.start("apply", "-f", str(flagged(lab, "etcd", snapshot_count=count)))


def stalled(lab: PlaneLab) -> str:
    """Reason and message of the condition Stalled; "" where it is not true."""
    found = find_condition(lab.plane(NAME).status.conditions, ConditionType.STALLED)
    return f"{found.reason}: {found.message}" if found is not None and found.status == "True" else ""


def event_messages(lab: PlaneLab, reason: str) -> list[str]:
    """The messages of the events with that reason."""
    return [each["message"] for each in lab.run("events", NAME, "-o", "json").json if each["reason"] == reason]


def named(lab: PlaneLab, member: str, url: str) -> None:
    """Condition, status and event name the member with its URL, and say how to remove it."""
    command = f"'quarterdeck etcd remove-member {NAME} {member}'"
    until(lambda: stalled(lab).startswith("UnknownMember: "), f"{member} to be named")
    status = lab.run("status", NAME, code=1).out
    for text in (stalled(lab), status, event_messages(lab, "UnknownMember")[-1]):
        assert member in text, text
        assert url in text, text
        assert command in text, text
    assert lab.status(NAME, code=1)["voters"] == 4


def as_wanted(lab: PlaneLab) -> None:
    lab.run("wait", NAME)
    until(lambda: not stalled(lab), "nothing to be stalled")
    assert lab.status(NAME, code=0)["voters"] == 3


CHANGES: Sequence[Callable[[PlaneLab], Command]] = (
    lambda lab: lab.start("certs", "renew", NAME, "--yes"),
    lambda lab: restarted(lab, "9001"),
)


@pytest.mark.parametrize("change", CHANGES, ids=["certs-renew", "flag"])
def test_no_member_stops_beside_a_voter_that_never_started(
    kept: PlaneLab, change: Callable[[PlaneLab], Command]
) -> None:
    etcdctl, url, before = Etcdctl(kept, NAME), f"https://{NOWHERE}:2380", etcds(kept)
    with watched(kept, NAME, f"unstarted-{CHANGES.index(change)}") as clients:
        member = etcdctl.add(url)
        changing = change(kept)
        named(kept, member, url)
        until(lambda: f"remove-member {NAME} {member}" in changing.output, "the command to say what it waits for")
        clients.goes_on("beside the voter", writes=WHILE)
        assert changing.running, changing.output
        assert etcds(kept) == before, "a member stopped that nobody can spare"
        kept.run("etcd", "remove-member", NAME, member, "--yes")
        done = changing.end()
        assert done.code == 0, str(done)
        as_wanted(kept)
    assert restarts_since(kept, before) == 3
    assert [
        each for each in event_messages(kept, "MembershipChanged") if each.startswith(f"member add of voter {member}")
    ]


def hexadecimal(member: Mapping[str, Any]) -> str:
    return f"{member['ID']:x}"


def test_peer_urls_that_a_person_swaps_are_put_right_while_clients_go_on(kept: PlaneLab) -> None:
    """etcd lets no two members have one URL: a person takes a third one for the time. One of them leads."""
    etcdctl, before = Etcdctl(kept, NAME), etcds(kept)
    leader = next(each["replica"] for each in kept.status(NAME)["members"] if each["member"] == "leader")
    was = {each["name"]: each for each in etcdctl.members()}
    one, other = was[leader], was[min(set(was) - {leader})]

    def update(member: Mapping[str, Any], url: str) -> None:
        etcdctl("member", "update", hexadecimal(member), f"--peer-urls={url}")

    with watched(kept, NAME, "swapped") as clients:
        (first,), (second,) = one["peerURLs"], other["peerURLs"]
        refused = etcdctl.tried("member", "update", hexadecimal(one), f"--peer-urls={second}")
        assert "Peer URLs already exists" in refused.stderr
        for member, url in ((one, f"https://{NOWHERE}:2380"), (other, first), (one, second)):
            update(member, url)
        until(lambda: {each["name"]: each for each in etcdctl.members()} == was, "the URLs to be right")
        clients.goes_on("with the right URLs")
        as_wanted(kept)
    assert etcds(kept) == before, "nothing was restarted"
    assert [
        each
        for each in event_messages(kept, "MembershipChanged")
        if each.startswith(f"member update of voter {leader}")
    ]
