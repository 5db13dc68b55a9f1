"""The process that keeps planes: it is killed by a drill only if it is surely the one that holds the lease."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace

import pytest
from fakes.store import MemoryStore
from support.golden import Golden

from quarterdeck.api.site import Isolation
from quarterdeck.app import RESTARTED_BY
from quarterdeck.app.manager_process import Keeping, why_unkillable
from quarterdeck.engine.workspace.leases import lease_name, manager_lease, next_manager_lease
from quarterdeck.errors import Conflict, PreconditionFailed
from quarterdeck.model.faults import Fault, FaultKind
from quarterdeck.stores.lease import this_process
from quarterdeck.stores.port import Lease

MANAGER, NEXT = manager_lease(Isolation.LOOPBACK), next_manager_lease(Isolation.LOOPBACK)
STAYS = "import sys; print(flush=True); sys.stdin.read()"
LONG = 300.0

Process = asyncio.subprocess.Process
Starts = Callable[..., Awaitable[Process]]


@asynccontextmanager
async def stays(argument: str, **environment: str) -> AsyncIterator[Process]:
    """A process with that argument, which runs when the block begins, and is gone after it."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", STAYS, argument), stdin=pipe, stdout=pipe, env={**os.environ, **environment}
    )
    try:
        assert process.stdout is not None
        assert await process.stdout.readline() == b"\n"
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


@pytest.fixture
async def start() -> AsyncIterator[Starts]:
    async with AsyncExitStack() as stack:

        async def started(argument: str = "serve", **environment: str) -> Process:
            return await stack.enter_async_context(stays(argument, **environment))

        yield started


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def keeping(store: MemoryStore) -> Keeping:
    return Keeping(store=store, network=Isolation.LOOPBACK)


def holder_name(process: Process) -> str:
    return "me@" + this_process("quarterdeck serve").replace(f":{os.getpid()} ", f":{process.pid} ")


async def held(store: MemoryStore, process: Process, name: str = MANAGER) -> Lease:
    """The lease as that process would hold it."""
    return await store.acquire(name, holder_name(process), LONG)


def fault(lease: Lease) -> Fault:
    return Fault(kind=FaultKind.KILL_MANAGER, machine="", unit=lease.holder)


async def test_the_manager_is_killed_and_gone_and_nobody_keeps_the_plane(
    store: MemoryStore, keeping: Keeping, start: Starts, golden: Golden
) -> None:
    process = await start()
    lease = await held(store, process)
    assert await keeping.why_not("demo") == f"its manager {lease.holder} does not manage it now"
    await held(store, process, lease_name("demo"))
    assert await keeping.why_not("demo") == ""
    assert why_unkillable(lease) == ""
    await keeping.make_fault(fault(lease), 1.0)
    assert await keeping.why_not("demo") == f"its manager {lease.holder} is dead", "its lease still runs"
    assert await process.wait() == -signal.SIGKILL
    assert await keeping.undo_fault(fault(lease)) == ""
    await store.release(lease)
    golden(await keeping.why_not("demo"))


async def test_what_is_not_surely_the_manager_is_not_killed(
    store: MemoryStore, keeping: Keeping, start: Starts
) -> None:
    process, other = await start(), await start("stay")
    lease = await held(store, process)
    mine = replace(lease, holder=this_process("quarterdeck serve"))
    for wrong, why in (
        (replace(lease, holder="me@elsewhere:1 (quarterdeck serve)"), "is on another host"),
        (replace(lease, holder="somebody"), "is on another host"),
        (replace(lease, expires=time.time() - 3600), "another process has its number"),  # it was started since
        (mine, "could not report the result"),
        (replace(lease, holder=holder_name(other)), "is not a 'quarterdeck serve' process"),
    ):
        assert why in why_unkillable(wrong)
    with pytest.raises(Conflict, match="is the manager now"):
        await keeping.make_fault(fault(mine), 1.0)
    await store.release(lease)
    with pytest.raises(Conflict, match="no process is the manager now"):
        await keeping.make_fault(fault(lease), 1.0)
    wrong = await held(store, other)
    with pytest.raises(PreconditionFailed, match="is not a 'quarterdeck serve' process"):
        await keeping.make_fault(fault(wrong), 1.0)
    assert (process.returncode, other.returncode) == (None, None)


async def test_a_manager_that_is_dead_is_told_so_before_its_lease_is_over(
    store: MemoryStore, keeping: Keeping, start: Starts
) -> None:
    process = await start()
    lease = await held(store, process)
    process.kill()
    await process.wait()
    assert "is dead already" in why_unkillable(lease)
    with pytest.raises(Conflict, match="has just ended"):
        await keeping.make_fault(fault(lease), 1.0)


async def test_a_standby_or_restarted_manager_takes_over(store: MemoryStore, keeping: Keeping, start: Starts) -> None:
    assert await keeping.successor() == ""
    manager = await held(store, await start())
    assert await keeping.successor() == ""
    waits = await start()
    waiting = await held(store, waits, NEXT)
    assert await keeping.successor() == waiting.holder
    waits.kill()
    await waits.wait()
    assert await keeping.successor() == "", "it is dead, and its lease still runs"
    await store.release(manager)
    await held(store, await start(**{RESTARTED_BY: "systemd"}))
    assert await keeping.successor() == "systemd"
