"""What is told of the replicas and the certificates of a plane, one by one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import cast

import pytest
from fakes.store import MemoryStore

from quarterdeck.api.controlplane import new_control_plane
from quarterdeck.app import replicas
from quarterdeck.app.certificates import Certificate, purposes
from quarterdeck.engine.status import Status
from quarterdeck.engine.workspace.home import Home
from quarterdeck.model.components import NAMED
from quarterdeck.model.membership import Health, MemberFact, Membership
from quarterdeck.model.memory import Memory, Replica
from quarterdeck.model.seats import Slot
from quarterdeck.model.steps.plan import Plan
from quarterdeck.model.units import MachineState
from quarterdeck.model.world import ReplicaFact, World
from quarterdeck.pki.issuance import ReplicaNames, create_plane_secrets, with_replica
from quarterdeck.pki.validity import certificates
from quarterdeck.stores.port import JournalEntry

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def seen(**wanted: object) -> Status:
    """Two members and a replica that is none yet, of two revisions."""
    records = tuple(
        Replica(
            name=f"demo-{number}",
            slot=Slot(site="east", zone="a"),
            machine=f"m{number}",
            revision=revision,
        )
        for number, revision in ((1, "demo-old"), (2, "demo-new"), (3, ""))
    )
    members = (
        MemberFact(id=1, replica="demo-1", learner=False, health=Health.HEALTHY),
        MemberFact(id=2, replica="demo-2", learner=True, health=Health.DOWN),
    )
    plane = new_control_plane("demo", site="east")
    spec = plane.spec.model_copy(update={"replace_replicas": ("demo-2",)})
    plane = plane.model_copy(
        update={"spec": spec, "status": plane.status.model_copy(update={"revision": "demo-new", **wanted})}
    )
    facts = tuple(
        ReplicaFact(
            name=each.name, machine=MachineState.UP, units=(), ready=True, reattachable=each.revision == "demo-old"
        )
        for each in records
    )
    world = World(
        slots=(),
        memory=Memory(replicas=records),
        now=0.0,
        membership=Membership(members=members, leader="demo-1"),
        replicas=facts,
    )
    return Status(plane=plane, world=world, plan=Plan(), operation=None, driver="", leaders={})


async def test_each_replica_is_told_of_with_what_it_runs_and_whether_it_stays() -> None:
    store = MemoryStore()
    for replica, kind, time in (("demo-1", "place-replica", 5.0), ("demo-2", "start-unit", 7.0)):
        await store.append(JournalEntry(plane="demo", time=time, kind=kind, text="", replica=replica))
    found = await replicas.listed(cast("Home", SimpleNamespace(store=store)), seen())
    assert [(each.name, each.current, each.condemned) for each in found] == [
        ("demo-1", False, False),
        ("demo-2", True, True),
        ("demo-3", None, False),
    ]
    assert [(each.member, each.health) for each in found] == [("leader", "healthy"), ("learner", "down"), ("none", "")]
    assert [each.since for each in found] == [5.0, None, None]
    assert [each.reattachable for each in found] == [True, False, False]


async def test_nobody_knows_whether_a_revision_is_wanted_before_one_was_named() -> None:
    found = await replicas.listed(cast("Home", SimpleNamespace(store=MemoryStore())), seen(revision=""))
    assert {each.current for each in found} == {None}


def test_every_certificate_that_is_issued_says_what_it_is_for() -> None:
    names = ReplicaNames(replica="demo-1", addresses=("127.0.0.1",), service_ip="10.96.0.1", programs=NAMED)
    issued = certificates(with_replica(create_plane_secrets("demo", NOW), names, NOW))
    assert {called.rpartition("/")[2] for called, _ in issued} == purposes().keys()


@pytest.mark.parametrize(("passed", "due"), [(0, False), (59, False), (61, True), (100, True)])
def test_a_certificate_is_due_when_less_than_a_third_of_its_life_is_left(passed: int, due: bool) -> None:
    found = Certificate(replica="", name="manager", purpose="", begins=NOW, ends=NOW + timedelta(days=90))
    assert found.due(NOW + timedelta(days=passed)) is due
    assert found.days_left(NOW + timedelta(days=passed)) == 90 - passed
