"""Revisions: made when a plane is asked for, by its files of then; named by replicas; gone when nobody needs them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any, cast

import pytest
from pydantic import SecretStr
from support.components import programs_in
from support.golden import Golden
from support.resources import with_spec, with_status
from support.small_plane import small_plane
from support.templates import template

from quarterdeck.actions.status import write_memory
from quarterdeck.actions.units import start_unit
from quarterdeck.api.apply import applied_plane
from quarterdeck.api.belongings import PlaneSecrets
from quarterdeck.api.controlplane import ControlPlane, Encryption, new_control_plane
from quarterdeck.api.operation import OperationType
from quarterdeck.api.plane.apiserver import Audit
from quarterdeck.api.plane.etcd import Etcd
from quarterdeck.api.plane.memory import memory_to_status
from quarterdeck.api.revision import ReplicaRevision, revision_of
from quarterdeck.components.ports import seat_at
from quarterdeck.components.template import Revisions
from quarterdeck.engine.observation.observe import observer_of
from quarterdeck.engine.workspace import operations, recorded, revisions
from quarterdeck.engine.workspace.belongings import drop, secrets_of
from quarterdeck.engine.workspace.home import Home
from quarterdeck.engine.workspace.operations import Requester
from quarterdeck.errors import Corrupt, InvalidInput
from quarterdeck.model.components import Component
from quarterdeck.model.memory import Memory, Rejection, Replica
from quarterdeck.model.seats import Slot
from quarterdeck.model.steps.units import StartUnit
from quarterdeck.model.units import UnitSpec
from quarterdeck.model.world import World
from quarterdeck.pki.codec import encode
from quarterdeck.sites.port import SitePort

ASKER = Requester(name="a test")
POLICY = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n"


class Recording:
    """A site, which only keeps the units that it is told to start."""

    def __init__(self, site: SitePort) -> None:
        self._site = site
        self.started: dict[tuple[str, str], UnitSpec] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._site, name)

    async def start_unit(self, machine: str, spec: UnitSpec) -> None:
        self.started[machine, spec.name] = spec


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[Home]:
    made = await Home.open(tmp_path / "home")
    yield made
    await made.close()


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    file = tmp_path / "policy.yaml"
    file.write_text(POLICY)
    return file


async def plane(home: Home) -> ControlPlane:
    return await home.store.get(ControlPlane, "alpha")


async def goal(home: Home) -> ReplicaRevision:
    return await home.store.get(ReplicaRevision, (await plane(home)).status.revision)


async def created(home: Home, policy: Path | None = None) -> ControlPlane:
    wanted = new_control_plane("alpha", site="east")
    if policy is not None:
        audit = Audit(policy_file=PurePosixPath(policy))
        wanted = with_spec(wanted, audit=audit)
    await operations.create(home, wanted, ASKER)
    return await plane(home)


async def changed(home: Home, kind: OperationType = OperationType.APPLY, **spec: object) -> ReplicaRevision:
    now = await plane(home)
    wanted = with_spec(now, **spec)
    wanted = applied_plane(now, wanted) if kind is OperationType.APPLY else wanted
    await operations.change(home, wanted, kind, ASKER)
    return await goal(home)


async def cut_short(home: Home) -> ControlPlane:
    """A plane whose creator died before it had stored a revision."""
    now = await created(home)
    await home.store.delete(ReplicaRevision, now.status.revision)
    return await home.store.update(with_status(now, revision=""))


async def test_a_plane_is_created_with_its_revision_which_belongs_to_it(home: Home, policy: Path) -> None:
    now = await created(home, policy)
    made = await goal(home)
    assert made.spec.audit.policy == POLICY
    assert [(each.kind, each.name, each.uid) for each in made.metadata.owner_references] == [
        ("ControlPlane", "alpha", now.metadata.uid)
    ]


async def test_a_policy_is_read_when_it_is_applied_and_never_again(home: Home, policy: Path, golden: Golden) -> None:
    await created(home, policy)
    first = await goal(home)
    policy.write_text(POLICY + "# another\n")
    assert (await changed(home, OperationType.SCALE, replicas=5)).name == first.name, "nobody asked for it"
    second = await changed(home)
    assert second.spec.audit.policy == policy.read_text(), "the same document, and another file"
    policy.unlink()
    assert (await changed(home, OperationType.SCALE, replicas=3)).name == second.name, "nobody depends on the file"
    with golden.raises(InvalidInput):
        await changed(home, encryption=Encryption(secrets=False))
    assert (await plane(home)).spec.encryption == Encryption(), "what is refused changes nothing"


async def test_a_changed_policy_is_a_change_and_an_abort_goes_back_to_the_one_of_before(
    home: Home, policy: Path
) -> None:
    await created(home, policy)
    first = await goal(home)
    policy.write_text(POLICY + "# another\n")
    await changed(home)
    asked = await recorded.current(home.store, "alpha")
    assert asked is not None
    assert asked.spec.from_ is not None
    assert not operations.reached(asked.spec.from_, await plane(home)), "equal specs, and not the same"
    policy.unlink()
    back = operations.back(await plane(home), asked.spec.from_)
    await operations.change(home, back, OperationType.ABORT, ASKER)
    assert (await goal(home)).name == first.name


async def test_going_back_finds_the_revision_of_before(home: Home) -> None:
    await created(home)
    first = await goal(home)
    second = await changed(home, encryption=Encryption(secrets=False))
    assert first.name != second.name
    assert (await changed(home, encryption=Encryption())).metadata.uid == first.metadata.uid


async def test_a_plane_without_a_revision_is_looked_at_without_a_write_and_gets_one_when_it_is_driven(
    home: Home,
) -> None:
    before = await cut_short(home)
    seen = await revisions.known(home.store, before, guess=True)
    assert seen.template("") == (await revisions.wanted(home.store, before)).spec
    assert await plane(home) == before
    assert await home.store.list(ReplicaRevision) == ()
    now = await revisions.established(home.store, before)
    assert now.status.revision
    assert (await goal(home)).spec == seen.template("")
    assert await revisions.established(home.store, now) == now, "once"
    assert await revisions.established(home.store, before) == now, "another process has done the same meanwhile"


async def test_revisions_that_nobody_names_go_but_for_the_last_three(home: Home) -> None:
    await created(home)
    first = (await goal(home)).name
    names = [(await changed(home, etcd=Etcd(quota_bytes=each * 2**30))).name for each in range(1, 7)]
    await revisions.forget_unused(home.store, await plane(home), [first])
    left = {each.name for each in await home.store.list(ReplicaRevision)}
    assert left == {first, *names[2:]}, "the one that an operation names, the goal, and three others"


async def test_a_plane_goes_with_its_revisions_and_another_one_of_its_name_finds_none(home: Home) -> None:
    stray = revision_of(await created(home), template())
    await home.store.create(stray)
    other = await home.store.create(new_control_plane("alpha-2", site="east"))
    kept = await home.store.create(revision_of(other, template()))
    await operations.delete(home, "alpha", ASKER)
    await drop(home.store, await plane(home))
    assert await home.store.list(ReplicaRevision) == (kept,)


async def test_a_unit_is_rendered_from_its_replicas_own_revision_whatever_is_wanted() -> None:
    plane = (await small_plane()).plane
    first, second = template(), template(encryption=Encryption(secrets=False))
    plane.revisions = Revisions(goal="alpha-b", templates={"alpha-a": first, "alpha-b": second})
    plane.programs = programs_in("/programs")
    site = Recording(plane.sites["east"])
    plane.sites = {"east": cast("SitePort", site)}
    stored = await plane.store.get(PlaneSecrets, plane.name)
    await plane.store.update(stored.model_copy(update={"data": SecretStr(encode(plane.secrets))}))
    runs = {"east-1": "alpha-a", "east-2": "alpha-b"}
    records = (
        replace(each, started=False, storage_class="standard", revision=runs.get(each.name, ""))
        for each in plane.memory.replicas
    )
    await write_memory(plane, replace(plane.memory, replicas=tuple(records)))
    writes: dict[str, bytes] = {}
    for name in runs:
        step = StartUnit(site="east", why="", replica=name, component=Component.APISERVER)
        await start_unit(plane, step, World(slots=(), memory=plane.memory, now=0.0))
        (spec,) = (site.started.pop(each) for each in tuple(site.started))
        writes[name] = next(each.content for each in spec.files if each.path.name == "encryption.yaml")
    assert writes["east-1"].index(b"secretbox") < writes["east-1"].index(b"identity")
    assert writes["east-2"].index(b"identity") < writes["east-2"].index(b"secretbox")


async def test_nothing_is_rendered_from_a_guess(golden: Golden) -> None:
    found = Revisions(goal="alpha-a", templates={"alpha-a": template()})
    with golden.raises(Corrupt):
        found.template("alpha-b")


async def test_volumes_are_wanted_as_the_revision_has_them_that_is_gone_back_to(home: Home) -> None:
    before = await created(home)
    await secrets_of(home.store, before)
    record = Replica(
        name="east-1",
        slot=Slot(site="east", zone="a"),
        machine="east-a1",
        seat=seat_at("east-a1", "127.0.0.1", 0),
        storage_class="standard",
        revision=before.status.revision,
    )
    await home.store.update(with_status(before, memory=memory_to_status(Memory(replicas=(record,)))))
    await changed(home, etcd=Etcd(storage_class="fast"))
    for given_up, storage_class in ((False, "fast"), (True, "standard")):
        now = await plane(home)
        async with AsyncExitStack() as stack:
            opened = await home.plane(now, stack)
            rejected = Rejection(revision=now.status.revision, why="it ends") if given_up else None
            await write_memory(opened, replace(opened.memory, rejected=rejected))
            assert (await (await observer_of(opened)).observe()).storage_class == storage_class
    assert (await plane(home)).status.revision != before.status.revision
