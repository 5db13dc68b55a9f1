"""What each step leaves in the plane's memory."""

from __future__ import annotations

import pytest

from quarterdeck.model.components import Component
from quarterdeck.model.memory import Memory, Replica
from quarterdeck.model.remember import remember
from quarterdeck.model.seats import Slot
from quarterdeck.model.steps.base import Step
from quarterdeck.model.steps.clusters import DecideBootstrap, NoteCreated, NoteMembers
from quarterdeck.model.steps.members import AddLearner, RemoveMember
from quarterdeck.model.steps.placement import PlaceReplica, ReleaseReplica
from quarterdeck.model.steps.traffic import NoteDraining, NoteRecord, RemoveRecord, SetBackends, SetRecord, StopBalancer
from quarterdeck.model.steps.units import StartUnit

EAST = Slot(site="east", zone="a")
WHY = "a test asks for it"
NOW = 100.0


def place(name: str) -> PlaceReplica:
    return PlaceReplica(site="", why=WHY, replica=name, slot=EAST, machine="east-a1")


def placed(*names: str) -> Memory:
    memory = Memory()
    for name in names:
        memory = remember(memory, place(name), NOW)
    return memory


def note_record(to: str) -> NoteRecord:
    return NoteRecord(site="", why=WHY, to=to)


def note_draining(*names: str) -> NoteDraining:
    return NoteDraining(site="", why=WHY, draining=names)


def test_a_placed_replica_has_its_slot_and_its_machine_and_was_never_a_member() -> None:
    assert placed("east-1").replicas == (Replica(name="east-1", slot=EAST, machine="east-a1"),)


def test_the_next_name_is_past_every_name_ever_given_in_whatever_order_they_are_written() -> None:
    assert placed("east-1", "east-2").next_ordinal == 3
    assert placed("east-2", "east-1").next_ordinal == 3
    assert placed("west-9").next_ordinal == 10


def test_a_released_replica_leaves_no_trace_but_its_name_stays_used() -> None:
    memory = remember(placed("east-1", "east-2"), note_draining("east-1", "east-2"), NOW)
    after = remember(memory, ReleaseReplica(site="east", why=WHY, replica="east-1"), NOW)
    assert [record.name for record in after.replicas] == ["east-2"]
    assert [name for name, _ in after.draining] == ["east-2"]
    assert after.next_ordinal == 3


def test_founders_and_that_the_cluster_exists_are_kept() -> None:
    memory = remember(placed("east-1"), DecideBootstrap(site="", why=WHY, replicas=("east-1",)), NOW)
    assert (memory.bootstrap, memory.created) == (("east-1",), False)
    assert remember(memory, NoteCreated(site="", why=WHY), NOW).created


def test_who_was_ever_a_member_stays_one_that_was() -> None:
    memory = placed("east-1", "east-2")
    memory = remember(memory, NoteMembers(site="", why=WHY, listed=("east-1", "east-2"), started=("east-1",)), NOW)
    memory = remember(memory, NoteMembers(site="", why=WHY, listed=(), started=("east-2",)), NOW)
    assert [(record.listed, record.started) for record in memory.replicas] == [(True, True), (True, True)]


def test_the_first_address_is_held_by_nobody_else() -> None:
    memory = remember(Memory(), note_record("east"), NOW)
    assert (memory.served_site, memory.held) == ("east", ())


def test_the_address_before_is_held_from_the_moment_that_the_name_is_seen_elsewhere() -> None:
    memory = remember(remember(Memory(), note_record("east"), NOW), note_record("west"), NOW + 5)
    assert (memory.served_site, memory.held) == ("west", (("east", NOW + 5),))


def test_an_address_that_the_name_leads_to_again_is_no_former_one() -> None:
    memory = Memory()
    for moment, site in enumerate(("east", "west", "east")):
        memory = remember(memory, note_record(site), NOW + moment)
    assert (memory.served_site, memory.held) == ("east", (("west", NOW + 2),))


def test_every_former_address_is_held() -> None:
    memory = Memory()
    for moment, site in enumerate(("east", "west", "north")):
        memory = remember(memory, note_record(site), NOW + moment)
    assert dict(memory.held) == {"east": NOW + 1, "west": NOW + 2}


def test_noting_the_same_record_again_starts_no_new_time() -> None:
    memory = remember(remember(Memory(), note_record("east"), NOW), note_record("west"), NOW)
    assert remember(memory, note_record("west"), NOW + 50) == memory


def test_an_address_is_forgotten_when_its_load_balancer_is_gone() -> None:
    memory = remember(remember(Memory(), note_record("east"), NOW), note_record("west"), NOW)
    assert remember(memory, StopBalancer(site="east", why=WHY), NOW).held == ()


def test_a_removed_name_leads_nowhere() -> None:
    memory = remember(Memory(), note_record("east"), NOW)
    assert remember(memory, RemoveRecord(site="", why=WHY), NOW).served_site is None


def test_a_drain_begins_once_and_ends_when_the_replica_is_listed_again() -> None:
    memory = remember(Memory(), note_draining("east-1"), NOW)
    memory = remember(memory, note_draining("east-1", "east-2"), NOW + 1)
    assert dict(memory.draining) == {"east-1": NOW, "east-2": NOW + 1}
    memory = remember(memory, note_draining("east-2"), NOW + 2)
    assert dict(memory.draining) == {"east-2": NOW + 1}
    assert dict(remember(memory, note_draining("east-1"), NOW + 3).draining) == {"east-1": NOW + 3}


def test_who_was_ever_a_backend_is_remembered() -> None:
    """Its clients have to be held when it stops; those of one that never was are nobody's."""
    memory = placed("east-1", "east-2")
    memory = remember(memory, SetBackends(site="east", why=WHY, backends=("east-1",)), NOW)
    memory = remember(memory, SetBackends(site="east", why=WHY, backends=("east-2",)), NOW)
    assert [record.served for record in placed("east-1", "east-2").replicas] == [False, False]
    assert [record.served for record in memory.replicas] == [True, True]


@pytest.mark.parametrize(
    "step",
    [
        StartUnit(site="east", why=WHY, replica="east-1", component=Component.ETCD),
        AddLearner(site="east", why=WHY, replica="east-1"),
        RemoveMember(site="east", why=WHY, replica="east-1", member=1),
        SetRecord(site="", why=WHY, to="west"),
    ],
    ids=lambda step: type(step).__name__,
)
def test_what_can_be_observed_is_not_remembered(step: Step) -> None:
    memory = placed("east-1")
    assert remember(memory, step, NOW) is memory
