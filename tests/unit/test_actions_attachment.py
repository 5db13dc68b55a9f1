"""A replica goes to another machine with its data: its volumes, its seat, its member, and its clients."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fakes.etcd_cluster import MemberAddress
from fakes.site import FakeSite
from support.small_plane import NAME, SmallPlane, small_plane

from quarterdeck.actions.addresses import backend_address, client_url, peer_url
from quarterdeck.actions.carry_out import carry_out
from quarterdeck.actions.seats import settle_seats
from quarterdeck.actions.status import write_memory
from quarterdeck.engine.observation.assemble import Dated
from quarterdeck.engine.observation.observe_etcd import EtcdObserver
from quarterdeck.engine.observation.observe_traffic import TrafficObserver
from quarterdeck.errors import Conflict, NotFound, PreconditionFailed
from quarterdeck.model.endpoints import NameFact
from quarterdeck.model.memory import LeftBehind
from quarterdeck.model.site_facts import SiteFacts
from quarterdeck.model.steps.members import ReaddressMember
from quarterdeck.model.steps.placement import AttachVolumes, LeaveMachine, ReleaseReplica
from quarterdeck.model.units import UnitSpec
from quarterdeck.sites.local.settings import LocalStorageClass

WAS, IS = "east-b1", "east-b2"
MOVE = AttachVolumes(site="east", why="", replica="east-2", machine=IS, source=WAS, window=60.0)
ETCD = "alpha-east-2-etcd"


async def struck(*, reattachable: bool = True) -> SmallPlane:
    """A plane of three, the machine of whose second replica is off."""
    classes = {"standard": LocalStorageClass(reattachable=reattachable)}
    small = await small_plane(
        site=lambda settings, number: FakeSite(replace(settings, storage_classes=classes), number=number)
    )
    memory = small.plane.memory
    records = tuple(replace(each, storage_class="standard") for each in memory.replicas)
    await write_memory(small.plane, replace(memory, replicas=records))
    await settle_seats(small.plane)
    site = small.sites["east"]
    await site.create_volume(WAS, f"{NAME}-east-2", "standard")
    await site.start_unit(WAS, UnitSpec(name=ETCD, argv=("/etcd",)))
    site.put_file(WAS, f"{NAME}-east-2", "data/member/wal/0.wal", 1)
    small.cluster.stop(client_url(small.record("east-2")))
    await site.kill_machine(WAS)
    return small


async def volumes(small: SmallPlane, machine: str) -> list[str]:
    return [each.name for each in await small.sites["east"].volumes(machine)]


async def test_a_replica_is_on_the_machine_that_has_its_volume_and_has_a_seat_there() -> None:
    small = await struck()
    await carry_out(small.plane, MOVE, small.world)
    record = small.record("east-2")
    assert (record.machine, record.slot.zone, record.listed, record.started) == (IS, "b", True, True)
    assert record.seat is not None
    assert record.seat.machine == IS
    assert await volumes(small, IS) == [f"{NAME}-east-2"]
    assert [each.replica for each in await small.sites["east"].seats(IS)] == ["east-2"]
    assert small.plane.memory.left == (LeftBehind(site="east", machine=WAS, replica="east-2"),)
    assert small.plane.memory.healed == ((WAS, 1_000.0),)


async def test_what_was_cut_short_before_it_was_written_down_is_seen_and_goes_on() -> None:
    small = await struck()
    await small.sites["east"].attach_volume(IS, f"{NAME}-east-2", WAS)
    await small.sites["east"].boot_machine(WAS)
    assert (await small.sites["east"].facts()).away_from(WAS, f"{NAME}-east-2") == IS
    await carry_out(small.plane, MOVE, small.world)
    assert small.record("east-2").machine == IS


@pytest.mark.parametrize("reattachable", [True, False], ids=["another has it", "local"])
async def test_nothing_is_written_down_of_what_is_refused(reattachable: bool) -> None:
    small = await struck(reattachable=reattachable)
    if reattachable:
        await small.sites["east"].attach_volume("east-c2", f"{NAME}-east-2", WAS)
    with pytest.raises(NotFound if reattachable else PreconditionFailed):
        await carry_out(small.plane, MOVE, small.world)
    assert small.record("east-2").machine == WAS
    assert small.plane.memory.left == ()


async def test_a_member_is_known_by_its_name_until_the_others_look_for_it_where_it_is() -> None:
    small = await struck()
    await carry_out(small.plane, MOVE, small.world)
    plane, record = small.plane, small.record("east-2")
    observer = EtcdObserver(plane=plane)
    seen = await observer.observe(plane.memory)
    assert seen is not None
    listed = seen.of("east-2")
    assert listed is not None
    assert listed.misplaced
    step = ReaddressMember(site="east", why="", replica="east-2", member=listed.id)
    await carry_out(plane, step, small.world)
    here = MemberAddress(
        name="east-2", peer_url=peer_url(record), client_url=client_url(record), metrics_url="http://m"
    )
    small.cluster.start(here)
    again = await observer.observe(plane.memory)
    assert again is not None
    then = again.of("east-2")
    assert then is not None
    assert (then.id, then.misplaced, then.health) == (listed.id, False, "healthy")


async def test_a_load_balancer_that_looks_for_it_where_it_was_does_not_send_to_it() -> None:
    small = await struck()
    observer = TrafficObserver(plane=small.plane)

    async def backends() -> frozenset[str]:
        facts = await small.sites["east"].facts()
        seen = await observer.observe(("east",), {"east": _dated(facts)}, NameFact(), 6.0)
        (edge,) = seen["east"].answer or ()
        assert edge.status is not None
        return edge.status.backends

    assert await backends() == {"east-1", "east-2", "east-3"}
    await carry_out(small.plane, MOVE, small.world)
    assert await backends() == {"east-1", "east-3"}
    await small.balancers["east"].apply({each.name: backend_address(each) for each in small.plane.memory.replicas})
    assert await backends() == {"east-1", "east-2", "east-3"}


async def test_what_it_left_is_removed_with_its_seat_once_the_machine_is_back() -> None:
    small = await struck()
    await carry_out(small.plane, MOVE, small.world)
    site = small.sites["east"]
    await site.boot_machine(WAS)
    await settle_seats(small.plane)
    assert [each.replica for each in await site.seats(WAS)] == ["east-2"], "nobody gets the ports of what may run"
    await carry_out(small.plane, LeaveMachine(site="east", why="", replica="east-2", machine=WAS), small.world)
    assert (await site.units(WAS), await site.seats(WAS), small.plane.memory.left) == ((), (), ())
    assert small.record("east-2").machine == IS


async def test_a_driver_that_was_late_takes_nothing_from_a_machine_that_is_back() -> None:
    small = await struck()
    site = small.sites["east"]
    await site.boot_machine(WAS)
    path = next(each.path for each in await site.volumes(WAS))
    await site.start_unit(WAS, UnitSpec(name=ETCD, argv=("/etcd", "again"), needs=path / "data/member/wal/*.wal"))
    with pytest.raises(Conflict):
        await carry_out(small.plane, MOVE, small.world)
    assert await volumes(small, WAS) == [f"{NAME}-east-2"]
    assert small.record("east-2").machine == WAS


async def test_what_is_let_go_in_the_middle_of_it_leaves_no_volume_anywhere() -> None:
    small = await struck()
    site = small.sites["east"]
    await site.attach_volume(IS, f"{NAME}-east-2", WAS)
    await site.boot_machine(WAS)
    facts = tuple(replace(each, volume_at=IS if each.name == "east-2" else "") for each in small.world.replicas)
    world = replace(small.world, replicas=facts)
    await carry_out(small.plane, ReleaseReplica(site="east", why="", replica="east-2"), world)
    assert (await volumes(small, WAS), await volumes(small, IS)) == ([], [])


def _dated(facts: SiteFacts) -> Dated[SiteFacts]:
    return Dated(1_000.0, facts)
