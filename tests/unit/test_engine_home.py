"""What a home keeps of a plane: its secrets, which are its own, and its place at the door."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path, PurePosixPath

import pytest
from model.stories import whats
from pydantic import SecretStr
from support.golden import Golden
from support.resources import with_spec

from quarterdeck.api.base import Metadata
from quarterdeck.api.belongings import PlaneSecrets as SecretsResource
from quarterdeck.api.controlplane import PLANE_FINALIZER, ControlPlane, new_control_plane
from quarterdeck.api.plane.apiserver import Audit
from quarterdeck.api.plane.certificates import Certificates
from quarterdeck.api.plane.endpoint import EndpointMode, Rfc2136, Tsig
from quarterdeck.api.plane.memory import MemoryStatus, ReplicaStatus, memory_to_status
from quarterdeck.api.site import Site
from quarterdeck.components.ports import seat_at
from quarterdeck.endpoint.door_guests import add_guest, guests_file, read_guests
from quarterdeck.engine.observation.observe import observer_of
from quarterdeck.engine.status import look
from quarterdeck.engine.workspace import operations
from quarterdeck.engine.workspace.belongings import secrets_of
from quarterdeck.engine.workspace.home import Home
from quarterdeck.engine.workspace.operations import Requester
from quarterdeck.engine.workspace.secrets_in_use import settle_secrets
from quarterdeck.errors import Conflict, Corrupt, NotFound
from quarterdeck.model.memory import Memory, Replica
from quarterdeck.model.seats import Slot
from quarterdeck.model.units import MachineState
from quarterdeck.model.world import World
from quarterdeck.pki.codec import encode
from quarterdeck.planner.planner import plan as planned

ASKER = Requester(name="a test")


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[Home]:
    made = await Home.open(tmp_path / "home")
    yield made
    await made.close()


def at(machine: str, name: str = "east-1", storage_class: str = "standard") -> ReplicaStatus:
    replica = Replica(
        name=name,
        slot=Slot(site="east", zone="b"),
        machine=machine,
        seat=seat_at(machine, "127.9.9.1", 0),
        storage_class=storage_class,
        listed=True,
        started=True,
    )
    return memory_to_status(Memory(replicas=(replica,))).replicas[0]


async def with_memory(home: Home, *replicas: ReplicaStatus, **endpoint: object) -> ControlPlane:
    plane = await created(home)
    status = plane.status.model_copy(
        update={"memory": MemoryStatus(next_ordinal=2, created=True, replicas=replicas, served_site="east")}
    )
    at_once = endpoint or {"mode": EndpointMode.ADDRESS, "address": "127.9.9.9"}  # no DNS server to wait for
    spec = plane.spec.model_copy(update={"endpoint": plane.spec.endpoint.model_copy(update=at_once)})
    await secrets_of(home.store, plane)
    return await home.store.update(plane.model_copy(update={"status": status, "spec": spec}))


async def looked_at(home: Home, resource: ControlPlane) -> World:
    async with AsyncExitStack() as stack:
        return await (await observer_of(await home.plane(resource, stack))).observe()


async def created(home: Home, name: str = "alpha") -> ControlPlane:
    await operations.create(home, new_control_plane(name, site="east"), ASKER)
    return await home.store.get(ControlPlane, name)


async def stored(home: Home, name: str = "alpha") -> SecretsResource:
    return await home.store.get(SecretsResource, name)


async def test_secrets_are_made_once_and_say_whose_they_are(home: Home) -> None:
    plane = await created(home)
    first, second = await asyncio.gather(secrets_of(home.store, plane), secrets_of(home.store, plane))
    assert first == second == await secrets_of(home.store, plane)
    assert (await stored(home)).plane_uid == plane.metadata.uid


async def test_a_plane_goes_with_its_secrets_and_its_place_at_the_door(home: Home) -> None:
    plane, other = await created(home), await created(home, "beta")
    kept = await secrets_of(home.store, other)
    await secrets_of(home.store, plane)
    guests = guests_file(home.folder, "loopback")
    for each in (plane, other):
        add_guest(guests, each.name, uid=str(each.metadata.uid), host=each.host, port=6443)
    await home.forget(plane)
    for kind in (ControlPlane, SecretsResource):
        with pytest.raises(NotFound):
            await home.store.get(kind, "alpha")
    assert set(read_guests(guests)) == {"beta"}
    assert await secrets_of(home.store, other) == kept


async def test_a_plane_never_inherits_the_authority_of_one_that_had_its_name(home: Home) -> None:
    former = await secrets_of(home.store, await created(home))
    # A deletion that ended half way.
    await home.store.delete_together((ControlPlane, "alpha"), finalizer=PLANE_FINALIZER)
    plane = await created(home)
    assert (await secrets_of(home.store, plane)).kubernetes_ca != former.kubernetes_ca


async def test_whoever_still_holds_a_deleted_plane_makes_no_secrets_and_takes_nobody_elses(
    home: Home, golden: Golden
) -> None:
    before = await created(home)
    await secrets_of(home.store, before)
    await home.forget(before)
    with pytest.raises(NotFound):
        await secrets_of(home.store, before)
    with pytest.raises(NotFound):
        await stored(home)
    plane = await created(home)
    secrets = await secrets_of(home.store, plane)
    with golden.raises(Conflict):
        await secrets_of(home.store, before)
    assert await secrets_of(home.store, plane) == secrets


async def test_secrets_of_another_plane_that_came_between_are_replaced(home: Home) -> None:
    former = await secrets_of(home.store, await created(home, "beta"))
    plane = await created(home)
    stray = SecretsResource(metadata=Metadata(name="alpha"), plane_uid="another", data=SecretStr(encode(former)))
    await home.store.create(stray)
    assert (await secrets_of(home.store, plane)).kubernetes_ca != former.kubernetes_ca
    assert (await stored(home)).plane_uid == plane.metadata.uid


async def test_a_plane_that_runs_never_gets_a_new_authority(home: Home, golden: Golden) -> None:
    """Nothing of it would be trusted any more, and its keys would be there twice."""
    plane = await with_memory(home, at("east-b1"))
    await home.store.delete(SecretsResource, "alpha")
    with golden.raises(Corrupt):
        await secrets_of(home.store, plane)
    with pytest.raises(NotFound):
        await stored(home)
    stray = SecretsResource(metadata=Metadata(name="alpha"), plane_uid="another", data=SecretStr("{}"))
    await home.store.create(stray)
    with pytest.raises(Corrupt):
        await secrets_of(home.store, plane)
    assert (await stored(home)).plane_uid == "another"


async def test_quarterdecks_own_certificates_are_issued_again_once_when_all_are_wanted_again(home: Home) -> None:
    plane = await created(home)
    before = await secrets_of(home.store, plane)
    await settle_secrets(home.store, plane)
    assert await secrets_of(home.store, plane) == before
    wanted = with_spec(plane, certificates=Certificates(generation=1))
    await settle_secrets(home.store, wanted)
    after = await secrets_of(home.store, plane)
    assert (after.manager == before.manager, after.etcd_ca == before.etcd_ca) == (False, True)
    await settle_secrets(home.store, wanted)
    assert await secrets_of(home.store, plane) == after


async def test_a_plane_without_secrets_can_be_deleted(home: Home) -> None:
    plane = await with_memory(home, at("east-b1"))
    await home.store.delete(SecretsResource, "alpha")
    await operations.delete(home, plane.name, ASKER)
    assert (await looked_at(home, await home.store.get(ControlPlane, "alpha"))).memory.replicas


async def test_an_audit_policy_that_is_gone_hides_nothing(home: Home, tmp_path: Path) -> None:
    plane = await with_memory(home, at("east-b1"))
    audit = Audit(policy_file=PurePosixPath(tmp_path / "gone.yaml"))
    status = plane.status.model_copy(update={"revision": ""})
    spec = plane.spec.model_copy(update={"audit": audit})
    await home.store.update(plane.model_copy(update={"spec": spec, "status": status}))
    seen = await look(home, "alpha")
    assert seen.world.replica("east-1").machine is MachineState.UP


async def test_a_plane_whose_site_is_gone_is_seen_and_nothing_of_it_is_taken_for_lost(home: Home) -> None:
    plane = await with_memory(home, at("east-b1"))
    await home.store.delete(Site, "east")  # by hand: the command refuses it
    world = await looked_at(home, plane)
    fact = world.replica("east-1")
    assert (fact.machine, fact.has_data) == (MachineState.UNREACHABLE, None)
    assert world.machines == (), "nothing new is placed there"
    seen = planned(replace(world, deleting=True, record_known=True))
    assert not seen.done
    assert any("machine east-b1 of east-1" in each for each in whats(seen))


async def test_a_machine_that_its_site_has_no_more_is_unreachable(home: Home) -> None:
    plane = await with_memory(home, at("east-z9"))
    fact = (await looked_at(home, plane)).replica("east-1")
    assert (fact.machine, fact.has_data) == (MachineState.UNREACHABLE, None)


async def test_data_of_a_storage_class_that_is_gone_is_unknown_not_lost(home: Home) -> None:
    plane = await with_memory(home, at("east-b1", storage_class="former"))
    fact = (await looked_at(home, plane)).replica("east-1")
    assert (fact.machine, fact.has_data) == (MachineState.UP, None)


async def test_a_key_that_is_gone_makes_the_name_unknown_and_hides_nothing_else(
    home: Home, tmp_path: Path, golden: Golden
) -> None:
    tsig = Tsig(key_name="quarterdeck", secret_file=PurePosixPath(tmp_path / "gone.key"))
    update = Rfc2136(server="127.0.0.1", zone="planes.test", tsig=tsig)
    plane = await with_memory(home, at("east-b1"), mode=EndpointMode.RFC2136, rfc2136=update)
    world = await looked_at(home, plane)
    assert not world.record_known
    golden(world.record_trouble)
    assert world.replica("east-1").machine is MachineState.UP


async def test_a_deletion_waits_for_the_load_balancer_of_a_site_that_is_gone(home: Home) -> None:
    plane = await with_memory(home)
    await home.store.delete(Site, "east")
    world = replace(await looked_at(home, plane), deleting=True, record_known=True)
    assert not world.balancer("east").reachable
    assert any("the load balancer's machine at east" in each for each in whats(planned(world)))
