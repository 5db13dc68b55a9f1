"""What every store of locks promises: in memory, in the project's own stores, and the Lease API of a real apiserver."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import ssl
import sys
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest
from fakes.store import MemoryStore
from support.replica_processes import OneReplica, binaries, one_replica
from support.tiers import smoke

from quarterdeck.components.kubeconfig import Server, kubeconfig
from quarterdeck.errors import Conflict, InvalidInput, Unavailable
from quarterdeck.http import Answer, Http
from quarterdeck.kube.locks import KubeLocks
from quarterdeck.leases import ControllerSet, Held, LockStore, Manager, MemoryLocks, Record, Timing
from quarterdeck.model.components import Component
from quarterdeck.pki.tls import client_context
from quarterdeck.stores.locks import StoreLocks
from quarterdeck.stores.sqlite import SqliteStore
from quarterdeck.upstream.catalog import UpstreamProgram

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
def replica(tmp_path_factory: pytest.TempPathFactory, binaries: Mapping[UpstreamProgram, Path]) -> Iterator[OneReplica]:
    with one_replica(tmp_path_factory.mktemp("replica"), binaries) as replica:
        for component in (Component.ETCD, Component.APISERVER):
            replica.start_and_await(component)
        yield replica


@pytest.fixture(params=smoke("memory", "store-memory", "store-sqlite", "lease-api"))
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
    changed = await asyncio.wait_for(locks.changed(name, first.version), DEADLINE)
    assert changed == second
    assert (await asyncio.wait_for(locks.changed(f"{name}-other", ""), DEADLINE)) == other


async def test_a_set_is_handed_over_by_asking_with_hardly_a_moment_without_a_holder(
    locks: LockStore, name: str
) -> None:
    loop = asyncio.get_running_loop()
    acts: list[tuple[float, str, int]] = []

    def manager(process: str, precedence: int) -> Manager:
        async def act(held: Held) -> None:
            while True:
                held.check()
                acts.append((loop.time(), process, held.token))
                await asyncio.sleep(0.005)

        primary = ControllerSet(lock=f"{name}-{process}", controllers={})
        moving = ControllerSet(lock=name, controllers={"act": act})
        return Manager(locks, primary, [moving], precedence=precedence, timing=Timing(), watchdog=False)

    async def until(process: str) -> None:
        async with asyncio.timeout(DEADLINE):
            while not acts or acts[-1][1] != process:  # noqa: ASYNC110
                await asyncio.sleep(0.005)

    old = asyncio.create_task(manager("old", 0).run())
    await until("old")
    new = asyncio.create_task(manager("new", 1).run())
    await until("new")
    for task in (new, old):
        task.cancel()
    await asyncio.gather(old, new, return_exceptions=True)
    last = max(at for at, process, _ in acts if process == "old")
    first = min(at for at, process, _ in acts if process == "new")
    print(f"\nnobody held it for {first - last:.3f} s")
    assert 0 < first - last < 0.5
    assert {(process, token) for _, process, token in acts} == {("old", 0), ("new", 1)}


@pytest.mark.parametrize("programs", smoke("lease-api"), indirect=True)
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


class Example:
    """A process of the example."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    async def says(self, what: str, times: int) -> list[float]:
        """When it says that so many times."""
        found: list[float] = []
        assert self.process.stdout is not None
        async with asyncio.timeout(DEADLINE):
            while len(found) < times:
                line = (await self.process.stdout.readline()).decode()
                assert line, "it has ended"
                if what in line:
                    found.append(float(line.split()[0]))
        return found


@contextlib.asynccontextmanager
async def example(config: Path, version: int) -> AsyncIterator[Example]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(Path(__file__).parents[2] / "examples" / "controller_manager.py"),
        *("--kubeconfig", str(config), "--version", str(version), "--name", f"version-{version}"),
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        yield Example(process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


@pytest.mark.parametrize("programs", smoke("lease-api"), indirect=True)
async def test_two_versions_of_the_example_hand_over_three_sets_and_take_over_from_one_that_was_killed(
    programs: OneReplica, tmp_path: Path
) -> None:
    server = Server(
        url=f"https://{programs.apiserver.host}:{programs.apiserver.port}", ca=programs.secrets.kubernetes_ca.bundle
    )
    config = tmp_path / "kubeconfig"
    config.write_text(kubeconfig("alpha", "admin", server, programs.secrets.manager))
    async with example(config, 1) as old:
        await old.says("begins", 4)
        async with example(config, 2) as new:
            ended, begun = await asyncio.gather(old.says("has ended", 4), new.says("begins", 4))
            print(f"\nall four controllers were handed over within {max(begun) - min(ended):.3f} s")
            assert max(begun) - min(ended) < 0.5
            new.process.kill()
            killed = time.time()
            begun = await old.says("begins", 4)
            print(f"who was killed was followed after {max(begun) - killed:.3f} s")
            assert max(begun) - killed < 16
        old.process.send_signal(signal.SIGTERM)
        await old.says("all locks were let go", 1)
        assert await old.process.wait() == 0


@pytest.mark.parametrize("programs", smoke("lease-api"), indirect=True)
async def test_a_lease_lasts_for_whole_seconds(locks: LockStore, name: str) -> None:
    with pytest.raises(InvalidInput, match="use whole seconds"):
        await locks.create(name, replace(FIRST, duration=1.5))


async def test_nobody_knows_what_came_of_a_call_that_is_not_answered(name: str) -> None:
    nobody = KubeLocks("https://127.0.0.1:1", ssl.create_default_context())
    for call in (nobody.read(name), nobody.create(name, FIRST), nobody.changed(name, "7")):
        with pytest.raises(Unavailable):
            await call
    await nobody.close()
