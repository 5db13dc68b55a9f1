"""A person's word on machines and replicas: who says what is left alone, what a drain comes to, and what is refused."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from support.cli_lab import Cli
from support.golden import Golden
from support.resources import with_status

from quarterdeck.api.controlplane import ControlPlane, new_control_plane
from quarterdeck.api.operation import OperationType
from quarterdeck.api.plane.memory import memory_to_status
from quarterdeck.api.site import Cordon, Site
from quarterdeck.app import Examined, Quarterdeck, Requester, drains
from quarterdeck.engine.reconcile.drive import Engine
from quarterdeck.engine.workspace import operations, site_use
from quarterdeck.errors import Conflict, InvalidInput, NotFound, PreconditionFailed
from quarterdeck.model.memory import Memory, Replica
from quarterdeck.model.seats import Slot
from quarterdeck.stores.port import amend

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
ANN = Requester(name="ann@desk", now=lambda: NOW)


@pytest.fixture
async def face(tmp_path: Path) -> AsyncIterator[Quarterdeck]:
    async with Quarterdeck.open(tmp_path / "home", requester=ANN) as made:
        for name in ("alpha", "beta"):
            await operations.create(made._home, new_control_plane(name, site="east"), ANN)
            await amend(made._home.store, ControlPlane, name, with_replicas)
            await finished(made, name)
        yield made


def with_replicas(plane: ControlPlane) -> ControlPlane:
    """One in each zone of east."""
    names = {f"{plane.name}-{number}": zone for number, zone in enumerate("abc", 1)}
    memory = Memory(
        created=True,
        served_site="east",
        replicas=tuple(
            Replica(name=name, slot=Slot(site="east", zone=zone), machine=f"east-{zone}1")
            for name, zone in names.items()
        ),
    )
    return with_status(plane, memory=memory_to_status(memory))


async def finished(face: Quarterdeck, name: str) -> None:
    await operations.supersede(face._home.store, name, ANN)


@pytest.fixture
def simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    """No plane runs, so that what is asked of one is taken to be possible."""

    async def examined(
        engine: Engine, plane: ControlPlane, names: tuple[str, ...], site: str, machine: str | None
    ) -> Examined:
        wanted = plane.with_spec(replace_replicas=names)
        return Examined(kind=OperationType.REPLACE, wanted=wanted, current=plane)

    monkeypatch.setattr(drains, "_examined", examined)


async def test_a_cordon_says_who_and_when_and_goes_as_it_came(face: Quarterdeck, golden: Golden) -> None:
    assert await face.sites.cordon("east", "east-b1")
    assert not await face.sites.cordon("east", "east-b1"), "it is no news"
    assert (await face.sites.get("east")).spec.cordons == (Cordon(machine="east-b1", by="ann@desk", since=NOW),)
    found = {each.machine.name: each.cordoned for each in await face.sites.machines("east")}
    golden(found["east-b1"])
    assert [name for name, words in found.items() if words] == ["east-b1"]
    assert await face.sites.uncordon("east", "east-b1")
    assert not await face.sites.uncordon("east", "east-b1")
    assert (await face.sites.get("east")).spec.cordons == ()


async def test_a_site_is_cordoned_as_a_whole_and_no_machine_of_it_is_uncordoned_alone(
    face: Quarterdeck, golden: Golden
) -> None:
    await face.sites.cordon("east", "east-b1")
    await face.sites.cordon("east")
    assert all(each.cordoned for each in await face.sites.machines("east") if str(each.machine.role) == "control")
    with golden.raises(Conflict):
        await face.sites.uncordon("east", "east-c1")
    await face.sites.uncordon("east")
    assert (await face.sites.get("east")).spec.cordons == ()


async def test_the_machine_of_load_balancers_is_none_to_be_cordoned_and_it_is_said_whose_they_are(
    face: Quarterdeck,
    golden: Golden,
) -> None:
    for call in (face.sites.cordon, face.plan_drain):
        with golden.raises(InvalidInput):
            await call("east", "east-edge")
    with golden.raises(NotFound):
        await face.sites.cordon("east", "east-z9")
    with pytest.raises(NotFound, match='"north"'):
        await face.sites.cordon("north")


async def test_a_document_of_a_site_that_does_not_speak_of_cordons_leaves_them(face: Quarterdeck) -> None:
    await face.sites.cordon("east", "east-b1")
    declared = Site.model_validate({"metadata": {"name": "east"}, "spec": {"machinesPerZone": 3}})
    await face.sites.apply(declared)
    assert [each.machine for each in (await face.sites.get("east")).spec.cordons] == ["east-b1"]
    await face.sites.apply(
        Site.model_validate({"metadata": {"name": "east"}, "spec": {"machinesPerZone": 3, "cordons": ()}})
    )
    assert (await face.sites.get("east")).spec.cordons == ()


async def test_a_drain_cordons_the_machine_and_asks_each_plane_for_the_exchange_of_what_it_has_there(
    face: Quarterdeck, simulated: None
) -> None:
    drain = await face.plan_drain("east", "east-b1")
    assert (await face.sites.get("east")).spec.cordons == (), "nothing is changed before it is asked for"
    asked = await face.drain(drain)
    assert [(each.spec.plane, each.spec.type) for each in asked] == [
        ("alpha", OperationType.REPLACE),
        ("beta", OperationType.REPLACE),
    ]
    assert (await face.plane("alpha")).spec.replace_replicas == ("alpha-2",)
    assert [each.machine for each in (await face.sites.get("east")).spec.cordons] == ["east-b1"]
    assert await face.left_to_drain("east", "east-b1") == ("alpha/alpha-2", "beta/beta-2")
    assert await face.left_to_drain("east", "east-b2") == ()


async def test_a_drain_that_one_plane_cannot_follow_changes_nothing_and_names_it(
    face: Quarterdeck, golden: Golden
) -> None:
    await face.pause("alpha")
    await face.cordon("beta", "beta-2")
    drain = await face.plan_drain("east", "east-b1")
    with pytest.raises(PreconditionFailed) as refused:
        await face.drain(drain)
    golden(refused.value.seen)
    assert "'resume alpha'" in refused.value.next_step
    golden(refused.value.next_step)
    assert (await face.sites.get("east")).spec.cordons == ()


async def test_a_whole_site_is_drained_by_moving_what_is_placed_there(face: Quarterdeck, golden: Golden) -> None:
    drain = await face.plan_drain("east")
    assert drain.served == ("alpha", "beta")
    with golden.raises(PreconditionFailed):
        drain.require()
    await face.drain(await face.plan_drain("west"))
    assert (await face.sites.get("west")).spec.cordons[0].machine is None


async def test_a_replica_is_cordoned_until_a_person_says_otherwise_whatever_else_is_asked_for(
    face: Quarterdeck,
    golden: Golden,
) -> None:
    assert await face.cordon("alpha", "alpha-2")
    assert not await face.cordon("alpha", "alpha-2")
    plane = await face.plane("alpha")
    assert plane.spec.cordoned == ("alpha-2",)
    golden(await site_use.of_plane(face._home.store, plane))
    changed = plane.with_spec(service_cidrs=("10.0.0.0/12",))
    operation = await operations.change(face._home, changed, OperationType.APPLY, ANN)
    assert operation.spec.from_ is not None
    await face.cordon("alpha", "alpha-3")
    assert operation.spec.to is not None
    assert operations.reached(operation.spec.to, await face.plane("alpha")), "and it is no part of what was asked for"
    back = operations.back(await face.plane("alpha"), operation.spec.from_)
    assert back.spec.cordoned == ("alpha-2", "alpha-3"), "an abort takes no cordon back"
    assert await face.uncordon("alpha", "alpha-2")
    assert not await face.uncordon("alpha", "alpha-2")
    with golden.raises(NotFound):
        await face.cordon("alpha", "alpha-9")


async def test_what_a_person_wants_replaced_is_not_cordoned(face: Quarterdeck, golden: Golden) -> None:
    await amend(face._home.store, ControlPlane, "alpha", lambda seen: seen.with_spec(replace_replicas=("alpha-2",)))
    with golden.raises(Conflict):
        await face.cordon("alpha", "alpha-2")


def test_the_command_line_says_what_is_cordoned(cli: Cli, golden: Golden) -> None:
    golden(cli("site", "cordon", "east", "east-b1").out)
    assert "cordoned already" in cli("site", "cordon", "east", "east-b1").out
    assert "east-b1" in cli("site", "list").out
    assert "machine: east-b1" in cli("site", "show", "east").out
    assert "cordoned by " in cli("site", "machines", "east").out
    golden(cli("site", "drain", "east", "east-b2", "--yes").out)
    golden(cli("site", "uncordon", "east").out)
    cli.plane()
    golden(cli.refused("replica", "cordon", "demo", "demo-1", code=3).err)
