"""Who runs each set of controllers, and what is to be said against it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import Any, cast

import pytest
from fakes.kube import FakeApiserver
from support.fake_plane import FakePlane, host_of
from support.golden import Golden
from support.resources import with_spec

from quarterdeck.actions.addresses import apiserver_address, server_address
from quarterdeck.actions.plane import Plane
from quarterdeck.api.plane.controllers import CloudControllerManager, ControllerProgram, ControllerSetSpec
from quarterdeck.api.revision import ControllerSetTemplate, Guard
from quarterdeck.components.catalogue import CATALOGUE
from quarterdeck.components.ports import seat_at
from quarterdeck.components.template import Revisions
from quarterdeck.engine.controller_sets.set_holders import HeldSet, sets_held
from quarterdeck.errors import Unavailable

KUBE, CLOUD = ControllerProgram
LOCK = "ipam-migration"
IPAM = ControllerSetSpec(name="ipam", lock=LOCK, controllers=("node-ipam-controller",), owner=CLOUD)
LIFE = ControllerSetSpec(name="life", lock="life-migration", controllers=("node-lifecycle-controller",), owner=CLOUD)


@dataclass
class Clocks:
    """By how much machines' clocks are ahead."""

    ahead: dict[str, float] = field(default_factory=dict)

    async def measure(self, machine: str, _: object) -> float:
        if machine not in self.ahead:
            raise Unavailable("measuring", "no answer")
        return self.ahead[machine]


@dataclass
class Lab:
    """A plane of three replicas with sets, and what befalls it."""

    fake: FakePlane
    clocks: Clocks = field(default_factory=Clocks)
    sets: tuple[ControllerSetSpec, ...] = (IPAM,)
    #: What each replica is told of the sets, where it is not what is wanted: owner and guard of all of them.
    owners: Mapping[str, tuple[ControllerProgram, Guard]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.fake.kube.holders = {
            (f"system:{manager.value}", lock)
            for manager in ControllerProgram
            for lock in (manager.value, *(each.lock for each in self.sets))
        }

    async def open(self) -> Plane:
        records = tuple(
            replace(each, seat=seat_at(each.machine, host_of(each.name), 0), revision=each.name)
            for each in self.fake.memory.replicas
        )
        self.fake.memory = replace(self.fake.memory, replicas=records)
        plane = await self.fake.open()
        plane.resource = with_spec(plane.resource, controller_sets=self.sets)
        (template,) = plane.revisions.templates.values()
        cloud = CloudControllerManager(program=PurePosixPath("/opt/ccm"))
        template = template.model_copy(update={"cloud_controller_manager": cloud})
        plane.revisions = Revisions(
            templates={
                name: template.model_copy(update={"controller_sets": tuple(self._templates(name))})
                for name in ("", *self.fake.names)
            }
        )
        plane.sites = {each: cast("Any", self.clocks) for each in ("east", "west")}
        self.fake.kube.apiservers = {apiserver_address(each): FakeApiserver() for each in records}
        return plane

    def _templates(self, replica: str) -> list[ControllerSetTemplate]:
        found = []
        for each in self.sets:
            first = next(one for one in self.sets if one.owner is each.owner) is each
            owner, guard = self.owners.get(replica, (each.owner, Guard.SET if first else Guard.MANAGER))
            found.append(ControllerSetTemplate(**{**dict(each), "owner": owner}, guard=guard))
        return found

    def holds(self, plane: Plane, lock: str, replica: str, manager: ControllerProgram, *, ago: float = 1.0) -> None:
        """A plane's manager has a lock, renewed so many seconds ago, and says so."""
        (port,) = CATALOGUE[manager.component].ports
        where = server_address(plane.memory.replica(replica), port.name)
        self.fake.kube.leaders[where] = self.fake.kube.leaders.get(where, frozenset()) | {lock}
        self.lease(lock, f"{replica}_1f", ago=ago, program="ccm" if manager is CLOUD else manager.value)

    def lease(self, lock: str, holder: str, *, ago: float = 1.0, program: str = "") -> None:
        self.fake.kube.set_lease(lock, holder, renewed=self.fake.clocks.wall - ago, manager=program)


@pytest.fixture
def lab() -> Lab:
    return Lab(FakePlane())


async def only(plane: Plane) -> HeldSet:
    (found,) = await sets_held(plane)
    return found


async def test_a_set_that_its_owner_runs_is_well_and_it_is_told_who_that_is_and_since_when(lab: Lab) -> None:
    plane = await lab.open()
    lab.holds(plane, CLOUD.value, "west-1", CLOUD)
    lab.holds(plane, LOCK, "west-1", CLOUD)
    assert await only(plane) == HeldSet(
        declared=IPAM,
        guard=LOCK,
        manager=CLOUD,
        replica="west-1",
        identity="west-1_1f",
        since=lab.fake.clocks.wall - 1.0,
        renewed_ago=1.0,
        token=0,
        why=(),
        well=True,
    )


async def test_a_plane_without_sets_asks_nobody(lab: Lab) -> None:
    lab.sets = ()
    plane = await lab.open()
    lab.fake.kube.apiservers.clear()
    assert await sets_held(plane) == ()


async def test_where_no_apiserver_is_ready_that_is_said(lab: Lab, golden: Golden) -> None:
    plane = await lab.open()
    lab.fake.kube.apiservers.clear()
    with golden.raises(Unavailable):
        await sets_held(plane)


async def test_of_the_sets_of_one_owner_the_first_has_its_own_lock_and_the_others_the_main_one(lab: Lab) -> None:
    lab = Lab(lab.fake, sets=(IPAM, LIFE))
    plane = await lab.open()
    lab.holds(plane, CLOUD.value, "west-1", CLOUD)
    lab.holds(plane, LOCK, "west-1", CLOUD)
    assert [(each.guard, each.well) for each in await sets_held(plane)] == [(LOCK, True), (CLOUD.value, True)]


async def test_a_kube_controller_manager_that_can_hold_no_lock_of_a_set_runs_it_under_its_main_lock(lab: Lab) -> None:
    lab = Lab(lab.fake, sets=(IPAM.model_copy(update={"owner": KUBE}),))
    lab.owners = dict.fromkeys(lab.fake.names, (KUBE, Guard.MANAGER))
    plane = await lab.open()
    lab.holds(plane, KUBE.value, "east-1", KUBE)
    lab.lease(LOCK, "somebody who came before", program="kubectl")
    found = await only(plane)
    assert (found.guard, found.manager, found.well, found.why) == (KUBE.value, KUBE, True, ())


async def test_while_a_set_is_handed_over_it_is_shown_who_still_runs_it(lab: Lab, golden: Golden) -> None:
    lab.owners = {"east-1": (KUBE, Guard.MANAGER)}
    plane = await lab.open()
    lab.holds(plane, KUBE.value, "east-1", KUBE)
    lab.holds(plane, CLOUD.value, "west-1", CLOUD)
    found = await only(plane)
    assert (found.guard, found.manager, found.replica, found.well) == (KUBE.value, KUBE, "east-1", False)
    golden(found.why)


async def test_while_nobody_is_told_to_run_it_nobody_does(lab: Lab, golden: Golden) -> None:
    lab = Lab(lab.fake, sets=(IPAM.model_copy(update={"owner": KUBE}),))
    lab.owners = dict.fromkeys(lab.fake.names, (CLOUD, Guard.NONE))
    plane = await lab.open()
    lab.holds(plane, KUBE.value, "east-1", KUBE)
    found = await only(plane)
    assert (found.guard, found.well) == (KUBE.value, False)
    golden(found.why)


@pytest.mark.parametrize("there", [False, True])
async def test_a_lock_that_nobody_holds_is_told(lab: Lab, there: bool, golden: Golden) -> None:
    plane = await lab.open()
    if there:
        lab.lease(LOCK, "")
    found = await only(plane)
    assert (found.identity, found.manager, found.since, found.well) == ("", None, None, False)
    golden(found.why)


async def test_a_lock_that_ran_out_is_nobody_s_and_whose_it_was_is_told(lab: Lab, golden: Golden) -> None:
    plane = await lab.open()
    lab.holds(plane, LOCK, "west-1", CLOUD, ago=15.0)
    assert (await only(plane)).well
    lab.fake.clocks.pass_(1.0)
    found = await only(plane)
    assert (found.identity, found.renewed_ago, found.well) == ("", 16.0, False)
    golden(found.why)


async def test_a_stranger_is_told(lab: Lab, golden: Golden) -> None:
    plane = await lab.open()
    lab.lease(LOCK, "laptop_1f", program="ccm")
    found = await only(plane)
    assert (found.identity, found.manager, found.replica, found.well) == ("laptop_1f", CLOUD, "", False)
    golden(found.why)


async def test_two_who_say_that_they_hold_it_are_told(lab: Lab, golden: Golden) -> None:
    plane = await lab.open()
    for replica in ("west-1", "east-1"):
        lab.holds(plane, LOCK, replica, CLOUD)
    found = await only(plane)
    assert (found.replica, found.well) == ("", False)
    golden(found.why)


@pytest.mark.parametrize(
    ("machine", "apart", "difference"),
    [
        (103.0, 100.0, "3 s ahead of"),
        (97.0, 100.0, "3 s behind"),
        (102.0, 100.0, ""),
    ],
)
async def test_a_holder_s_clock_is_compared_with_the_apiserver_s_and_counts_its_renewals(
    lab: Lab, machine: float, apart: float, difference: str
) -> None:
    lab.clocks.ahead = {"m-west-1": machine, "m-east-1": apart}
    plane = await lab.open()
    lab.holds(plane, LOCK, "west-1", CLOUD, ago=1.0 - machine)
    found = await only(plane)
    assert (found.renewed_ago, found.well) == (1.0, True)
    wanted = (
        f"the clock of cloud-controller-manager of west-1 is {difference} the apiserver's: set it, and run NTP there"
    )
    assert found.why == ((wanted,) if difference else ())


@pytest.mark.parametrize(("ago", "reported"), [(-2.0, False), (-3.0, True)])
async def test_a_renewal_that_is_yet_to_come_is_told_where_no_clock_can_be_read(
    lab: Lab, ago: float, reported: bool
) -> None:
    plane = await lab.open()
    lab.holds(plane, LOCK, "west-1", CLOUD, ago=ago)
    assert ("3 s ahead of the apiserver's" in "".join((await only(plane)).why)) is reported


async def test_where_a_site_is_gone_its_clocks_are_not_known(lab: Lab) -> None:
    plane = await lab.open()
    plane.sites = {}
    lab.holds(plane, LOCK, "west-1", CLOUD)
    found = await only(plane)
    assert (found.well, found.why) == (True, ())


async def test_an_owner_that_may_not_hold_the_lock_is_told(lab: Lab, golden: Golden) -> None:
    lab.fake.kube.holders.remove((f"system:{CLOUD.value}", LOCK))
    plane = await lab.open()
    lab.holds(plane, LOCK, "west-1", CLOUD)
    found = await only(plane)
    assert found.well
    golden(found.why)
