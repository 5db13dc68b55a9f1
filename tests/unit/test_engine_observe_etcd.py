"""What is thought of members that do not answer: on a cluster in memory, and on clocks of the test."""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePosixPath

import pytest
from fakes.etcd import FakeEtcd
from fakes.etcd_cluster import Member
from support.fake_plane import FakePlane, host_of
from support.resources import with_status

from quarterdeck.actions.plane import Plane
from quarterdeck.api.plane.memory import memory_to_status
from quarterdeck.components.ports import seat_at
from quarterdeck.engine.observation.observe_etcd import EtcdObserver
from quarterdeck.engine.observation.queries import SOON
from quarterdeck.engine.observation.silence import GRACE, MORE, STUCK
from quarterdeck.etcd.facts import Alarm, AlarmKind, MemberProgress, MemberReport, RaftProgress, Replication
from quarterdeck.etcd.faults import Reason, fault
from quarterdeck.model.membership import Health, MemberFact, Membership
from quarterdeck.model.memory import Memory
from quarterdeck.model.units import Machine, Volume

SILENT_FOR = 60.0


class Looking:
    """One driver that looks twice a second."""

    def __init__(self, fake: FakePlane, plane: Plane) -> None:
        self.fake, self.plane = fake, plane
        self.observer = EtcdObserver(plane=plane)
        self.listed: tuple[MemberFact, ...] = ()

    async def try_to_look(self) -> Membership | None:
        seen = await self.observer.observe(self.plane.memory)
        self.listed = seen.members if seen is not None else ()
        return seen

    async def look(self) -> Membership:
        """What a quorum confirms."""
        seen = await self.try_to_look()
        assert seen is not None
        return seen

    async def try_for_seconds(self, seconds: float, *, writes: int = 1, every: float = 0.5) -> Membership | None:
        """Look, while clients write ``writes`` entries between two looks."""
        seen = await self.try_to_look()
        for _ in range(round(seconds / every)):
            self.fake.clocks.pass_(every)
            self.fake.etcd.cluster.write(writes)
            seen = await self.try_to_look()
        return seen

    async def for_seconds(self, seconds: float, *, writes: int = 1) -> Membership:
        """What a quorum confirms in the end."""
        seen = await self.try_for_seconds(seconds, writes=writes)
        assert seen is not None
        return seen


@pytest.fixture
def fake() -> FakePlane:
    return FakePlane()


@pytest.fixture
async def looking(fake: FakePlane) -> Looking:
    return Looking(fake, await fake.open())


def of(seen: Membership, name: str) -> MemberFact:
    found = seen.of(name)
    assert found is not None
    return found


def healths(seen: Membership) -> dict[str, Health]:
    return {member.replica: member.health for member in seen.members}


def lagging(seen: Membership) -> dict[str, bool | None]:
    return {member.replica: member.lagging for member in seen.members}


async def test_all_that_answer_and_follow_the_leader_are_healthy(looking: Looking) -> None:
    seen = await looking.look()
    assert set(healths(seen).values()) == {Health.HEALTHY}
    assert seen.leader == "east-1"


@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize("writes", [0, 1])
async def test_a_member_that_was_killed_or_frozen_is_down_after_the_grace(
    fake: FakePlane, looking: Looking, frozen: bool, writes: int
) -> None:
    """Also where nobody writes: then it is asked what all have to acknowledge."""
    fake.etcd.cluster.stop(fake.url("west-1"), frozen=frozen)
    assert of(await looking.for_seconds(GRACE - 1, writes=writes), "west-1").health is Health.SUSPECT
    assert of(await looking.for_seconds(3.0, writes=writes), "west-1").health is Health.DOWN


async def test_a_driver_cut_off_from_a_site_calls_nobody_there_down(fake: FakePlane, looking: Looking) -> None:
    fake.etcd.cluster.hide(fake.url("west-1"))
    seen = await looking.for_seconds(SILENT_FOR)
    assert healths(seen) == {"east-1": Health.HEALTHY, "east-2": Health.HEALTHY, "west-1": Health.UNREACHABLE}


async def test_nor_where_nobody_writes(fake: FakePlane, looking: Looking) -> None:
    fake.etcd.cluster.hide(fake.url("west-1"))
    before = fake.etcd.cluster.index
    assert of(await looking.for_seconds(SILENT_FOR, writes=0), "west-1").health is Health.UNREACHABLE
    # It is asked all the same, but not at each look.
    assert SILENT_FOR / 2 <= fake.etcd.cluster.index - before <= SILENT_FOR + 1


async def test_nor_if_the_leader_is_among_those_that_we_do_not_see(fake: FakePlane, looking: Looking) -> None:
    """A quorum confirms the membership through the others: that one leads is known, and not what it hears."""
    fake.etcd.cluster.hide(fake.url("east-1"))
    fake.etcd.cluster.stop(fake.url("west-1"), frozen=True)
    seen = await looking.for_seconds(SILENT_FOR)
    assert seen.leader == "east-1"
    assert healths(seen) == {
        "east-1": Health.UNREACHABLE,
        "east-2": Health.HEALTHY,
        "west-1": Health.UNREACHABLE,
    }


async def test_one_that_is_seen_again_is_healthy_at_once_and_gets_a_new_grace(
    fake: FakePlane, looking: Looking
) -> None:
    fake.etcd.cluster.stop(fake.url("west-1"))
    await looking.for_seconds(SILENT_FOR)
    fake.etcd.cluster.start(fake.address("west-1"))
    assert of(await looking.look(), "west-1").health is Health.HEALTHY
    fake.etcd.cluster.stop(fake.url("west-1"))
    assert of(await looking.for_seconds(GRACE - 1), "west-1").health is Health.SUSPECT


@pytest.mark.parametrize("hours", [-100, -1, 1, 24 * 365])
async def test_a_step_of_the_wall_clock_makes_nobody_down_early_or_late(
    fake: FakePlane, looking: Looking, hours: int
) -> None:
    fake.etcd.cluster.stop(fake.url("west-1"))
    await looking.for_seconds(GRACE / 2)
    fake.clocks.step(3600.0 * hours)
    assert of(await looking.for_seconds(GRACE / 2 - 1), "west-1").health is Health.SUSPECT
    assert of(await looking.for_seconds(2.0), "west-1").health is Health.DOWN, "nor does it keep one that is"


@pytest.mark.parametrize("asleep", [20.0, 3600.0])
async def test_a_driver_that_was_frozen_between_two_looks_makes_nobody_down(
    fake: FakePlane, looking: Looking, asleep: float
) -> None:
    fake.etcd.cluster.stop(fake.url("west-1"))
    await looking.for_seconds(2.0)
    fake.clocks.pass_(asleep)
    fake.etcd.cluster.write()
    assert of(await looking.for_seconds(2.0), "west-1").health is Health.SUSPECT


async def test_a_look_in_which_the_driver_was_frozen_does_not_count(fake: FakePlane, looking: Looking) -> None:
    fake.etcd.cluster.stop(fake.url("west-1"))
    await looking.for_seconds(GRACE - 1)
    asked = fake.etcd.status

    async def frozen_meanwhile(url: str, *, within: float | None = None) -> object:
        fake.clocks.pass_(30.0 if url == fake.url("west-1") else 0.0)
        return await asked(url, within=within)

    looking.plane.etcd.status = frozen_meanwhile  # type: ignore[method-assign, assignment]
    assert of(await looking.look(), "west-1").health is Health.SUSPECT
    del looking.plane.etcd.status
    assert of(await looking.for_seconds(GRACE - 1), "west-1").health is Health.SUSPECT


async def test_how_far_a_silent_member_is_the_leader_knows(fake: FakePlane, looking: Looking) -> None:
    fake.etcd.cluster.stop(fake.url("west-1"))
    fake.etcd.cluster.write(100)
    assert of(await looking.look(), "west-1").lag == 100


class Uncooperative(FakeEtcd):
    """A leader that does not tell its books (an etcd behind a proxy)."""

    async def progress(self, leader_url: str) -> RaftProgress:
        raise fault("reading the progress", Reason.OTHER, "status 404")


async def test_without_the_leaders_word_nobody_is_down(fake: FakePlane) -> None:
    fake.etcd = Uncooperative(fake.etcd.cluster)
    looking = Looking(fake, await fake.open())
    fake.etcd.cluster.stop(fake.url("west-1"))
    assert of(await looking.for_seconds(SILENT_FOR), "west-1").health is Health.UNREACHABLE


async def test_without_a_quorum_nothing_is_known(fake: FakePlane, looking: Looking) -> None:
    for name in ("east-2", "west-1"):
        fake.etcd.cluster.stop(fake.url(name))
    assert await looking.try_for_seconds(SILENT_FOR) is None


async def test_where_no_member_knows_a_leader_no_list_is_waited_for(
    fake: FakePlane, looking: Looking, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each would take as long as its deadline, and with it every look while the quorum is lost."""
    asked = counted(looking.plane.etcd, "members", monkeypatch)
    status = looking.plane.etcd.status

    async def led_by_nobody(url: str, *, within: float | None = None) -> MemberReport:
        return replace(await status(url, within=within), leader_id=0)

    await looking.look()
    assert len(asked) == 1
    with monkeypatch.context() as patch:
        patch.setattr(looking.plane.etcd, "status", led_by_nobody)
        for name in ("east-2", "west-1"):
            fake.etcd.cluster.stop(fake.url(name))
        assert await looking.try_to_look() is None
        assert len(asked) == 2, "what was led a moment ago may be again in the next"
        assert await looking.try_for_seconds(5.0) is None
        assert len(asked) == 2
    for name in ("east-2", "west-1"):
        fake.etcd.cluster.start(fake.address(name))
    assert set(healths(await looking.look()).values()) == {Health.HEALTHY}


async def test_who_gave_no_answer_before_is_not_waited_for_as_long_again(
    fake: FakePlane, looking: Looking, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = counted(looking.plane.etcd, "status", monkeypatch)
    fake.etcd.cluster.stop(fake.url("west-1"), frozen=True)
    await looking.look()
    assert {within for _, within in asked if within != SOON} == {None}
    asked.clear()
    await looking.look()
    assert dict(asked) == {fake.url("east-1"): None, fake.url("east-2"): None, fake.url("west-1"): 1.0}


def counted(etcd: object, method: str, patch: pytest.MonkeyPatch) -> list[tuple[object, float | None]]:
    """Whom its calls ask, and for how long."""
    calls: list[tuple[object, float | None]] = []
    inner = getattr(etcd, method)

    async def called(asked: object, **bounds: float | None) -> object:
        calls.append((asked, bounds.get("within")))
        return await inner(asked, **bounds)

    patch.setattr(etcd, method, called)
    return calls


async def test_a_quorum_that_is_cut_off_from_us_as_a_whole_is_not_known_either(
    fake: FakePlane, looking: Looking
) -> None:
    for name in fake.names:
        fake.etcd.cluster.hide(fake.url(name))
    assert await looking.try_for_seconds(SILENT_FOR) is None


async def test_a_member_that_knows_no_leader_has_raised_no_alarm(
    looking: Looking, monkeypatch: pytest.MonkeyPatch
) -> None:
    etcd = looking.plane.etcd
    ask = etcd.status

    async def complains(url: str, *, within: float | None = None) -> MemberReport:
        status = await ask(url, within=within)
        return replace(status, errors=(*status.errors, "etcdserver: no leader"))

    monkeypatch.setattr(etcd, "status", complains)
    seen = await looking.look()
    assert seen.alarms == ()
    looking.fake.etcd.cluster.alarms.append(Alarm(AlarmKind.NOSPACE, 17))
    seen = await looking.look()
    assert seen.alarms == ("memberID:17 alarm:NOSPACE",)


@pytest.mark.parametrize("writes", [0, 1])
async def test_a_joiner_whose_machine_dies_is_down_too_and_gets_a_moment_to_begin(
    fake: FakePlane, looking: Looking, writes: int
) -> None:
    """Its leader hears nothing of it either; a look at one that is only slow asks nobody else."""
    seat = seat_at("m-east-3", host_of("east-3"), 0)
    joiner = replace(fake.memory.replicas[0], name="east-3", machine="m-east-3", seat=seat, started=False)
    looking.plane.resource = with_status(
        looking.plane.resource, memory=memory_to_status(replace(fake.memory, replicas=(*fake.memory.replicas, joiner)))
    )
    place = Machine(name="m-east-3", site="east", zone="c", address=host_of("east-3"))
    looking.plane.machines = {**looking.plane.machines, ("east", "m-east-3"): place}
    await fake.etcd.add_learner([fake.url("east-1")], fake.address("east-3").peer_url)
    assert of(await looking.for_seconds(5.0, writes=writes), "east-3").health is Health.SUSPECT
    assert of(await looking.for_seconds(8.0, writes=writes), "east-3").health is Health.DOWN


async def test_one_that_is_far_behind_and_comes_no_nearer_lags(fake: FakePlane, looking: Looking) -> None:
    assert lagging(await looking.look()) == {"east-1": False, "east-2": False, "west-1": False}
    fake.etcd.cluster.write(5_000)
    fake.etcd.cluster.lag(fake.url("west-1"), 1_001)
    assert of(await looking.look(), "west-1").lagging is None
    seen = await looking.for_seconds(STUCK + 1)
    assert of(seen, "west-1").health is Health.HEALTHY
    assert lagging(seen) == {"east-1": False, "east-2": False, "west-1": True}
    fake.etcd.cluster.lag(fake.url("west-1"), 1_000)
    assert of(await looking.look(), "west-1").lagging is False
    fake.etcd.cluster.lag(fake.url("west-1"), 1_001)
    assert of(await looking.look(), "west-1").lagging is None, "it was there once, so it begins again"


async def test_one_that_does_not_answer_is_not_known_to_lag(fake: FakePlane, looking: Looking) -> None:
    fake.etcd.cluster.write(5_000)
    fake.etcd.cluster.lag(fake.url("west-1"), 4_000)
    await looking.for_seconds(STUCK + 1)
    fake.etcd.cluster.hide(fake.url("west-1"))
    assert of(await looking.look(), "west-1").lagging is None
    assert of(await looking.for_seconds(4.0), "west-1").lagging is None
    fake.etcd.cluster.hide(fake.url("west-1"), hidden=False)
    assert of(await looking.look(), "west-1").lagging is True, "nothing has shown that it came nearer"


async def test_who_leads_never_lags(fake: FakePlane, looking: Looking) -> None:
    """All others are measured by it; what it has not applied itself it says of no member."""
    fake.etcd.cluster.write(5_000)
    fake.etcd.cluster.lag(fake.url("east-1"), 4_000)
    seen = await looking.for_seconds(STUCK + 1)
    assert seen.leader == "east-1"
    assert of(seen, "east-1").lagging is False


async def test_with_another_leader_a_member_gets_its_time_again(fake: FakePlane, looking: Looking) -> None:
    fake.etcd.cluster.write(5_000)
    fake.etcd.cluster.lag(fake.url("west-1"), 4_000)
    assert of(await looking.for_seconds(STUCK + 1), "west-1").lagging is True
    fake.etcd.cluster.leader = fake.etcd.cluster.at(fake.url("east-2")).id
    fake.etcd.cluster.term += 1
    assert of(await looking.look(), "west-1").lagging is False
    assert of(await looking.for_seconds(STUCK + 1), "west-1").lagging is True


class Copying(FakeEtcd):
    """Its leader sends west-1 a whole database."""

    def _progress(self, node: Member) -> MemberProgress:
        progress = super()._progress(node)
        sent = node.address is not None and node.address.name == "west-1"
        return replace(progress, state=Replication.SNAPSHOT) if sent else progress


class Disk:
    """All of a site that is asked for: what the volume of a member holds."""

    size, asked = 0, 0

    async def volumes(self, machine: str) -> tuple[Volume, ...]:
        self.asked += 1
        names = {"other": 99 * MORE, "demo-west-1": self.size}
        return tuple(
            Volume(name=name, storage_class="", path=PurePosixPath("/"), used_bytes=size)
            for name, size in names.items()
        )


async def test_one_that_copies_is_on_its_way_as_long_as_more_of_it_comes_as_far_as_who_drives_can_see(
    fake: FakePlane,
) -> None:
    fake.etcd = Copying(fake.etcd.cluster)
    plane, disk = await fake.open(), Disk()
    plane.sites["west"] = disk  # type: ignore[index,assignment]
    onlooker, driver = Looking(fake, plane), Looking(fake, plane)
    driver.observer = EtcdObserver(plane=replace(plane, guard=object()))  # type: ignore[arg-type]
    fake.etcd.cluster.write(5_000)
    fake.etcd.cluster.lag(fake.url("west-1"), 4_000)
    await driver.look()
    for _ in range(5):
        disk.size += MORE
        assert of(await driver.for_seconds(20.0), "west-1").lagging is False
    assert disk.asked <= 1 + 5 * 5, "a volume is not looked at in each look"
    assert of(await driver.for_seconds(STUCK + 5.0), "west-1").lagging is True
    assert of(await onlooker.for_seconds(2 * STUCK), "west-1").lagging is None


# --- members are told apart by id -------------------------------------------------------------------------------------


def noted(looking: Looking) -> None:
    """Write down the ids of members, as the driver does once it has seen them."""
    memory = looking.plane.memory
    known = {each.replica: each.id for each in looking.listed}
    replicas = tuple(replace(each, member_id=known.get(each.name, 0)) for each in memory.replicas)
    remembered(looking, replace(memory, replicas=replicas))


def remembered(looking: Looking, memory: Memory) -> None:
    """The plane's memory is another one."""
    looking.plane.resource = with_status(looking.plane.resource, memory=memory_to_status(memory))


def added(fake: FakePlane, name: str, peer_url: str, *, learner: bool = False, started: bool = True) -> Member:
    """What somebody's `etcdctl member add` leaves, and, if it is started, etcd with that name."""
    cluster = fake.etcd.cluster
    member = Member(id=next(cluster.ids), peer_url=peer_url, learner=learner)
    cluster.nodes.append(member)
    if started:
        address = replace(fake.address("east-1"), name=name, peer_url=peer_url, client_url=f"{peer_url}/client")
        cluster.start(replace(address, metrics_url=f"{peer_url}/metrics"))
    return member


STRAY = "https://10.99.0.9:2380"


def stray_of(seen: Membership) -> MemberFact:
    (found,) = (each for each in seen.members if not each.replica)
    return found


@pytest.mark.parametrize("ids_noted", [False, True])
@pytest.mark.parametrize("name", ["", "east-1", "somebody"])
async def test_a_member_that_somebody_added_belongs_to_no_replica_whatever_its_name(
    fake: FakePlane, looking: Looking, name: str, ids_noted: bool
) -> None:
    await looking.look()
    if ids_noted:
        noted(looking)
    member = added(fake, name, STRAY, started=bool(name))
    seen = await looking.for_seconds(SILENT_FOR)
    stray = stray_of(seen)
    assert (stray.id, stray.name, stray.peer_urls, stray.misplaced) == (member.id, name, (STRAY,), False)
    assert stray.health is not Health.HEALTHY
    assert {each.replica for each in seen.members if each.replica} == set(fake.names)
    assert not any(each.misplaced for each in seen.members)


async def test_a_stray_that_leads_is_not_taken_for_a_replica(fake: FakePlane, looking: Looking) -> None:
    member = added(fake, "east-1", STRAY)
    fake.etcd.cluster.leader = member.id
    seen = await looking.look()
    assert seen.leader is None
    assert of(seen, "east-1").health is Health.HEALTHY


async def test_a_member_whose_peer_urls_somebody_changed_is_still_its_replicas(
    fake: FakePlane, looking: Looking
) -> None:
    await looking.look()
    noted(looking)
    fake.etcd.cluster.at(fake.url("west-1")).peer_url = STRAY
    seen = of(await looking.look(), "west-1")
    assert seen.misplaced
    assert seen.peer_urls == (STRAY,)
    assert seen.health is Health.HEALTHY


async def test_nor_does_it_become_anothers_that_has_its_url_now(fake: FakePlane, looking: Looking) -> None:
    await looking.look()
    noted(looking)
    one, other = (fake.etcd.cluster.at(fake.url(name)) for name in ("east-2", "west-1"))
    one.peer_url, other.peer_url = other.peer_url, one.peer_url
    seen = await looking.look()
    assert {name: of(seen, name).id for name in ("east-2", "west-1")} == {"east-2": one.id, "west-1": other.id}
    assert of(seen, "east-2").misplaced
    assert of(seen, "west-1").misplaced


async def test_a_member_that_was_removed_is_not_back_when_one_is_added_at_its_url(
    fake: FakePlane, looking: Looking
) -> None:
    """Its data is of the member that was removed: no other one may start on it."""
    await looking.look()
    noted(looking)
    cluster = fake.etcd.cluster
    url = cluster.at(fake.url("west-1")).peer_url
    cluster.nodes.remove(cluster.at(fake.url("west-1")))
    member = added(fake, "west-1", url, started=False)
    seen = await looking.look()
    assert seen.of("west-1") is None
    assert stray_of(seen).id == member.id


async def test_a_founder_whose_peer_urls_somebody_changed_before_its_id_was_noted_is_known_by_its_name(
    fake: FakePlane, looking: Looking
) -> None:
    """etcd has the names of founders before they start; no other member has one until it starts."""
    founder, joiner = (fake.etcd.cluster.at(fake.url(name)) for name in ("east-1", "west-1"))
    memory = looking.plane.memory
    unseen = tuple(replace(each, started=False) for each in memory.replicas)
    remembered(looking, replace(memory, bootstrap=("east-1",), replicas=unseen))
    founder.peer_url, joiner.peer_url = STRAY, "https://10.99.0.8:2380"
    seen = await looking.look()
    assert of(seen, "east-1").misplaced
    assert seen.of("west-1") is None


async def test_founders_that_have_each_others_peer_urls_before_their_ids_were_noted_are_told_apart(
    fake: FakePlane, looking: Looking
) -> None:
    one, other = (fake.etcd.cluster.at(fake.url(name)) for name in ("east-1", "east-2"))
    remembered(looking, replace(looking.plane.memory, bootstrap=("east-1", "east-2")))
    one.peer_url, other.peer_url = other.peer_url, one.peer_url
    seen = await looking.look()
    assert (of(seen, "east-1").id, of(seen, "east-2").id) == (one.id, other.id)


async def test_of_two_with_the_name_of_a_replica_neither_is_taken_where_no_id_was_noted(
    fake: FakePlane, looking: Looking
) -> None:
    """A replica that moved before ids were noted is known by its name, unless that could be anybody's."""
    fake.etcd.cluster.at(fake.url("west-1")).peer_url = "https://10.99.0.8:2380"
    assert of(await looking.look(), "west-1").misplaced
    added(fake, "west-1", STRAY)
    seen = await looking.look()
    assert seen.of("west-1") is None


async def test_a_cluster_that_authenticates_says_so_of_itself_and_lists_its_members(
    fake: FakePlane, looking: Looking
) -> None:
    seen = await looking.look()
    assert not seen.authenticates
    fake.etcd.cluster.authenticates = True
    seen = await looking.look()
    assert seen.authenticates
    assert set(healths(seen).values()) == {Health.HEALTHY}
    assert not seen.at_rest
