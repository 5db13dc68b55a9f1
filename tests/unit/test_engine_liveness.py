"""Which programs hang: those that were well as the very process that they are, and answer no more."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest
from fakes.kube import FakeApiserver, FakeKube

from quarterdeck.actions.addresses import apiserver_address
from quarterdeck.actions.plane import Plane
from quarterdeck.components.ports import seat_at
from quarterdeck.engine.observation.assemble import Dated, ReplicaPlace, ServerFacts, UnhealthyPrograms
from quarterdeck.engine.observation.liveness import AT_FIRST, FROZEN, GUARDED, OFTEN, SELDOM, STARTS, Liveness
from quarterdeck.kube.port import Address
from quarterdeck.model.clusters import Cluster
from quarterdeck.model.components import NAMED, Component
from quarterdeck.model.membership import Health, MemberFact, Membership
from quarterdeck.model.memory import Memory, Replica
from quarterdeck.model.seats import Slot
from quarterdeck.model.site_facts import MachineFacts, SiteFacts
from quarterdeck.model.units import Machine, UnitState, UnitStatus

SEAT = seat_at("east-a1", "127.0.1.1", 0)
RECORD = Replica(name="east-1", slot=Slot(site="east", zone="a"), machine="east-a1", seat=SEAT)
MEMORY = Memory(replicas=(RECORD,))
UNITS = {each: f"demo-east-1-{each}" for each in NAMED}
PLACES = {"east-1": ReplicaPlace(units=UNITS, volume="", storage_class="")}
MANAGER, CLOUD, SCHEDULER = (Address("127.0.1.1", port) for port in (10257, 10258, 10259))


class Lab:
    """One replica, whose programs are all well."""

    def __init__(self) -> None:
        self.kube = FakeKube(leaders=dict.fromkeys((MANAGER, CLOUD, SCHEDULER), frozenset()))
        self.now, self.asked = 0.0, 0
        self.templates: dict[str, object] = {}
        plane = SimpleNamespace(
            guard=object(),
            kube=self.kube,
            steady=lambda: self.now,
            memory=MEMORY,
            resource=None,
            machines={},
            revisions=SimpleNamespace(templates=self.templates),
        )
        self.plane = cast("Plane", plane)
        self.server = self.kube.apiservers[apiserver_address(RECORD)] = FakeApiserver()
        self.ready: bool | None = True
        self.health = self.events = Health.HEALTHY
        self.pids = dict.fromkeys(NAMED, 7)
        self.states = dict.fromkeys(NAMED, UnitState.RUNNING)
        self.liveness = Liveness(plane=self.plane)
        self.answers = True

    async def look(self, *, later: float = OFTEN) -> UnhealthyPrograms:
        self.now += later
        units = tuple(
            UnitStatus(name=name, state=self.states[each], pid=self.pids[each]) for each, name in UNITS.items()
        )
        machine = Machine(name="east-a1", site="east", zone="a", address="127.0.1.1")
        there = MachineFacts(machine=machine, units=units if self.answers else None)
        sites = {"east": Dated(self.now, SiteFacts(name="east", machines=(there,), storage_classes=()))}
        servers = {"east-1": Dated(self.now, ServerFacts(ready=self.ready))}
        seen = {
            cluster: Membership(
                members=(MemberFact(id=1, replica="east-1", learner=False, health=health),), leader=None
            )
            for cluster, health in ((Cluster.MAIN, self.health), (Cluster.EVENTS, self.events))
        }
        found = await self.liveness.observe(MEMORY, PLACES, sites, servers, seen)
        return found.get("east-1", UnhealthyPrograms())


def only(*components: Component) -> frozenset[Component]:
    return frozenset(components)


async def test_one_that_was_well_and_answers_no_more_hangs_until_it_is_another_process() -> None:
    lab = Lab()
    assert await lab.look() == UnhealthyPrograms()
    lab.ready, lab.server.hangs = None, True
    assert (await lab.look()).hung == only(Component.APISERVER)
    lab.pids[Component.APISERVER] += 1
    assert await lab.look() == UnhealthyPrograms(all=only(Component.APISERVER)), "that one may be starting"
    lab.now += STARTS
    assert (await lab.look()).hung == only(Component.APISERVER), "but not for ever"


async def test_an_apiserver_that_is_not_ready_and_works_is_no_matter_of_ours() -> None:
    lab = Lab()
    await lab.look()
    lab.ready = lab.server.ready = False
    assert await lab.look() == UnhealthyPrograms()
    lab.server.works = False
    assert (await lab.look()).hung == only(Component.APISERVER)


async def test_a_controller_is_asked_seldom_while_it_is_well_and_only_while_its_apiserver_is() -> None:
    lab = Lab()
    await lab.look()
    lab.kube.frozen = frozenset({SCHEDULER})
    assert await lab.look() == UnhealthyPrograms(), "it is not asked again yet"
    assert (await lab.look(later=SELDOM)).hung == only(Component.SCHEDULER)
    lab.ready = False
    assert await lab.look() == UnhealthyPrograms(), "without its apiserver it cannot be well"
    lab.ready, lab.kube.frozen = True, frozenset()
    assert await lab.look() == UnhealthyPrograms()


async def test_a_controller_that_was_just_started_is_asked_at_every_turn_and_later_as_others_are() -> None:
    lab = Lab()
    lab.kube.frozen = frozenset({SCHEDULER})
    assert await lab.look() == UnhealthyPrograms(all=only(Component.SCHEDULER))
    lab.kube.frozen = frozenset()
    assert await lab.look(later=2 * AT_FIRST) == UnhealthyPrograms(), "a change may wait for it"
    lab.pids[Component.SCHEDULER], lab.kube.frozen = 8, frozenset({SCHEDULER})
    for later in (2 * AT_FIRST, SELDOM):
        assert (await lab.look(later=later)).all == only(Component.SCHEDULER)
    lab.kube.frozen = frozenset()
    assert (await lab.look(later=2 * AT_FIRST)).all == only(Component.SCHEDULER), "it takes long"
    assert await lab.look(later=OFTEN) == UnhealthyPrograms()


async def test_a_manager_of_sets_is_asked_often_and_stands_still_well_before_others_get_its_locks() -> None:
    lab = Lab()
    await lab.look()
    lab.kube.frozen = frozenset({MANAGER})
    assert await lab.look(later=GUARDED) == UnhealthyPrograms(), "it has no locks of sets"
    lab.templates["any"] = SimpleNamespace(controller_sets=("a set",))
    kube = only(Component.CONTROLLER_MANAGER)
    assert await lab.look(later=GUARDED) == UnhealthyPrograms(all=kube, hung=kube)
    assert (await lab.look(later=FROZEN - 0.1)).frozen == frozenset()
    assert (await lab.look(later=0.1)).frozen == kube
    lab.kube.frozen = frozenset()
    assert await lab.look() == UnhealthyPrograms(), "it has only been slow"
    lab.kube.frozen = frozenset({MANAGER, SCHEDULER})
    assert (await lab.look(later=SELDOM)).frozen == frozenset()
    assert (await lab.look(later=FROZEN)).frozen == kube, "a scheduler has no such locks"


async def test_a_member_hangs_when_its_cluster_says_that_it_is_down_and_not_when_we_do_not_hear_it() -> None:
    lab = Lab()
    await lab.look()
    lab.health = Health.UNREACHABLE
    assert await lab.look() == UnhealthyPrograms()
    lab.health = Health.DOWN
    assert (await lab.look()).hung == only(Component.ETCD)
    lab.health, lab.events = Health.HEALTHY, Health.DOWN
    assert (await lab.look()).hung == only(Component.EVENTS_ETCD), "each by its own cluster"


@pytest.mark.parametrize("state", [UnitState.FAILED, UnitState.STOPPED])
async def test_what_does_not_run_does_not_hang(state: UnitState) -> None:
    lab = Lab()
    await lab.look()
    lab.kube.frozen, lab.states[Component.SCHEDULER] = frozenset({SCHEDULER}), state
    assert await lab.look(later=SELDOM) == UnhealthyPrograms()


async def test_who_only_looks_asks_nobody_and_what_a_machine_does_not_tell_stays_what_it_was() -> None:
    lab = Lab()
    await lab.look()
    lab.health = Health.DOWN
    assert (await lab.look()).hung == only(Component.ETCD)
    lab.answers = False
    assert (await lab.look()).hung == only(Component.ETCD)
    onlooker = Liveness(plane=cast("Plane", SimpleNamespace(guard=None)))
    assert await onlooker.observe(MEMORY, PLACES, {}, {}, {}) == {}
