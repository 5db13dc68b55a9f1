"""Which backups are kept, and that nothing is dropped which a kept moment needs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from quarterdeck.backup.chain import Chain, ChainLink, FullBackup, Increments, ObjectReference
from quarterdeck.backup.retention import Retention, droppable

START = datetime(2030, 1, 7, tzinfo=UTC)  # a Monday
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
NOTHING = Retention(last=0, hourly=0, daily=0, weekly=0, continuous=timedelta(0))


def stored(name: str) -> ObjectReference:
    return ObjectReference(name=name, sha256="0", size_bytes=1)


def full(at: datetime, revision: int = 0, epoch: int = 0, cluster: str = "main") -> FullBackup:
    revision = revision or revision_at(at)
    return FullBackup(
        cluster=cluster,
        epoch=epoch,
        revision=revision,
        at=at,
        etcd_version="3.6.16",
        stored=stored(f"full {cluster} {epoch} {revision}"),
    )


def steps(first: datetime, last: datetime, epoch: int = 0, cluster: str = "main") -> Increments:
    """What happened in that time: one revision each minute."""
    return Increments(
        cluster=cluster,
        epoch=epoch,
        first=revision_at(first) + 1,
        last=revision_at(last),
        first_at=first,
        last_at=last,
        stored=stored(f"steps {cluster} {epoch} {revision_at(first)}"),
    )


def revision_at(at: datetime) -> int:
    return int((at - START) / timedelta(minutes=1)) + 10


def chain_of(*parts: FullBackup | Increments) -> Chain:
    link = ChainLink(
        number=1,
        previous="",
        plane="uid",
        writer="one",
        at=START,
        fulls=tuple(each for each in parts if isinstance(each, FullBackup)),
        increments=tuple(each for each in parts if isinstance(each, Increments)),
    )
    return Chain("uid").with_link(link, "")


def kept_fulls(chain: Chain, policy: Retention, now: datetime) -> list[datetime]:
    dropped = droppable(chain, policy, now)
    return [each.at for each in chain.fulls if each.stored.name not in dropped]


def test_the_newest_ones_are_kept_and_those_of_hours_days_and_weeks() -> None:
    chain = chain_of(*(full(START + HOUR * number) for number in range(24 * 21)))
    now = START + DAY * 21
    newest = chain.fulls[-1].at
    assert kept_fulls(chain, NOTHING, now) == [newest], "the newest one is always kept"
    last = Retention(last=3, daily=0, weekly=0, continuous=timedelta(0))
    assert kept_fulls(chain, last, now) == [newest - 2 * HOUR, newest - HOUR, newest]
    hourly = Retention(last=0, hourly=5, daily=0, weekly=0, continuous=timedelta(0))
    assert kept_fulls(chain, hourly, now) == [newest - HOUR * number for number in (4, 3, 2, 1, 0)]
    daily = Retention(last=0, daily=4, weekly=0, continuous=timedelta(0))
    assert kept_fulls(chain, daily, now) == [newest - DAY * number for number in (3, 2, 1, 0)]
    weekly = Retention(last=0, daily=0, weekly=2, continuous=timedelta(0))
    assert kept_fulls(chain, weekly, now) == [newest - DAY * 7, newest]


def test_periods_without_a_backup_do_not_count() -> None:
    chain = chain_of(full(START), full(START + 40 * DAY), full(START + 41 * DAY))
    policy = Retention(last=0, daily=3, weekly=0, continuous=timedelta(0))
    assert droppable(chain, policy, START + 100 * DAY) == ()


def test_within_the_window_each_moment_can_be_restored_and_older_increments_go() -> None:
    fulls = [full(START + 12 * HOUR * number) for number in range(6)]
    increments = [steps(START + HOUR * number, START + HOUR * (number + 1)) for number in range(70)]
    chain = chain_of(*fulls, *increments)
    now = START + 70 * HOUR
    dropped = set(droppable(chain, Retention(last=1, daily=0, weekly=0, continuous=DAY), now))
    assert [each.at for each in chain.fulls if each.stored.name not in dropped] == [
        START + 36 * HOUR,
        START + 48 * HOUR,
        START + 60 * HOUR,
    ]
    left = after(chain, dropped)
    for minutes in range(24 * 60):
        left.at_revision("main", revision_at(now) - minutes, 0)
    assert min(each.last_at for each in left.increments) == START + 37 * HOUR


def test_an_epoch_that_has_ended_is_kept_for_the_window_and_its_fulls_by_their_number() -> None:
    old = (full(START), steps(START, START + HOUR), full(START + HOUR), steps(START + HOUR, START + 2 * HOUR))
    new = (full(START + 3 * HOUR, epoch=1), steps(START + 3 * HOUR, START + 4 * HOUR, epoch=1))
    chain = chain_of(*old, *new)
    policy = Retention(last=2, daily=0, weekly=0, continuous=DAY)
    assert droppable(chain, policy, START + DAY) == ()
    dropped = droppable(chain, policy, START + 3 * DAY)
    assert set(dropped) == {old[0].stored.name, old[1].stored.name, old[3].stored.name}


def test_a_folded_backup_is_kept_for_its_own_time_and_what_it_was_folded_from_goes() -> None:
    taken = full(START)
    folded = full(START + 30 * HOUR).model_copy(update={"folded_from": taken.revision, "folded_from_at": taken.at})
    before = [steps(START + HOUR * number, START + HOUR * (number + 1)) for number in range(30)]
    behind = [steps(START + HOUR * number, START + HOUR * (number + 1)) for number in range(30, 60)]
    chain = chain_of(taken, *before, folded, *behind)
    policy = Retention(last=1, daily=0, weekly=0, continuous=DAY)
    assert droppable(chain, policy, START + 50 * HOUR) == (), "the window begins before the folded one"
    dropped = droppable(chain, policy, START + 60 * HOUR)
    assert set(dropped) == {taken.stored.name, *(each.stored.name for each in before)}


def test_each_cluster_has_its_own_backups() -> None:
    chain = chain_of(*(full(START + DAY * number, cluster=name) for number in range(5) for name in ("main", "events")))
    dropped = droppable(chain, Retention(last=2, daily=0, weekly=0, continuous=timedelta(0)), START + 10 * DAY)
    assert sorted(dropped) == sorted(each.stored.name for each in chain.fulls if each.at < START + 3 * DAY)


def test_the_keys_that_a_kept_backup_needs_are_kept_and_older_ones_go() -> None:
    chain = Chain("uid")
    for day in range(5):
        link = ChainLink(
            number=day + 1,
            previous="",
            plane="uid",
            writer="one",
            at=START,
            fulls=(full(START + DAY * day),),
            belongings=stored(f"belongings {day}"),
        )
        chain = chain.with_link(link, "")
    dropped = droppable(chain, Retention(last=2, daily=0, weekly=0, continuous=timedelta(0)), START + 10 * DAY)
    assert [name for name in dropped if name.startswith("belongings")] == [f"belongings {day}" for day in range(3)]
    assert after(chain, set(dropped)).belongings_at(chain.fulls[3].revision, 0) == stored("belongings 3")


def after(chain: Chain, dropped: set[str]) -> Chain:
    """The chain after a link that drops these."""
    link = ChainLink(number=2, previous="", plane="uid", writer="one", at=START, dropped=tuple(sorted(dropped)))
    return chain.with_link(link, "")


POLICIES = st.builds(
    Retention,
    last=st.integers(0, 3),
    hourly=st.integers(0, 3),
    daily=st.integers(0, 3),
    weekly=st.integers(0, 3),
    continuous=st.integers(0, 80).map(lambda hours: HOUR * hours),
)


@settings(max_examples=300, deadline=None)
@given(
    fulls=st.sets(st.integers(0, 200), min_size=1, max_size=12),
    lengths=st.lists(st.tuples(st.integers(0, 3), st.integers(1, 30)), max_size=15),
    policy=POLICIES,
    later=st.integers(0, 60),
)
def test_no_moment_of_the_window_and_nothing_that_continues_the_newest_backup_is_lost(
    fulls: set[int], lengths: list[tuple[int, int]], policy: Retention, later: int
) -> None:
    """Fulls at any hours, increments with gaps between them: what could be restored of the window still can."""
    increments, at = [], START
    for gap, length in lengths:
        begins = at + HOUR * gap
        at = begins + HOUR * length
        increments.append(steps(begins, at))
    chain = chain_of(*(full(START + HOUR * each) for each in sorted(fulls)), *increments)
    now = max(at, *(each.at for each in chain.fulls)) + HOUR * later
    left = after(chain, set(droppable(chain, policy, now)))
    assert left.latest("main", 0).revision == chain.latest("main", 0).revision
    since = now - policy.continuous
    for first, last in chain.ranges("main", 0):
        for revision in range(max(first, revision_at(since)), last + 1, 7):
            left.at_revision("main", revision, 0)
    again = droppable(left, policy, now)
    assert again == (), "what is kept is kept for what it is, not for what was there beside it"
