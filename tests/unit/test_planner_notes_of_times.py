"""Times that are noted: how long an answer may be held, and from when a new epoch serves."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from model.stories import planned, serving, with_fact, with_memory
from model.worlds import FORMER, NEW, changing

from quarterdeck.model.clusters import Cluster
from quarterdeck.model.components import ReplicaChange
from quarterdeck.model.epochs import Seed, SurvivorOrigin
from quarterdeck.model.memory import Lifetime
from quarterdeck.model.steps.clusters import NoteMembers, NoteServed
from quarterdeck.model.steps.traffic import NoteLifetime
from quarterdeck.model.world import World
from quarterdeck.planner.simulated import observe


def lifetime(ttl: float | None, before: Lifetime | None = None) -> tuple[float, bool] | None:
    """The time to live that is noted now, and whether it is over; ``ttl``: the record's, ``before``: what was noted."""
    world = replace(with_memory(serving(), longer=before), record_ttl=ttl)
    steps = planned(world, NoteLifetime).steps
    return next(((each.ttl, each.over) for each in steps if isinstance(each, NoteLifetime)), None)


def test_a_longer_time_to_live_is_noted_while_it_is_returned_and_when_that_is_over() -> None:
    wanted = serving().settings.ttl
    assert lifetime(None) is lifetime(wanted) is None
    assert lifetime(wanted + 1) == (wanted + 1, False)
    returned, ended = Lifetime(ttl=60.0), Lifetime(ttl=60.0, until=0.0)
    for ttl, noted in ((60.0, None), (30.0, None), (61.0, (61.0, False)), (wanted, (60.0, True))):
        assert lifetime(ttl, returned) == noted
    for ttl, noted in ((60.0, (60.0, False)), (30.0, (30.0, False)), (wanted, None)):
        assert lifetime(ttl, ended) == noted


def serves(world: World) -> bool:
    return bool(planned(world, NoteServed).steps)


def epoch(*, restored: bool = True, served: float | None = None) -> World:
    """The plane is of its second epoch."""
    seed = Seed(
        origin=SurvivorOrigin(replica="east-9"), founder="east-1", revision=1, seen=1, restored=restored, served=served
    )
    records = tuple(replace(each, epoch=1) for each in serving().memory.replicas)
    return with_memory(serving(), epoch=1, seed=seed, replicas=records)


def test_from_when_a_new_epoch_serves_is_noted_once() -> None:
    assert not serves(serving())
    assert serves(epoch())
    assert not serves(epoch(served=0.0))
    assert not serves(epoch(restored=False))
    some, none = epoch(), epoch()
    for name in ("east-1", "east-2", "east-3"):
        none = with_fact(none, name, lambda fact: replace(fact, ready=False))
        some = none if name != "east-3" else some
    assert serves(with_fact(epoch(), "east-1", lambda fact: replace(fact, ready=False))), "one is enough"
    assert not serves(none)
    former = tuple(replace(each, epoch=each.name != "east-3") for each in some.memory.replicas)
    assert not serves(with_memory(some, replicas=former)), "only one of the epoch before is ready"


@cache
def apart() -> World:
    return observe(changing(3, 3, ReplicaChange(), apart=frozenset({FORMER, NEW})))


def test_the_class_of_volumes_is_noted_of_members_of_events_alone() -> None:
    """That of the main member is the replica's."""
    memory = apart().memory
    unlisted = tuple(
        replace(each, listed=False, events=replace(each.events, listed=False) if each.events else None)
        for each in memory.replicas
    )
    world = replace(with_memory(apart(), replicas=unlisted), storage_class="fast", events_class="slow")
    noted = [each for each in planned(world, NoteMembers).steps if isinstance(each, NoteMembers)]
    assert {each.cluster: each.storage_class for each in noted} == {Cluster.MAIN: "", Cluster.EVENTS: "slow"}


def test_a_member_that_only_lacks_its_id_is_noted() -> None:
    records = tuple(replace(each, member_id=0) for each in serving().memory.replicas)
    (step,) = planned(with_memory(serving(), replicas=records), NoteMembers).steps
    assert isinstance(step, NoteMembers)
    assert (step.listed, step.started) == ((), ())
    assert dict(step.ids) == {"east-1": 1, "east-2": 2, "east-3": 3}
