"""New files for an apiserver that runs: seen to be taken up, or else remembered as what only a start makes."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import pytest
from fakes.kube import FakeKube
from fakes.site import FakeSite
from support.components import ALWAYS, programs_in
from support.golden import Golden
from support.small_plane import SmallPlane, small_plane

from quarterdeck.actions.carry_out import carry_out
from quarterdeck.actions.plane import Plane
from quarterdeck.actions.status import write_memory
from quarterdeck.api.plane.authentication import Authentication
from quarterdeck.components.template import Revisions, loaded_hash
from quarterdeck.engine.observation.assemble import ServerFacts
from quarterdeck.engine.observation.observe_servers import ServersObserver
from quarterdeck.engine.observation.observe_sites import SitesObserver
from quarterdeck.errors import Unavailable
from quarterdeck.kube.port import Address
from quarterdeck.model.components import Component
from quarterdeck.model.steps.units import ReloadUnit, StartUnit
from quarterdeck.model.units import UnitStatus
from quarterdeck.pki.issuance import ReplicaNames, with_replica

NEXT = "alpha-next"
ISSUER = {
    "issuer": {"url": "https://login.example", "audiences": ["a"]},
    "claimMappings": {"username": {"claim": "sub", "prefix": ""}},
}
STEP = ReloadUnit(site="east", why="", replica="east-1", component=Component.APISERVER, revision=NEXT)
UNIT = "alpha-east-1-kube-apiserver"


@dataclass
class Watching(FakeKube):
    """An apiserver that goes by the file that is there, if it ``takes`` it. ``asked``: how often it was asked."""

    site: FakeSite | None = None
    takes: bool = True
    first: str | None = None
    asked: int = 0

    async def loaded(self, apiserver: Address) -> str | None:
        self.asked += 1
        assert self.site is not None
        files = {each.path.name: each.content for each in self.site.files("east-a1").values()}
        digest = f"sha256:{hashlib.sha256(files['authentication.yaml']).hexdigest()}"
        self.first = self.first or digest
        return digest if self.takes else self.first


@pytest.fixture
async def small() -> SmallPlane:
    """A plane of one replica whose apiserver runs; another issuer is wanted."""
    made = await small_plane(replicas=1)
    plane = made.plane
    plane.programs = programs_in("/bin", "v1.33.5")
    before = plane.revisions.template("")
    issuers = Authentication.model_validate({"jwt": [ISSUER]}, strict=False)
    after = before.model_copy(update={"authentication": issuers})
    plane.revisions = Revisions(goal=NEXT, templates={"": before, NEXT: after})
    plane.kube = Watching(made.kube.apiservers, site=made.sites["east"])
    await made.sites["east"].create_volume("east-a1", "alpha-east-1", "standard")
    (record,) = plane.memory.replicas
    await write_memory(plane, replace(plane.memory, replicas=(replace(record, storage_class="standard"),)))
    names = ReplicaNames(replica="east-1", addresses=("127.0.0.1",), service_ip="10.96.0.1", programs=ALWAYS)
    plane.secrets = with_replica(plane.secrets, names, datetime.now(UTC))
    start = StartUnit(site="east", why="", replica="east-1", component=Component.APISERVER)
    await carry_out(plane, start, made.world)
    return made


async def status(small: SmallPlane) -> UnitStatus:
    return next(each for each in await small.sites["east"].units("east-a1") if each.name == UNIT)


def kube(plane: Plane) -> Watching:
    assert isinstance(plane.kube, Watching)
    return plane.kube


async def test_a_program_that_runs_has_its_new_files_once_it_says_so(small: SmallPlane) -> None:
    before = await status(small)
    await carry_out(small.plane, STEP, small.world)
    after = await status(small)
    assert after.pid == before.pid
    assert after.digest != before.digest
    assert small.plane.memory.replica("east-1").revision == "", "it is of the next one when that is seen"


async def test_one_that_has_not_taken_them_up_after_a_while_is_restarted(small: SmallPlane) -> None:
    kube(small.plane).takes = False
    plane = small.plane
    plane.guard = Guard()  # type: ignore[assignment]
    observer = ServersObserver(plane=plane)
    await seen(plane, observer)
    await carry_out(plane, STEP, small.world)
    facts = await looked(plane, observer)
    assert (facts.loaded, facts.given, facts.stuck) == ({""}, {NEXT}, frozenset())
    plane.given["east-1", NEXT] -= 60.0
    facts = await looked(plane, observer)
    assert (facts.loaded, facts.given, facts.stuck) == ({""}, frozenset(), {NEXT})


async def test_one_that_was_started_with_other_arguments_is_left_alone_and_remembered(
    small: SmallPlane, golden: Golden
) -> None:
    before = await status(small)
    small.plane.programs = programs_in("/elsewhere")
    with golden.raises(Unavailable):
        await carry_out(small.plane, STEP, small.world)
    assert await status(small) == before
    assert (await looked(small.plane, ServersObserver(plane=small.plane))).stuck == {NEXT}


class Guard:
    """Of somebody who drives."""

    async def check(self) -> None: ...

    lease = None


async def looked(plane: Plane, observer: ServersObserver) -> ServerFacts:
    sites = await SitesObserver(plane=plane).observe(("east",))
    (facts,) = (await observer.observe(plane.memory, sites)).values()
    assert facts.answer is not None
    return facts.answer


async def seen(plane: Plane, observer: ServersObserver) -> frozenset[str] | None:
    return (await looked(plane, observer)).loaded


async def test_who_drives_asks_what_an_apiserver_goes_by_and_nobody_else_does(small: SmallPlane) -> None:
    plane, asked = small.plane, kube(small.plane)
    assert await seen(plane, ServersObserver(plane=plane)) is None
    assert asked.asked == 0
    plane.guard = Guard()  # type: ignore[assignment]
    observer = ServersObserver(plane=plane)
    assert await seen(plane, observer) == {""}
    plane.revisions = replace(plane.revisions, goal="", templates={"": plane.revisions.template("")})
    before = asked.asked
    assert await seen(plane, observer) == {""}
    assert asked.asked == before, "it is known, and nothing is to change"


async def test_versions_that_do_not_say_what_they_go_by_are_restarted(small: SmallPlane) -> None:
    template = small.plane.revisions.template("").model_copy(update={"kubernetes_version": "v1.33.5"})
    assert loaded_hash(template) is None
