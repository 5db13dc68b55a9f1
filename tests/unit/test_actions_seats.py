"""Seats of replicas: what the ledgers of machines and the memories of planes say, and when."""

from __future__ import annotations

from dataclasses import replace

import pytest
from cryptography import x509
from fakes.site import FakeSite
from fakes.store import MemoryStore
from pydantic import SecretStr
from support.resources import with_spec, with_status
from support.small_plane import SmallPlane, small_plane

from quarterdeck.actions.addresses import apiservers, seat_of
from quarterdeck.actions.carry_out import carry_out
from quarterdeck.actions.certificates import certificates_of
from quarterdeck.actions.seats import settle_seats, take_seat
from quarterdeck.actions.status import refresh
from quarterdeck.actions.volumes import replica_settings, volume_name
from quarterdeck.api.belongings import PlaneSecrets
from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.plane.endpoint import LeadsTo
from quarterdeck.api.plane.memory import memory_to_status
from quarterdeck.components.ports import LAST_BLOCK, ports_of, seat_at
from quarterdeck.errors import Unavailable
from quarterdeck.model.capabilities import NEEDED, Capability
from quarterdeck.model.components import Component
from quarterdeck.model.seats import Slot, TakenSeat
from quarterdeck.model.steps.placement import PlaceReplica, ReleaseReplica
from quarterdeck.pki.codec import encode

A1 = "east-a1"
#: The port of the apiserver of a replica that gets the last block.
LAST = ports_of(LAST_BLOCK)["kube-apiserver"]
NEW = PlaceReplica(
    site="east",
    why="",
    replica="east-9",
    machine=A1,
    slot=Slot(site="east", zone="a"),
)


async def replicas_of(small: SmallPlane, machine: str = A1) -> dict[str, int]:
    """The replicas that the ledger of a machine knows, with the port of their apiserver."""
    taken = await small.sites["east"].seats(machine)
    return {each.replica: each.seat.listen("kube-apiserver").port for each in taken}


async def stored(small: SmallPlane) -> dict[str, int | None]:
    """The same, of all replicas that the plane's stored memory has."""
    await refresh(small.plane)
    seats = {each.name: each.seat for each in small.plane.memory.replicas}
    return {name: seat and seat.listen("kube-apiserver").port for name, seat in seats.items()}


async def test_a_placed_replica_has_its_seat_written_down_with_it() -> None:
    small = await small_plane(replicas=0)
    await carry_out(small.plane, NEW, small.world)
    assert await stored(small) == await replicas_of(small) == {"east-9": 6443}


@pytest.mark.parametrize(("leads_to", "port"), [("load-balancers", 16443), ("apiservers", 6443)])
async def test_where_hosts_may_have_load_balancers_too_apiservers_are_at_another_port_unless_clients_come_there(
    leads_to: str, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FakeSite, "capabilities", NEEDED | {Capability.ONE_ADDRESS})
    small = await small_plane(replicas=0)
    endpoint = small.plane.resource.spec.endpoint.model_copy(update={"leads_to": LeadsTo(leads_to)})
    small.plane.resource = with_spec(small.plane.resource, endpoint=endpoint)
    seat = await take_seat(small.plane, NEW.slot.site, NEW.machine, NEW.replica)
    assert seat.listen("kube-apiserver").port == port
    assert seat.listen("etcd-peer").port == 2380


async def test_a_replica_that_was_not_written_down_gets_the_same_seat_again() -> None:
    small = await small_plane(replicas=0)
    await take_seat(small.plane, NEW.slot.site, NEW.machine, NEW.replica)
    await carry_out(small.plane, replace(NEW, replica="east-10"), small.world)
    await carry_out(small.plane, NEW, small.world)
    assert await stored(small) == {"east-9": 6443, "east-10": LAST}


async def test_a_seat_of_a_replica_that_was_never_written_down_is_let_go_by_the_next_driver() -> None:
    """Its name may never come again."""
    small = await small_plane(replicas=0)
    await take_seat(small.plane, NEW.slot.site, NEW.machine, NEW.replica)
    await small.sites["east"].allocate(A1, "another", "any-1", ports_of(1))
    await settle_seats(small.plane)
    assert await replicas_of(small) == {"any-1": 6453}, "that of another plane stays"


async def test_two_replicas_of_one_plane_on_one_machine_share_nothing() -> None:
    small = await small_plane()
    await carry_out(small.plane, NEW, small.world)
    plane, old, new = small.plane, small.record("east-1"), small.record("east-9")
    assert old.machine == new.machine == A1
    ports = [{each.listen for each in seat_of(record).ports} for record in (old, new)]
    assert not ports[0] & ports[1]
    old, new = (replace(each, storage_class="standard") for each in (old, new))
    await plane.site("east").create_volume(A1, volume_name(plane, old), "standard")
    settings = [await replica_settings(plane, record, Component.APISERVER) for record in (old, new)]
    assert settings[0].volume != settings[1].volume
    assert settings[0].audit != settings[1].audit, "each would move away what the other writes to"
    assert settings[0].folders != settings[1].folders


async def test_a_seat_with_an_address_of_its_own_is_certified_for_where_its_connections_come_from_as_well() -> None:
    """A member of etcd lets a peer in only if that one's certificate has the address that it comes from."""
    small = await small_plane()
    stored = await small.plane.store.get(PlaneSecrets, small.plane.name)
    data = SecretStr(encode(small.plane.secrets))
    await small.plane.store.update(stored.model_copy(update={"data": data}), lease=small.plane.lease)
    record = replace(small.record("east-1"), name="east-9", seat=seat_at(A1, "100.64.64.65", 0))
    found = x509.load_pem_x509_certificate((await certificates_of(small.plane, record)).pairs["etcd_peer"].certificate)
    names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    addresses = {str(each) for each in names.get_values_for_type(x509.IPAddress)}
    assert addresses >= {"100.64.64.65", small.plane.machines["east", A1].address}


async def test_a_name_may_lead_to_any_of_its_apiservers_and_none_is_certified_for_the_address_of_another() -> None:
    small = await small_plane()
    await settle_seats(small.plane)
    own = {each.host for each in apiservers(small.plane).values()}
    assert len(own) == 3
    assert small.plane.claim.addresses >= own
    assert small.plane.addresses.isdisjoint(own), "what each one's certificate has besides its own"


async def test_a_ledger_that_was_lost_is_written_again_once_its_machine_answers() -> None:
    small = await small_plane()
    await small.sites["east"].kill_machine(A1)
    await settle_seats(small.plane)
    await small.sites["east"].boot_machine(A1)
    assert await replicas_of(small) == {}
    await settle_seats(small.plane)
    assert await replicas_of(small) == {"east-1": 6443}


async def test_a_new_plane_gets_no_ports_of_one_that_nobody_has_driven_since() -> None:
    store = MemoryStore()
    old = await small_plane(store=store)
    record = old.record("east-1")
    seat = seat_at(A1, old.plane.machines["east", A1].address, 1)
    memory = replace(old.plane.memory, replicas=(replace(record, seat=seat),))
    old.plane.resource = await store.update(with_status(old.plane.resource, memory=memory_to_status(memory)))
    new = await second_plane(old)
    await carry_out(new.plane, NEW, new.world)
    assert await stored(new) == {"east-9": LAST}, "its own number's are the other's"
    assert await replicas_of(new) == {"east-1": 6453, "east-9": LAST}


async def second_plane(first: SmallPlane) -> SmallPlane:
    """A plane without replicas in the store and at the sites of another one."""
    second = await small_plane(replicas=0)
    resource = second.plane.resource
    metadata = resource.metadata.model_copy(update={"name": "beta", "uid": None, "resource_version": None})
    status = resource.status.model_copy(update={"port_offset": 1})
    stored = await first.plane.store.create(resource.model_copy(update={"metadata": metadata, "status": status}))
    second.plane.resource, second.plane.store = stored, first.plane.store
    second.plane.sites, second.plane.machines = first.plane.sites, first.plane.machines
    return replace(second, sites=first.sites)


async def test_what_a_plane_that_is_gone_left_is_let_go() -> None:
    small = await small_plane(replicas=0)
    await small.sites["east"].occupy(A1, TakenSeat(plane="gone", replica="east-1", seat=seat_at(A1, "127.1.1.1", 0)))
    await carry_out(small.plane, NEW, small.world)
    assert await replicas_of(small) == {"east-9": 6443}


async def test_a_seat_is_let_go_after_all_else() -> None:
    """Else somebody could be given ports that its units still listen on."""
    small = await small_plane()
    await settle_seats(small.plane)
    release = ReleaseReplica(site="east", why="", replica="east-1")
    site = small.sites["east"]
    await site.create_volume(A1, volume_name(small.plane, small.record("east-1")), "standard")
    seen: list[dict[str, int]] = []
    delete = site.delete_volume

    async def deleting(machine: str, name: str) -> None:
        seen.append(await replicas_of(small))
        await delete(machine, name)
        raise Unavailable("deleting a volume", "the driver is told to stop")

    site.delete_volume = deleting  # type: ignore[method-assign]
    with pytest.raises(Unavailable):
        await carry_out(small.plane, release, small.world)
    assert seen == [{"east-1": 6443}] == [await replicas_of(small)]
    site.delete_volume = delete  # type: ignore[method-assign]
    await carry_out(small.plane, release, small.world)
    assert await replicas_of(small) == {}
    assert "east-1" not in await stored(small)
    assert isinstance(small.plane.resource, ControlPlane)
