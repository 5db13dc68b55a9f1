"""What every store of locks promises: in memory, in the project's own stores, and the Lease API of a real apiserver."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest
from support.byhand import OneReplica, binaries, one_replica

from quarterdeck.errors import Conflict, InvalidInput, Unavailable
from quarterdeck.http import Answer, Http
from quarterdeck.kube.locks import KubeLocks
from quarterdeck.leases import ControllerSet, Held, LockStore, Manager, MemoryLocks, Record, Timing
from quarterdeck.model.components import Component
from quarterdeck.pki.tls import client_context
from quarterdeck.stores import MemoryStore, SqliteStore
from quarterdeck.stores.locks import StoreLocks
from quarterdeck.upstream.catalog import Program

__all__ = ["binaries"]

DEADLINE = 30.0
FIRST = Record(
    holder="me",
    duration=15.0,
    acquired=1_800_000_000_000_001,
    renewed=1_800_000_000_123_456,
    transitions=0,
    controllers=("node", "route"),
    answers="me",
    precedence=3,
)


@pytest.fixture(scope="module")
def replica(tmp_path_factory: pytest.TempPathFactory, binaries: Mapping[Program, Path]) -> Iterator[OneReplica]:
    with one_replica(tmp_path_factory.mktemp("replica"), binaries) as replica:
        for component in (Component.ETCD, Component.APISERVER):
            replica.start_and_await(component)
        yield replica


@pytest.fixture(params=["memory", "store-memory", "store-sqlite", "lease-api"])
def programs(request: pytest.FixtureRequest) -> OneReplica | None:
    """The replica, started outside of the event loop; none for what needs none."""
    return request.getfixturevalue("replica") if request.param == "lease-api" else None


@pytest.fixture
async def locks(
    request: pytest.FixtureRequest, programs: OneReplica | None, tmp_path: Path
) -> AsyncIterator[LockStore]:
    which = request.node.callspec.params["programs"]
    if programs is not None:
        kube = real(programs)
        yield kube
        await kube.close()
    elif which == "store-sqlite":
        async with SqliteStore(tmp_path / "store.db") as store:
            yield StoreLocks(store)
    else:
        yield MemoryLocks() if which == "memory" else StoreLocks(MemoryStore())


def real(replica: OneReplica) -> KubeLocks:
    tls = client_context(replica.secrets.kubernetes_ca.bundle, replica.secrets.manager)
    return KubeLocks(f"https://{replica.apiserver.host}:{replica.apiserver.port}", tls)


@pytest.fixture
def name() -> str:
    """A lock that no other test has."""
    return f"lock-{uuid4().hex[:8]}"


async def test_what_is_written_is_read_as_it_was(locks: LockStore, name: str) -> None:
    assert await locks.read(name) is None
    made = await locks.create(name, FIRST)
    assert made.version
    assert replace(made, version="") == FIRST
    assert await locks.read(name) == made
    free = replace(made, holder="", answers="", precedence=0, asked_by="you", transitions=7)
    freed = await locks.update(name, free)
    assert replace(freed, version=made.version) == free
    assert freed.version != made.version
    assert await locks.read(name) == freed


async def test_there_is_one_first_record_of_a_lock(locks: LockStore, name: str) -> None:
    made = await locks.create(name, FIRST)
    with pytest.raises(Conflict):
        await locks.create(name, replace(FIRST, holder="you"))
    assert await locks.read(name) == made


async def test_only_the_record_that_was_seen_is_replaced(locks: LockStore, name: str) -> None:
    first = await locks.create(name, FIRST)
    second = await locks.update(name, replace(first, renewed=first.renewed + 1))
    with pytest.raises(Conflict):
        await locks.update(name, replace(first, holder="you"))
    assert await locks.read(name) == second
    with pytest.raises(Conflict):
        await locks.update(f"{name}-none", replace(first, holder="you"))


async def test_of_those_who_write_at_once_one_succeeds(locks: LockStore, name: str) -> None:
    first = await locks.create(name, FIRST)
    writes = (locks.update(name, replace(first, holder=f"p{number}", transitions=1)) for number in range(5))
    came = await asyncio.gather(*writes, return_exceptions=True)
    (won,) = (each for each in came if isinstance(each, Record))
    assert sum(isinstance(each, Conflict) for each in came) == 4
    assert await locks.read(name) == won


async def test_a_change_is_told_to_who_waits_and_at_once_to_who_is_late(locks: LockStore, name: str) -> None:
    waiting = asyncio.create_task(locks.changed(name, ""))
    first = await locks.create(name, FIRST)
    assert (await asyncio.wait_for(waiting, DEADLINE)) == first
    waiting = asyncio.create_task(locks.changed(name, first.version))
    other = await locks.create(f"{name}-other", FIRST)
    done, _ = await asyncio.wait((waiting,), timeout=0.3)
    assert not done, "the lock of another name is no news"
    second = await locks.update(name, replace(first, asked_by="you"))
    assert (await asyncio.wait_for(waiting, DEADLINE)) == second
    told = await asyncio.wait_for(locks.changed(name, first.version), DEADLINE)
    assert told == second
    assert (await asyncio.wait_for(locks.changed(f"{name}-other", ""), DEADLINE)) == other


async def test_a_set_is_handed_over_by_asking_with_hardly_a_moment_without_a_holder(
    locks: LockStore, name: str
) -> None:
    loop = asyncio.get_running_loop()
    acts: list[tuple[float, str, int]] = []

    def manager(who: str, precedence: int) -> Manager:
        async def act(held: Held) -> None:
            while True:
                held.check()
                acts.append((loop.time(), who, held.token))
                await asyncio.sleep(0.005)

        primary = ControllerSet(lock=f"{name}-{who}", controllers={})
        moving = ControllerSet(lock=name, controllers={"act": act})
        return Manager(locks, primary, [moving], precedence=precedence, timing=Timing(), watchdog=False)

    async def until(who: str) -> None:
        async with asyncio.timeout(DEADLINE):
            while not acts or acts[-1][1] != who:  # noqa: ASYNC110
                await asyncio.sleep(0.005)

    old = asyncio.create_task(manager("old", 0).run())
    await until("old")
    new = asyncio.create_task(manager("new", 1).run())
    await until("new")
    for task in (new, old):
        task.cancel()
    await asyncio.gather(old, new, return_exceptions=True)
    last = max(at for at, who, _ in acts if who == "old")
    first = min(at for at, who, _ in acts if who == "new")
    print(f"\nnobody held it for {first - last:.3f} s")
    assert 0 < first - last < 0.5
    assert {(who, token) for _, who, token in acts} == {("old", 0), ("new", 1)}


@pytest.mark.parametrize("programs", ["lease-api"], indirect=True)
async def test_a_lease_that_is_deleted_is_told_of_and_what_others_wrote_beside_it_stays(
    programs: OneReplica, locks: LockStore, name: str
) -> None:
    made = await locks.create(name, FIRST)
    http = Http(client_context(programs.secrets.kubernetes_ca.bundle, programs.secrets.manager))

    async def ask(method: str, content: bytes = b"") -> Answer:
        path = f"/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/{name}"
        return await http.ask(
            method,
            f"https://{programs.apiserver.host}:{programs.apiserver.port}",
            path,
            deadline=5.0,
            headers={"Content-Type": "application/merge-patch+json"},
            content=content,
        )

    assert (await ask("PATCH", b'{"metadata":{"labels":{"mine":"yes"}}}')).status == 200
    seen = await locks.read(name)
    assert seen is not None
    assert replace(seen, version="") == replace(made, version="")
    seen = await locks.update(name, replace(seen, transitions=1))
    assert b'"mine":"yes"' in (await ask("GET")).body
    waiting = asyncio.create_task(locks.changed(name, seen.version))
    assert (await ask("DELETE")).status == 200
    assert await asyncio.wait_for(waiting, DEADLINE) is None
    await http.close()


@pytest.mark.parametrize("programs", ["lease-api"], indirect=True)
async def test_a_lease_lasts_for_whole_seconds(locks: LockStore, name: str) -> None:
    with pytest.raises(InvalidInput, match="use whole seconds"):
        await locks.create(name, replace(FIRST, duration=1.5))


async def test_nobody_knows_what_came_of_a_call_that_is_not_answered(name: str) -> None:
    nobody = KubeLocks("https://127.0.0.1:1", ssl.create_default_context())
    for call in (nobody.read(name), nobody.create(name, FIRST), nobody.changed(name, "7")):
        with pytest.raises(Unavailable):
            await call
    await nobody.close()
