"""What every store promises, checked on the fake and on the real one alike."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from fakes.store import MemoryStore
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import SecretStr
from support.templates import template
from support.tiers import smoke

from quarterdeck.api.base import Metadata, Resource, unknown_fields
from quarterdeck.api.belongings import PlaneSecrets
from quarterdeck.api.controlplane import ControlPlane, new_control_plane
from quarterdeck.api.documents import load
from quarterdeck.api.operation import Operation, OperationSpec, OperationType
from quarterdeck.api.plane.apiserver import Tracing
from quarterdeck.api.revision import ReplicaRevision, revision_of
from quarterdeck.api.site import Site, default_sites
from quarterdeck.errors import Conflict, Corrupt, InvalidInput, NotFound, QuarterdeckError
from quarterdeck.stores import rules
from quarterdeck.stores.port import EntryOutcome, Event, EventType, JournalEntry, Lease, Store, amend
from quarterdeck.stores.rules import EVENTS_KEPT
from quarterdeck.stores.sqlite import SqliteStore

NOON = 1_800_000_000.0


@dataclass
class Clock:
    now: float = NOON

    def __call__(self) -> float:
        return self.now


def uids() -> Callable[[], str]:
    numbers = itertools.count(1)
    return lambda: f"uid-{next(numbers)}"


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=smoke("memory", "sqlite"))
async def store(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> AsyncIterator[Store]:
    made: Store
    if request.param == "memory":
        made = MemoryStore(clock=clock, uid=uids())
    else:
        made = SqliteStore(tmp_path / "store.db", clock=clock, uid=uids())
    yield made
    await made.close()


def plane(name: str = "alpha") -> ControlPlane:
    return new_control_plane(name, site="east")


def scaled(resource: ControlPlane, replicas: int) -> ControlPlane:
    return resource.model_copy(update={"spec": resource.spec.model_copy(update={"replicas": replicas})})


def with_offset(resource: ControlPlane, offset: int) -> ControlPlane:
    return resource.model_copy(update={"status": resource.status.model_copy(update={"port_offset": offset})})


# Resources


async def test_a_created_resource_is_read_back_with_what_the_store_gave_it(store: Store) -> None:
    made = await store.create(plane())
    assert made == await store.get(ControlPlane, "alpha")
    assert made.metadata.uid == "uid-1"
    assert made.metadata.generation == 1
    assert made.metadata.creation_timestamp is not None
    assert made.metadata.creation_timestamp.timestamp() == NOON


async def test_a_missing_resource_is_not_found(store: Store) -> None:
    for call in (
        store.get(ControlPlane, "alpha"),
        store.update(plane()),
        store.delete(ControlPlane, "alpha"),
    ):
        with pytest.raises(NotFound, match="ControlPlane 'alpha'"):
            await call


async def test_a_name_is_created_once_per_kind(store: Store) -> None:
    await store.create(plane("east"))
    await store.create(default_sites()[0])
    with pytest.raises(Conflict, match="it exists already"):
        await store.create(plane("east"))


async def test_a_list_is_of_one_kind_and_by_name(store: Store) -> None:
    for each in (plane("b"), default_sites()[0], plane("a")):
        await store.create(each)
    assert [each.name for each in await store.list(ControlPlane)] == ["a", "b"]
    assert [each.name for each in await store.list(Site)] == ["east"]


async def test_an_update_on_an_old_version_is_refused_and_changes_nothing(store: Store) -> None:
    made = await store.create(plane())
    newer = await store.update(scaled(made, 5))
    with pytest.raises(Conflict, match="it was changed since"):
        await store.update(scaled(made, 1))
    assert await store.get(ControlPlane, "alpha") == newer


async def test_an_update_without_a_version_is_refused(store: Store) -> None:
    await store.create(plane())
    with pytest.raises(Conflict, match="no resourceVersion was given"):
        await store.update(plane())


async def test_a_version_of_a_deleted_resource_never_fits_its_successor(store: Store) -> None:
    old = await store.create(plane())
    await store.delete(ControlPlane, "alpha")
    new = await store.create(plane())
    assert new.metadata.uid != old.metadata.uid
    with pytest.raises(Conflict):
        await store.update(old)


async def test_the_generation_counts_changes_of_the_wish_and_not_of_the_status(store: Store) -> None:
    made = await store.create(plane())
    noted = await store.update(with_offset(made, 3))
    assert noted.metadata.generation == 1
    grown = await store.update(scaled(noted, 5))
    assert grown.metadata.generation == 2


def guarded(resource: ControlPlane, *finalizers: str) -> ControlPlane:
    return resource.model_copy(update={"metadata": resource.metadata.model_copy(update={"finalizers": finalizers})})


async def test_a_resource_with_finalizers_is_marked_once_and_goes_with_the_last_of_them(store: Store) -> None:
    await store.create(guarded(plane(), "one", "two"))
    await store.delete(ControlPlane, "alpha")
    marked = await store.get(ControlPlane, "alpha")
    assert (marked.metadata.generation, marked.metadata.finalizers) == (2, ("one", "two"))
    assert marked.metadata.deletion_timestamp is not None
    await store.delete(ControlPlane, "alpha")
    again = await store.get(ControlPlane, "alpha")
    assert again.metadata.generation == 2, "it was wanted already"
    assert again.metadata.deletion_timestamp == marked.metadata.deletion_timestamp
    left = await store.update(guarded(again, "two"))
    assert await store.get(ControlPlane, "alpha") == left
    with pytest.raises(InvalidInput, match="it is being deleted, and three would be new"):
        await store.update(guarded(left, "two", "three"))
    await store.update(guarded(left))
    assert not await store.list(ControlPlane)


async def test_only_a_deletion_marks_and_nothing_takes_the_mark_away(store: Store) -> None:
    made = await store.create(guarded(plane(), "one"))
    wish = made.metadata.model_copy(update={"deletion_timestamp": made.metadata.creation_timestamp})
    same = await store.update(made.model_copy(update={"metadata": wish}))
    assert (same.metadata.deletion_timestamp, same.metadata.generation) == (None, 1)
    await store.delete(ControlPlane, "alpha")
    marked = await store.get(ControlPlane, "alpha")
    back = marked.metadata.model_copy(update={"deletion_timestamp": None})
    assert (await store.update(marked.model_copy(update={"metadata": back}))).metadata.deletion_timestamp is not None


async def test_what_goes_together_goes_with_its_finalizer_and_is_only_marked_while_there_are_others(
    store: Store,
) -> None:
    await store.create(PlaneSecrets(metadata=Metadata(name="alpha"), data=SecretStr("key")))
    await store.create(guarded(plane(), "mine"))
    await store.create(guarded(plane("beta"), "mine", "yours"))
    all_ = ((ControlPlane, "alpha"), (ControlPlane, "beta"), (PlaneSecrets, "alpha"))
    await store.delete_together(*all_, finalizer="mine")
    (left,) = await store.list(ControlPlane)
    assert (left.name, left.metadata.finalizers) == ("beta", ("yours",))
    assert left.metadata.deletion_timestamp is not None
    with pytest.raises(NotFound):
        await store.get(PlaneSecrets, "alpha")


def put_body(store: Store, name: str, body: str) -> None:
    """What is stored, as another version wrote it."""
    if isinstance(store, MemoryStore):
        (key,) = (key for key in store._bodies if key[1] == name)
        store._bodies[key] = body
    else:
        assert isinstance(store, SqliteStore)
        with sqlite3.connect(store._path) as db:
            db.execute("UPDATE resources SET body = ? WHERE name = ?", (body, name))
        db.close()


async def test_what_the_store_gave_cannot_be_written_over(store: Store) -> None:
    made = await store.create(plane())
    forged = made.metadata.model_copy(update={"uid": "x", "generation": 99, "creation_timestamp": None})
    kept = (await store.update(made.model_copy(update={"metadata": forged}))).metadata
    assert (kept.uid, kept.generation, kept.creation_timestamp) == (
        made.metadata.uid,
        1,
        made.metadata.creation_timestamp,
    )


async def test_a_delete_can_be_bound_to_a_version(store: Store) -> None:
    made = await store.create(plane())
    newer = await store.update(scaled(made, 5))
    with pytest.raises(Conflict):
        await store.delete(ControlPlane, "alpha", version=made.metadata.resource_version)
    await store.delete(ControlPlane, "alpha", version=newer.metadata.resource_version)
    with pytest.raises(NotFound):
        await store.get(ControlPlane, "alpha")


async def test_what_belongs_together_is_deleted_together_or_not_at_all(store: Store, clock: Clock) -> None:
    async def there() -> set[str]:
        found = set()
        for kind, name in ((ControlPlane, "alpha"), (PlaneSecrets, "alpha"), (ControlPlane, "beta")):
            with contextlib.suppress(NotFound):
                found.add(f"{kind.__name__} {(await store.get(kind, name)).name}")
        return found

    for made in (plane(), PlaneSecrets(metadata=Metadata(name="alpha"), data=SecretStr("key")), plane("beta")):
        await store.create(made)
    both_of_alpha = ((ControlPlane, "alpha"), (PlaneSecrets, "alpha"))
    old = await store.acquire("l", "old", 1.0)
    clock.now += 2.0
    new = await store.acquire("l", "new", 10.0)
    with pytest.raises(Conflict):
        await store.delete_together(*both_of_alpha, lease=old)
    assert await there() == {"ControlPlane alpha", "PlaneSecrets alpha", "ControlPlane beta"}
    await store.delete_together(*both_of_alpha, lease=new)
    assert await there() == {"ControlPlane beta"}
    await store.delete_together(*both_of_alpha, (ControlPlane, "beta"))
    assert await there() == set(), "what is not there is gone already, and holds up nothing"


async def test_a_revision_is_kept_like_any_resource_and_never_changed(store: Store) -> None:
    owner = await store.create(plane())
    made = await store.create(revision_of(owner, template()))
    assert made.name == f"alpha-{template().digest[:10]}"
    assert made.metadata.owner_references[0].uid == owner.metadata.uid
    assert await store.list(ReplicaRevision) == (made,) == (await store.get(ReplicaRevision, made.name),)
    with pytest.raises(Conflict, match="its spec is never changed"):
        await store.update(made.model_copy(update={"spec": template(tracing=Tracing(endpoint="a:1"))}))
    labelled = made.model_copy(update={"metadata": made.metadata.model_copy(update={"labels": {"a": "b"}})})
    assert (await store.update(labelled)).metadata.generation == 1
    await store.delete_together((ControlPlane, "alpha"), (ReplicaRevision, made.name))
    assert await store.list(ReplicaRevision) == ()


async def test_secrets_are_read_by_name_and_never_listed(store: Store) -> None:
    secrets = PlaneSecrets(metadata=Metadata(name="alpha"), data=SecretStr("key\n\u00e9"))
    made = await store.create(secrets)
    read = await store.get(PlaneSecrets, "alpha")
    assert read == made
    assert read.data.get_secret_value() == "key\n\u00e9"
    with pytest.raises(InvalidInput, match="one by one"):
        await store.list(PlaneSecrets)


async def test_of_many_writers_at_once_none_is_lost(store: Store) -> None:
    await store.create(plane())
    labels = [f"writer-{number}" for number in range(10)]

    def labelled(label: str) -> Callable[[ControlPlane], ControlPlane]:
        def change(resource: ControlPlane) -> ControlPlane:
            metadata = resource.metadata.model_copy(update={"labels": {**resource.metadata.labels, label: ""}})
            return resource.model_copy(update={"metadata": metadata})

        return change

    await asyncio.gather(*(amend(store, ControlPlane, "alpha", labelled(label)) for label in labels))
    assert set((await store.get(ControlPlane, "alpha")).metadata.labels) == set(labels)


async def test_an_amendment_that_changes_nothing_writes_nothing(store: Store) -> None:
    made = await store.create(plane())
    assert await amend(store, ControlPlane, "alpha", lambda each: each) == made


# Journal and events


def entry(text: str, **more: object) -> JournalEntry:
    return JournalEntry(plane="alpha", time=NOON, kind="promote-learner", text=text, **more)  # type: ignore[arg-type]


async def test_the_journal_gives_back_whole_entries_in_order(store: Store) -> None:
    first = await store.append(
        entry(
            "promote t1",
            outcome=EntryOutcome.STARTED,
            operation="alpha-migrate-1",
            site="west",
            replica="t1",
            detail={"member": 7, "lag": [1, 2.5, None], "name": "\u00fc"},
        )
    )
    second = await store.append(entry("promote t2"))
    assert 0 < first.id < second.id
    assert await store.journal("alpha") == (first, second)
    assert await store.journal("beta") == ()


async def test_the_journal_is_read_by_operation_on_from_an_id_and_from_the_end(store: Store) -> None:
    entries = [await store.append(entry(str(n), operation=f"op-{n % 2}")) for n in range(6)]
    assert await store.journal("alpha", operation="op-1") == tuple(entries[1::2])
    assert await store.journal("alpha", after=entries[3].id) == tuple(entries[4:])
    assert await store.journal("alpha", limit=2) == tuple(entries[-2:])
    assert await store.journal("alpha", limit=0) == ()
    assert await store.journal("alpha", limit=99) == tuple(entries)


@pytest.fixture
def short_journals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "JOURNAL_ROWS", 20)
    monkeypatch.setattr(rules, "JOURNAL_AGE", 100.0)
    monkeypatch.setattr(rules, "JOURNAL_LOOK", 1)
    monkeypatch.setattr(rules, "JOURNAL_STEP", 3)


async def operated(store: Store, name: str, rows: int, at: float = NOON) -> None:
    """An operation with so many rows in the journal."""
    spec = OperationSpec(plane="alpha", type=OperationType.APPLY)
    await store.create(Operation(metadata=Metadata(name=name), spec=spec))
    for number in range(rows):
        await store.append(replace(entry(str(number), operation=name), time=at))


@pytest.mark.usefixtures("short_journals")
async def test_a_long_journal_loses_its_oldest_operations_whole_and_step_by_step(store: Store) -> None:
    await operated(store, "alpha-scale-1", 8)
    await operated(store, "alpha-scale-2", 8)
    await operated(store, "alpha-scale-3", 5)
    left = [await store.journal("alpha", operation=f"alpha-scale-{number}") for number in (1, 2, 3)]
    assert [len(each) for each in left] == [5, 8, 5], "one step"
    assert [each.name for each in await store.list(Operation)] == ["alpha-scale-2", "alpha-scale-3"]
    for number in range(5):
        await store.append(entry(str(number), operation="alpha-scale-3"))
    left = [await store.journal("alpha", operation=f"alpha-scale-{number}") for number in (1, 2, 3)]
    assert [len(each) for each in left] == [2, 8, 10], "no more than it must be"


@pytest.mark.usefixtures("short_journals")
async def test_an_old_operation_goes_but_never_the_last_one(store: Store, clock: Clock) -> None:
    await store.append(entry("before"))
    await operated(store, "alpha-scale-1", 4)
    await operated(store, "alpha-scale-2", 4)
    clock.now += 101
    await operated(store, "alpha-scale-3", 8, at=clock.now)
    assert {each.operation for each in await store.journal("alpha")} == {"alpha-scale-3"}
    clock.now += 101
    await store.append(replace(entry("long after", operation="alpha-scale-3"), time=clock.now))
    assert len(await store.journal("alpha")) == 9
    assert [each.name for each in await store.list(Operation)] == ["alpha-scale-3"]


@pytest.mark.usefixtures("short_journals")
async def test_an_operation_that_was_at_work_lately_is_whole_however_long_ago_it_began(
    store: Store, clock: Clock
) -> None:
    await operated(store, "alpha-scale-1", 4)
    clock.now += 99
    await store.append(replace(entry("lately", operation="alpha-scale-1"), time=clock.now))
    await operated(store, "alpha-scale-2", 1, at=clock.now)
    clock.now += 50
    await store.append(replace(entry("now", operation="alpha-scale-2"), time=clock.now))
    assert len(await store.journal("alpha", operation="alpha-scale-1")) == 5


@pytest.mark.usefixtures("short_journals")
async def test_the_journal_of_another_plane_is_left_alone(store: Store, clock: Clock) -> None:
    await store.append(replace(entry("elsewhere"), plane="beta"))
    clock.now += 101
    await operated(store, "alpha-scale-1", 4, at=clock.now)
    assert len(await store.journal("beta")) == 1


def event(message: str, at: float, plane: str = "alpha") -> Event:
    return Event(plane=plane, type=EventType.NORMAL, reason="Waiting", message=message, first=at, last=at)


async def test_an_event_that_is_seen_again_is_counted(store: Store) -> None:
    await store.record(event("t1 lags", 1.0))
    await store.record(event("t2 lags", 2.0))
    await store.record(event("t1 lags", 3.0))
    seen = [(each.message, each.first, each.last, each.count) for each in await store.events("alpha")]
    assert seen == [("t2 lags", 2.0, 2.0, 1), ("t1 lags", 1.0, 3.0, 2)]


async def test_events_are_bounded_for_each_plane_on_its_own(store: Store) -> None:
    await store.record(event("calm", 0.0, plane="beta"))
    for number in range(EVENTS_KEPT + 5):
        await store.record(event(f"m{number}", float(number)))
    kept = await store.events("alpha")
    assert [each.message for each in kept] == [f"m{number}" for number in range(5, EVENTS_KEPT + 5)]
    assert len(await store.events()) == EVENTS_KEPT + 1


# Leases


async def test_a_held_lease_is_refused_with_the_holders_name(store: Store, clock: Clock) -> None:
    await store.acquire("plane/alpha", "host:1 (migrate)", 10.0)
    clock.now += 4
    with pytest.raises(Conflict, match=r"host:1 \(migrate\) holds it for another 6\.0 s"):
        await store.acquire("plane/alpha", "host:2 (apply)", 10.0)
    await store.acquire("plane/beta", "host:2 (apply)", 10.0)


async def test_a_store_that_was_put_back_from_a_copy_gives_no_token_out_again(store: Store, clock: Clock) -> None:
    """Machines remember the highest token that they have seen, and refuse lower ones."""
    before = await store.acquire("l", "a", 10.0)
    assert before.token >= NOON, "what a store knows that has no lease yet"
    clock.now += 1
    put_back = MemoryStore(clock=clock)
    assert (await put_back.acquire("l", "b", 10.0)).token > before.token


async def test_each_new_holder_has_a_higher_token(store: Store, clock: Clock) -> None:
    first = await store.acquire("l", "a", 10.0)
    clock.now += 10
    second = await store.acquire("l", "b", 10.0)
    await store.release(second)
    third = await store.acquire("l", "a", 10.0)
    assert first.token < second.token < third.token


async def test_a_renewed_lease_lasts(store: Store, clock: Clock) -> None:
    lease = await store.acquire("l", "a", 10.0)
    for _ in range(5):
        clock.now += 9
        lease = await store.renew(lease)
    with pytest.raises(Conflict):
        await store.acquire("l", "b", 10.0)
    assert await store.lease("l") == lease


async def test_a_lease_that_ran_out_is_renewed_if_nobody_took_it(store: Store, clock: Clock) -> None:
    lease = await store.acquire("l", "a", 10.0)
    clock.now += 100
    assert await store.lease("l") is None
    renewed = await store.renew(lease)
    assert renewed.token == lease.token
    assert await store.lease("l") == renewed


async def test_a_lease_that_was_released_or_passed_on_is_not_renewed(store: Store, clock: Clock) -> None:
    lease = await store.acquire("l", "a", 10.0)
    await store.release(lease)
    assert await store.lease("l") is None
    with pytest.raises(Conflict, match="was released"):
        await store.renew(lease)
    newer = await store.acquire("l", "b", 10.0)
    with pytest.raises(Conflict, match="passed on to b"):
        await store.renew(lease)
    assert await store.lease("l") == newer


async def test_releasing_a_lease_that_passed_on_leaves_the_new_holder_alone(store: Store, clock: Clock) -> None:
    old = await store.acquire("l", "a", 10.0)
    clock.now += 10
    new = await store.acquire("l", "b", 10.0)
    await store.release(old)
    assert await store.lease("l") == new


async def test_no_write_is_taken_under_an_older_token(store: Store, clock: Clock) -> None:
    made = await store.create(plane())
    old = await store.acquire("l", "a", 10.0)
    made = await store.update(scaled(made, 5), lease=old)
    clock.now += 10
    made = await store.update(made, lease=old)  # it ran out, but nobody else can have acted
    new = await store.acquire("l", "b", 10.0)
    for call in (
        store.update(scaled(made, 1), lease=old),
        store.delete(ControlPlane, "alpha", lease=old),
        store.create(plane("beta"), lease=old),
    ):
        with pytest.raises(Conflict, match="passed on to b"):
            await call
    assert await store.list(ControlPlane) == (made,)
    await store.update(scaled(made, 1), lease=new)


async def test_no_write_is_taken_under_a_lease_that_never_was(store: Store) -> None:
    made = await store.create(plane())
    with pytest.raises(Conflict):
        await store.update(made, lease=Lease(name="l", holder="a", token=1, ttl=1.0, expires=NOON))


async def test_a_lost_lease_ends_an_amendment(store: Store, clock: Clock) -> None:
    await store.create(plane())
    old = await store.acquire("l", "a", 10.0)
    clock.now += 10
    await store.acquire("l", "b", 10.0)
    tries: list[ControlPlane] = []

    def change(each: ControlPlane) -> ControlPlane:
        tries.append(each)
        return scaled(each, 5)

    with pytest.raises(Conflict, match="passed on to b"):
        await amend(store, ControlPlane, "alpha", change, lease=old)
    assert len(tries) == 1


async def test_a_clock_set_back_cannot_keep_a_dead_holders_lease_alive(store: Store, clock: Clock) -> None:
    await store.acquire("l", "dead", 10.0)
    clock.now -= 3_600
    with pytest.raises(Conflict, match=r"another 10\.0 s"):
        await store.acquire("l", "b", 10.0)
    clock.now += 9.9
    with pytest.raises(Conflict):
        await store.acquire("l", "b", 10.0)
    clock.now += 0.2
    assert (await store.acquire("l", "b", 10.0)).holder == "b"


async def test_a_clock_set_back_does_not_harm_a_holder_that_lives(store: Store, clock: Clock) -> None:
    lease = await store.acquire("l", "a", 10.0)
    clock.now -= 3_600
    with pytest.raises(Conflict):
        await store.acquire("l", "b", 10.0)
    clock.now += 5
    lease = await store.renew(lease)
    clock.now += 9
    with pytest.raises(Conflict):
        await store.acquire("l", "b", 10.0)
    assert await store.lease("l") == lease


# The two stores beside each other, on whatever happens


@dataclass(frozen=True)
class World:
    """A store, and what its users remember."""

    store: Store
    clock: Clock
    leases: dict[str, Lease]
    seen: dict[str, ControlPlane]


NAMES = st.sampled_from(["a", "b"])
HOLDERS = st.sampled_from(["x", "y", "z"])
ACTIONS = st.one_of(
    st.tuples(st.sampled_from(["create", "get", "forget"]), NAMES),
    st.tuples(st.sampled_from(["scale", "note"]), NAMES, st.sampled_from([1, 3, 5]), st.none() | HOLDERS),
    st.tuples(st.sampled_from(["delete", "delete together"]), NAMES, st.none() | HOLDERS),
    st.tuples(st.sampled_from(["acquire", "renew", "release"]), HOLDERS),
    st.tuples(st.just("wait"), st.sampled_from([-100.0, 1.0, 4.0, 20.0])),
)


async def act(world: World, action: tuple[object, ...]) -> object:
    """Carry out one action; what came of it, without times that only one store could have."""
    store, seen, leases = world.store, world.seen, world.leases
    match action:
        case ("create", str(name)):
            seen[name] = await store.create(plane(name))
            return seen[name]
        case ("get", str(name)):
            seen[name] = await store.get(ControlPlane, name)
            return seen[name]
        case ("scale", str(name), int(count), holder):
            return await store.update(scaled(seen.get(name, plane(name)), count), lease=leases.get(str(holder)))
        case ("note", str(name), int(count), holder):
            return await store.update(with_offset(seen.get(name, plane(name)), count), lease=leases.get(str(holder)))
        case ("delete", str(name), holder):
            await store.delete(ControlPlane, name, lease=leases.get(str(holder)))
        case ("delete together", str(name), holder):
            gone = ((ControlPlane, name), (ControlPlane, "b"))
            await store.delete_together(*gone, lease=leases.get(str(holder)))
        case ("acquire", str(holder)):
            leases[holder] = await store.acquire("l", holder, 10.0)
            return leases[holder]
        case ("renew", str(holder)) if holder in leases:
            leases[holder] = await store.renew(leases[holder])
            return leases[holder]
        case ("release", str(holder)) if holder in leases:
            await store.release(leases[holder])
        case ("wait", float(seconds)):
            world.clock.now += seconds
    return None


async def outcome(world: World, action: tuple[object, ...]) -> object:
    try:
        return await act(world, action)
    except QuarterdeckError as error:
        return (type(error), str(error))


@contextlib.contextmanager
def both() -> Iterator[tuple[World, World]]:
    with TemporaryDirectory() as folder:
        clocks = Clock(), Clock()
        real = SqliteStore(Path(folder) / "store.db", clock=clocks[1], uid=uids())
        fake = MemoryStore(clock=clocks[0], uid=uids())
        yield World(fake, clocks[0], {}, {}), World(real, clocks[1], {}, {})
        asyncio.run(real.close())


@settings(max_examples=60, deadline=None)
@given(st.lists(ACTIONS, max_size=25))
def test_the_fake_does_all_that_the_real_one_does(actions: list[tuple[object, ...]]) -> None:
    async def scenario(fake: World, real: World) -> None:
        for action in actions:
            assert await outcome(fake, action) == await outcome(real, action)
        assert await fake.store.list(ControlPlane) == await real.store.list(ControlPlane)
        assert await fake.store.lease("l") == await real.store.lease("l")

    with both() as (fake, real):
        asyncio.run(scenario(fake, real))


@settings(max_examples=200, deadline=None)
@given(st.lists(ACTIONS, max_size=40))
def test_at_any_time_only_the_newest_token_can_write(actions: list[tuple[object, ...]]) -> None:
    async def scenario() -> None:
        world = World(MemoryStore(clock=(clock := Clock())), clock, {}, {})
        resource: Resource = await world.store.create(plane("fenced"))
        newest = 0
        for action in actions:
            done = await outcome(world, action)
            if action[0] == "acquire" and isinstance(done, Lease):
                assert done.token > newest
                newest = done.token
            for lease in world.leases.values():
                with contextlib.suppress(Conflict):
                    resource = await world.store.update(resource, lease=lease)
                    assert lease.token == newest

    asyncio.run(scenario())


async def test_who_watches_is_woken_by_each_change_of_what_is_watched_and_by_nothing_else(store: Store) -> None:
    assert await asyncio.wait_for(store.watch({("ControlPlane", "gone"): "1"}, ControlPlane), 5) == {}
    made = await store.create(plane())
    seen = await asyncio.wait_for(store.watch({}, ControlPlane, Operation), 5)
    assert seen == {("ControlPlane", "alpha"): made.metadata.resource_version}
    for change in (
        lambda: store.update(scaled(made, 5)),
        lambda: store.create(plane("beta")),
        lambda: store.delete(ControlPlane, "beta"),
        lambda: store.delete_together((ControlPlane, "alpha")),
    ):
        watching = asyncio.create_task(store.watch(seen, ControlPlane, Operation))
        await store.record(Event(plane="alpha", type=EventType.NORMAL, reason="R", message="m", first=1.0, last=1.0))
        await store.release(await store.acquire("l", "me", 10.0))
        await asyncio.sleep(0.3)
        assert not watching.done(), "leases and events are no change of it"
        await change()
        now = await asyncio.wait_for(watching, 5)
        assert now != seen
        seen = now
    assert seen == {}


async def test_what_a_newer_version_wrote_is_read_and_written_again_as_it_was(store: Store) -> None:
    made = await store.create(plane())
    document = json.loads(rules.encoded(made))
    document["metadata"]["managedFields"] = [{"manager": "kubectl"}]
    document["spec"]["etcd"]["tier"] = {"size": 3}
    document["status"]["memory"]["clusters"] = ["main"]
    put_body(store, "alpha", json.dumps(document))
    read = await store.get(ControlPlane, "alpha")
    assert set(unknown_fields(read)) == {"metadata.managedFields", "spec.etcd.tier", "status.memory.clusters"}
    noted = await store.update(with_offset(read, 3))
    assert noted.metadata.generation == made.metadata.generation
    kept = json.loads(rules.encoded(await store.get(ControlPlane, "alpha")))
    assert kept["metadata"]["managedFields"] == [{"manager": "kubectl"}]
    assert (kept["spec"]["etcd"]["tier"], kept["status"]["memory"]["clusters"]) == ({"size": 3}, ["main"])
    assert kept["status"]["portOffset"] == 3
    with pytest.raises(InvalidInput, match=r"spec\.etcd\.tier: unknown field"):
        load(rules.encoded(read), "a file")


async def test_a_revision_of_which_anything_is_unknown_is_not_read(store: Store) -> None:
    owner = await store.create(plane())
    made = await store.create(revision_of(owner, template()))
    document = json.loads(rules.encoded(made))
    document["spec"]["runtime"] = "new"
    put_body(store, made.name, json.dumps(document))
    with pytest.raises(Corrupt, match=r"spec\.runtime: unknown field.*use the quarterdeck version that wrote it"):
        await store.get(ReplicaRevision, made.name)
