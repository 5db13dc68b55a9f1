"""Turning off alarms of etcd, on a cluster in memory."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest
from support.fake_plane import FakePlane
from support.golden import Golden
from support.resources import with_spec, with_status

from quarterdeck.actions.plane import Plane
from quarterdeck.api.plane.memory import memory_to_status
from quarterdeck.app import Requester
from quarterdeck.app.etcd import alarms
from quarterdeck.engine.observation.move import Move
from quarterdeck.engine.observation.observe_etcd import EtcdObserver
from quarterdeck.engine.preflight.preconditions import alarms as precondition
from quarterdeck.engine.workspace.home import Home
from quarterdeck.errors import PreconditionFailed, Unavailable
from quarterdeck.etcd.facts import Alarm, AlarmKind
from quarterdeck.model.clusters import Cluster
from quarterdeck.model.findings import Verdict
from quarterdeck.model.world import World

ASKER = Requester(name="a test")


@pytest.fixture
def fake() -> FakePlane:
    return FakePlane()


@pytest.fixture
async def plane(fake: FakePlane) -> Plane:
    return await fake.open()


async def look(plane: Plane) -> World:
    membership = await EtcdObserver(plane=plane).observe(plane.memory)
    return World(slots=(), memory=plane.memory, now=0.0, plane_name=plane.name, membership=membership)


@pytest.fixture
def home(fake: FakePlane, plane: Plane, monkeypatch: pytest.MonkeyPatch) -> Home:
    """A home with one plane, of which only etcd is looked at."""

    async def opened(*_: object) -> Plane:
        return plane

    async def observer_of(_: Plane) -> object:
        return SimpleNamespace(observe=lambda: look(plane))

    monkeypatch.setattr(alarms, "observer_of", observer_of)
    return cast("Home", SimpleNamespace(store=fake.store, plane=opened))


def raise_alarm(fake: FakePlane, *kinds: AlarmKind) -> None:
    fake.etcd.cluster.alarms += [Alarm(kind, fake.etcd.cluster.nodes[0].id) for kind in kinds]


def left(fake: FakePlane) -> list[AlarmKind]:
    return [each.kind for each in fake.etcd.cluster.alarms]


def differ(fake: FakePlane, *names: str) -> None:
    for number, name in enumerate(names):
        fake.etcd.cluster.at(fake.url(name)).hash = 77 + number


async def test_without_an_alarm_there_is_nothing_to_turn_off(home: Home) -> None:
    assert (await alarms.planned(home, "demo")).alarms == ()


async def test_alarms_whose_cause_is_gone_are_turned_off_and_an_event_says_by_whom(
    fake: FakePlane, home: Home, golden: Golden
) -> None:
    raise_alarm(fake, AlarmKind.NOSPACE, AlarmKind.CORRUPT)
    disarming = await alarms.planned(home, "demo")
    golden(disarming.descriptions)
    assert len(left(fake)) == 2, "a plan changes nothing"
    await alarms.disarmed(home, disarming, ASKER)
    assert left(fake) == []
    messages = [each.message for each in await fake.store.events("demo") if each.reason == "AlarmDisarmed"]
    golden(sorted(messages))


async def test_corrupt_stays_while_a_member_differs_that_is_to_stay(
    fake: FakePlane, home: Home, golden: Golden
) -> None:
    raise_alarm(fake, AlarmKind.CORRUPT)
    equal = await alarms.planned(home, "demo")
    differ(fake, "east-2")
    with golden.raises(PreconditionFailed):
        await alarms.planned(home, "demo")
    with pytest.raises(PreconditionFailed, match="east-2"):
        await alarms.disarmed(home, equal, ASKER)
    assert left(fake) == [AlarmKind.CORRUPT]


@pytest.mark.parametrize("asked", [True, False])
async def test_corrupt_ends_where_the_member_that_differs_is_to_be_exchanged(
    fake: FakePlane, home: Home, plane: Plane, asked: bool
) -> None:
    """By a person's word, or since a manager has found it: no exchange begins while the alarm is on."""
    raise_alarm(fake, AlarmKind.CORRUPT)
    differ(fake, "east-2")
    if asked:
        plane.resource = with_spec(plane.resource, replace_replicas=("east-2",))
    else:
        found = (replace(each, differs=each.name == "east-2") for each in plane.memory.replicas)
        known = memory_to_status(replace(plane.memory, replicas=tuple(found)))
        plane.resource = with_status(plane.resource, memory=known)
    await alarms.disarmed(home, await alarms.planned(home, "demo"), ASKER)
    assert left(fake) == []


async def test_corrupt_stays_where_no_majority_has_the_same_data(fake: FakePlane, home: Home, golden: Golden) -> None:
    raise_alarm(fake, AlarmKind.CORRUPT)
    differ(fake, "east-2", "west-1")
    with golden.raises(PreconditionFailed):
        await alarms.planned(home, "demo")


async def test_corrupt_stays_while_the_data_of_a_member_is_not_known(
    fake: FakePlane, home: Home, golden: Golden
) -> None:
    raise_alarm(fake, AlarmKind.CORRUPT)
    fake.etcd.cluster.stop(fake.url("west-1"))
    with golden.raises(PreconditionFailed):
        await alarms.planned(home, "demo")


async def test_nospace_stays_while_a_member_has_no_room_and_the_quota_is_named(
    fake: FakePlane, home: Home, golden: Golden
) -> None:
    raise_alarm(fake, AlarmKind.NOSPACE)
    for node in fake.etcd.cluster.nodes:
        node.size = fake.etcd.cluster.quota
    with golden.raises(PreconditionFailed) as error:
        await alarms.planned(home, "demo")
    assert error.value.next_step.endswith("raise spec.etcd.quotaBytes")
    raise_alarm(fake, AlarmKind.CORRUPT)
    disarming = await alarms.planned(home, "demo")
    assert disarming.alarms == ((Cluster.MAIN, AlarmKind.CORRUPT),)
    assert "2,048 MiB" in disarming.kept[0]
    await alarms.disarmed(home, disarming, ASKER)
    assert left(fake) == [AlarmKind.NOSPACE]


async def test_without_a_quorum_that_is_said(fake: FakePlane, home: Home, golden: Golden) -> None:
    for name in ("east-2", "west-1"):
        fake.etcd.cluster.stop(fake.url(name))
    with golden.raises(Unavailable):
        await alarms.planned(home, "demo")


async def test_a_replacement_is_accepted_under_corrupt_and_any_other_move_is_not(
    fake: FakePlane, plane: Plane, golden: Golden
) -> None:
    raise_alarm(fake, AlarmKind.CORRUPT)
    spec = plane.resource.spec

    async def found(**changes: object) -> tuple[Verdict, str]:
        wanted = plane.resource.model_copy(update={"spec": spec.model_copy(update=changes)})
        move = cast("Move", SimpleNamespace(plane=plane, world=await look(plane), wanted=wanted))
        finding = await precondition(move)
        return finding.verdict, f"{finding.seen}; {finding.next_step}"

    verdict, message = await found(replace_replicas=("east-2",))
    assert verdict is Verdict.WARN
    golden(message)
    verdict, message = await found(replicas=5)
    assert verdict is Verdict.REFUSE
    golden(message)
    raise_alarm(fake, AlarmKind.NOSPACE)
    assert (await found(replace_replicas=("east-2",)))[0] is Verdict.REFUSE
