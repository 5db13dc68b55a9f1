"""What a migration checks before the first change, where no real plane is needed for it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import cast

import pytest
from fakes.endpoint import FakeDns
from fakes.site import MEMORY_BYTES, FakeSite
from support.golden import Golden
from support.host_sites import host, host_site
from support.resources import with_spec
from support.small_plane import small_plane

from quarterdeck.actions.plane import Plane
from quarterdeck.api.base import Metadata
from quarterdeck.api.controlplane import ControlPlane, new_control_plane
from quarterdeck.api.plane.endpoint import LeadsTo
from quarterdeck.api.site import Cordon, CordonedReplica, LocalSpec, Site, default_sites
from quarterdeck.components.ports import seat_at
from quarterdeck.engine.observation.move import Move
from quarterdeck.engine.observation.observe import Look, Observer, observer_of
from quarterdeck.engine.preflight import preconditions
from quarterdeck.engine.preflight.preconditions import (
    certificates,
    clocks,
    cordons,
    endpoint,
    health,
    learners,
    machines,
    name,
    ports,
    versions,
)
from quarterdeck.engine.preflight.preview import preview
from quarterdeck.engine.preflight.room import _room
from quarterdeck.engine.preflight.room import free_memory as free_memory_check
from quarterdeck.engine.preflight.site_checks import answer
from quarterdeck.engine.workspace.home import Home
from quarterdeck.model.capabilities import NEEDED, Capability, ClockOffset, FreeMemory
from quarterdeck.model.endpoints import DnsRecord
from quarterdeck.model.findings import Finding, Verdict
from quarterdeck.model.membership import Health, MemberFact, Membership
from quarterdeck.model.memory import Memory, Replica
from quarterdeck.model.seats import Slot
from quarterdeck.model.units import Machine, MachineState
from quarterdeck.model.world import World
from quarterdeck.pki.issuance import create_plane_secrets
from quarterdeck.sites.local.settings import LocalSiteSettings


def move(**facts: object) -> Move:
    return cast("Move", SimpleNamespace(**facts))


def with_secrets_of(when: datetime) -> Move:
    return move(plane=SimpleNamespace(secrets=create_plane_secrets("demo", when)))


async def test_valid_certificates_are_fine() -> None:
    found = await answer(certificates, with_secrets_of(datetime.now(UTC)))
    assert found == Finding("certificates", Verdict.OK, "valid; one CA for all replicas")


@pytest.mark.parametrize(
    ("ago", "says"),
    [
        (timedelta(days=366 * 30), "expired on"),
        (timedelta(days=-30), "it is valid from"),  # the clock was set back behind their beginning
    ],
)
async def test_certificates_that_do_not_hold_now_are_named(ago: timedelta, says: str) -> None:
    found = await answer(certificates, with_secrets_of(datetime.now(UTC) - ago))
    assert found.verdict is Verdict.REFUSE
    assert says in found.seen
    assert "kubernetes-ca" in found.seen


def machine(name: str, zone: str = "a", state: MachineState = MachineState.UP) -> Machine:
    return Machine(name=name, site="west", zone=zone, address="127.0.0.1", state=state)


@pytest.mark.parametrize(("etcd", "verdict"), [("3.6.16", Verdict.OK), ("3.6.13", Verdict.WARN)])
async def test_known_flaws_of_versions_are_warned_of_before_a_move(etcd: str, verdict: Verdict, golden: Golden) -> None:
    made = new_control_plane("demo", site="east")
    found = await versions(move(wanted=with_spec(made, etcd=made.spec.etcd.model_copy(update={"version": etcd}))))
    assert found.verdict is verdict
    golden(found.seen)


@pytest.mark.parametrize(
    ("etcd", "now", "then", "to", "verdict"),
    [
        ("3.7.3", 3, 7, "west", Verdict.OK),
        ("3.5.35", 3, 3, "west", Verdict.REFUSE),
        ("3.5.35", 3, 1, "west", Verdict.OK),
        ("3.5.35", 3, 3, "east", Verdict.OK),
        ("3.5.35", 3, 5, "east", Verdict.REFUSE),
        ("3.6.16", 3, 7, "east", Verdict.OK),
    ],
)
async def test_no_more_members_join_at_once_than_etcd_allows(
    etcd: str, now: int, then: int, to: str, verdict: Verdict, golden: Golden
) -> None:
    def plane(replicas: int, site: str) -> ControlPlane:
        made = new_control_plane("demo", site=site, replicas=replicas)
        return made.with_spec(etcd=made.spec.etcd.model_copy(update={"version": etcd}))

    parts = {"world": None, "source": (), "target": (), "target_site": None, "allow_distance": False}
    current = SimpleNamespace(resource=plane(now, "east"), revisions=SimpleNamespace(templates={}))
    found = await learners(Move(plane=current, wanted=plane(then, to), **parts))  # type: ignore[arg-type]
    assert found.verdict is verdict
    golden(found.seen)


@pytest.mark.parametrize(
    "facts",
    [
        {"foreign": "it is claimed by beta/2; say spec.endpoint.takeOver: true"},
        {"torn": "DNS server 192.0.2.5 port 53 gives no answer"},
    ],
)
async def test_a_name_that_is_somebody_elses_or_not_settled_is_refused(facts: dict[str, str], golden: Golden) -> None:
    wanted = SimpleNamespace(host="demo.planes.test")
    world = {"foreign": "", "torn": ""}
    assert (await answer(name, move(world=SimpleNamespace(**world), wanted=wanted))).verdict is Verdict.OK
    found = await answer(name, move(world=SimpleNamespace(**world | facts), wanted=wanted))
    assert found.verdict is Verdict.REFUSE
    golden(found.seen)


@pytest.mark.parametrize(("offset", "verdict"), [(0.1, Verdict.OK), (-3600.0, Verdict.REFUSE)])
async def test_a_clock_that_is_off_is_named_with_its_machine(offset: float, verdict: Verdict, golden: Golden) -> None:
    async def measure(name: str, _: ClockOffset) -> float:
        return offset if name == "west-b1" else 0.0

    site = SimpleNamespace(measure=measure)
    found = await clocks(
        move(
            plane=SimpleNamespace(site=lambda _: site),
            wanted=SimpleNamespace(spec=SimpleNamespace(placement=SimpleNamespace(site="west"))),
            target=(machine("west-a1"), machine("west-b1", "b")),
        )
    )
    assert found.verdict is verdict
    if verdict is Verdict.REFUSE:
        golden(found.seen)


@pytest.mark.parametrize(
    ("room", "verdict"), [(5700, Verdict.OK), (5600, Verdict.WARN), (2900, Verdict.WARN), (2800, Verdict.REFUSE)]
)
async def test_memory_that_may_not_last_is_warned_of_and_half_of_it_is_refused(
    room: int, verdict: Verdict, golden: Golden
) -> None:
    asked: list[str] = []

    async def measure(machine: str, _: FreeMemory) -> float:
        asked.append(machine)
        return room * 2.0**20

    async def status(_: str) -> SimpleNamespace:
        return SimpleNamespace(db_size_in_use=1000 * 2**20)

    slot, seat = Slot(site="east", zone="a"), seat_at("east-a1", "127.0.0.1", 0)
    member = Replica(name="east-1", slot=slot, machine="east-a1", listed=True, seat=seat)
    plane = SimpleNamespace(
        site=lambda _: SimpleNamespace(measure=measure),
        etcd=SimpleNamespace(status=status),
        memory=Memory(replicas=(member,)),
        resource=None,
        machines={},
    )
    spec = SimpleNamespace(replicas=1, placement=SimpleNamespace(site="west"))
    target = (machine("west-a1", state=MachineState.DOWN), machine("west-b1", "b"), machine("west-c1", "c"))
    found = await free_memory_check(move(plane=plane, wanted=SimpleNamespace(spec=spec), open=target, coming=1))
    assert found.verdict is verdict
    golden(found.seen)
    assert asked == ["west-b1"]


@pytest.mark.parametrize(("up", "verdict"), [(2, Verdict.OK), (1, Verdict.REFUSE)])
async def test_one_replica_needs_a_second_machine_to_move_to(up: int, verdict: Verdict, golden: Golden) -> None:
    states = [MachineState.UP] * up + [MachineState.DOWN] * (3 - up)
    found = await machines(to_west(1, *states))
    assert found.verdict is verdict
    if verdict is Verdict.REFUSE:
        golden(found.seen)


def to_west(replicas: int, *states: MachineState, cordons: tuple[str, ...] = (), kept: tuple[str, ...] = ()) -> Move:
    """A move to a site whose machines are in these states; ``kept``: the replicas that are cordoned."""

    def plane(site: str, *cordoned: str) -> ControlPlane:
        made = new_control_plane("demo", site=site, replicas=replicas)
        by_hand = tuple(CordonedReplica(replica=each) for each in cordoned)
        return with_spec(made, cordoned_replicas=by_hand)

    return Move(
        plane=cast("Plane", SimpleNamespace(name="demo", resource=plane("east", *kept))),
        wanted=plane("west"),
        world=World(slots=(), memory=Memory(), now=0.0),
        source=(),
        target=tuple(machine(f"west-{zone}1", zone, state) for zone, state in zip("abc", states, strict=True)),
        target_site=Site(
            metadata=Metadata(name="west"), spec=LocalSpec(cordons=tuple(Cordon(machine=each) for each in cordons))
        ),
        allow_distance=False,
    )


async def test_a_plane_whose_clients_come_to_its_apiservers_needs_no_port_for_a_load_balancer(golden: Golden) -> None:
    moves = to_west(3, *[MachineState.UP] * 3)
    direct = moves.wanted.spec.endpoint.model_copy(update={"leads_to": LeadsTo.APISERVERS})
    wanted = with_spec(moves.wanted, endpoint=direct)
    found = await answer(ports, replace(moves, wanted=wanted))
    assert found.verdict == Verdict.OK
    golden(found.seen)


async def test_machines_that_are_cordoned_are_no_room_and_are_named(golden: Golden) -> None:
    up = [MachineState.UP] * 3
    found = await machines(to_west(3, *up, cordons=("west-b1",)))
    golden(found.seen)
    assert (await machines(to_west(3, *up))).verdict is Verdict.OK


async def test_a_plane_does_not_leave_a_cordoned_replica_behind(golden: Golden) -> None:
    found = await cordons(to_west(3, *[MachineState.UP] * 3, kept=("east-2",)))
    assert (found.verdict, found.seen) == (Verdict.REFUSE, "cordoned: east-2")
    golden(found.next_step)
    here = replace(to_west(3, *[MachineState.UP] * 3, kept=("east-2",)))
    staying = replace(here, wanted=here.plane.resource)
    assert (await cordons(staying)).verdict is Verdict.OK


@pytest.mark.parametrize(("ttl", "verdict"), [(None, Verdict.OK), (3, Verdict.OK), (60, Verdict.REFUSE)])
async def test_a_record_that_clients_hold_for_longer_than_the_old_address_is_kept_is_named(
    ttl: int | None, verdict: Verdict, golden: Golden
) -> None:
    records = {} if ttl is None else {"api.test.": DnsRecord(("192.0.2.1",), ttl)}
    wanted = SimpleNamespace(host="api.test", spec=SimpleNamespace(endpoint=SimpleNamespace(ttl=5)))
    found = await endpoint(move(plane=SimpleNamespace(dns=FakeDns(records=records)), wanted=wanted))
    assert found.verdict is verdict
    if verdict is Verdict.REFUSE:
        golden(found.seen)


async def test_machines_of_one_host_share_its_memory() -> None:
    site = FakeSite(LocalSiteSettings(name="west"))
    here = [machine(f"west-{zone}1", zone) for zone in "abc"]
    assert await _room(site, here) == MEMORY_BYTES
    shared = [replace(each, host="one" if each.zone in "ab" else "two") for each in here]
    assert await _room(site, shared) == MEMORY_BYTES / 2


async def test_a_site_of_a_kind_that_cannot_do_what_a_plane_needs_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    small = await small_plane()
    resource = small.plane.resource

    async def given(answer: object) -> object:
        return answer

    site = await small.plane.store.create(default_sites()[0])
    home = SimpleNamespace(site=lambda _: given(site), plane=lambda *_: given(small.plane))
    monkeypatch.setattr(FakeSite, "capabilities", NEEDED - {Capability.HOLDS})
    (found,), steps = await preview(cast("Home", home), resource, resource)
    assert steps is None
    assert (found.check, found.verdict) == ("site", Verdict.REFUSE)
    assert "holds" in found.seen


async def test_a_move_to_where_no_address_of_the_planes_leads_is_refused_in_words(golden: Golden) -> None:
    small = await small_plane()
    resource = small.plane.resource
    placement = resource.spec.placement.model_copy(update={"site": "rack"})
    wanted = with_spec(resource, placement=placement)

    async def given(answer: object) -> object:
        return answer

    await small.plane.store.create(default_sites()[0])
    home = SimpleNamespace(site=lambda _: given(host_site(host("one1"))), plane=lambda *_: given(small.plane))
    (found,), steps = await preview(cast("Home", home), resource, wanted)
    assert steps is None
    assert (found.check, found.verdict) == ("network", Verdict.REFUSE)
    golden(found.seen)


async def test_the_time_of_an_observation_is_that_of_before_the_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """What clients may still hold is judged by what was so at that time: a look may take seconds."""
    plane, clock = (await small_plane()).plane, [100.0]
    look = Observer._look

    async def takes_long(self: Observer, known: World, *also: str) -> Look:
        clock[0] += 5.0
        return await look(self, known, *also)

    monkeypatch.setattr(Plane, "now", lambda _: clock[0])
    monkeypatch.setattr(Observer, "_look", takes_long)
    await plane.store.create(default_sites()[0])
    observer = await observer_of(plane)
    assert (await observer.observe()).now == 100.0
    assert [each.now for each in await observer.observe_with(await observer_of(plane))] == [105.0, 105.0]


async def test_the_checks_and_the_forecast_of_a_change_are_by_one_look(monkeypatch: pytest.MonkeyPatch) -> None:
    small = await small_plane()
    resource = small.plane.resource
    changed = with_spec(resource, replace_replicas=("east-1",))
    looks: list[tuple[str, ...]] = []
    look = Observer._look

    async def counted(self: Observer, known: World, *also: str) -> Look:
        looks.append(also)
        return await look(self, known, *also)

    async def given(answer: object) -> object:
        return answer

    async def opened(wanted: ControlPlane, _: object, revisions: object = None) -> object:
        return replace(small.plane, resource=wanted)

    site = await small.plane.store.create(default_sites()[0])
    monkeypatch.setattr(Observer, "_look", counted)
    home = SimpleNamespace(site=lambda _: given(site), plane=opened, store=small.plane.store)
    seen: list[World] = []

    async def examined(_: Plane, wanted: ControlPlane, world: World, *__: object, **___: object) -> tuple[Finding, ...]:
        assert wanted is changed
        seen.append(world)
        return ()

    monkeypatch.setattr(preconditions, "examine", examined)
    _, steps = await preview(cast("Home", home), resource, changed, supposing=lambda world: seen.append(world) or world)
    assert looks == [(site.name,)]
    assert steps is not None
    now, then = seen
    assert (now.condemned, then.condemned) == ((), ("east-1",))
    assert (now.membership, now.machines, now.now) == (then.membership, then.machines, then.now)


async def test_a_member_that_belongs_to_no_replica_is_named_with_the_command_that_removes_it(golden: Golden) -> None:
    stray = MemberFact(
        id=0x8E9E05C52164694D, replica="", peer_urls=("https://10.0.0.9:2380",), learner=False, health=Health.DOWN
    )
    world = World(
        slots=(), memory=Memory(), now=0.0, plane_name="demo", membership=Membership(members=(stray,), leader=None)
    )
    wanted = SimpleNamespace(spec=SimpleNamespace(replace_replicas=()))
    move = SimpleNamespace(world=world, plane=SimpleNamespace(name="demo"), wanted=wanted)
    found = await health(cast("Move", move))
    assert found.verdict is Verdict.REFUSE
    golden(found.seen)
    golden(found.next_step)
