"""Real processes on one store: killed, or frozen and woken, while they hold the lease."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from quarterdeck.api.controlplane import ControlPlane, new_control_plane
from quarterdeck.errors import Conflict, Unavailable
from quarterdeck.stores.lease import hold_lease, this_process
from quarterdeck.stores.port import JournalEntry, amend
from quarterdeck.stores.sqlite import SqliteStore

TTL = 2.0
DEADLINE = 60.0


def with_offset(plane: ControlPlane, offset: int) -> ControlPlane:
    return plane.model_copy(update={"status": plane.status.model_copy(update={"port_offset": offset})})


def one_more(plane: ControlPlane) -> ControlPlane:
    return with_offset(plane, (plane.status.port_offset or 0) + 1)


def tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


async def drive(path: Path) -> None:
    """The child: holds the lease and does what its input says, telling what came of it."""
    loop = asyncio.get_running_loop()
    ttl = float(os.environ.get("TTL", TTL))
    async with SqliteStore(path) as store, hold_lease(store, "l", this_process("child"), ttl=ttl) as guard:
        tell(f"held {guard.lease.token}")
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            try:
                if line == "check\n":
                    await guard.check()
                elif line == "write\n":
                    await amend(store, ControlPlane, "alpha", one_more, lease=guard.lease)
                tell("done")
            except Conflict as error:
                tell(f"refused: {error}")


async def write_on(path: Path) -> None:
    """The child: writes one number after the other and tells each when it is stored."""
    async with SqliteStore(path) as store:
        plane = await store.get(ControlPlane, "alpha")
        for number in range(1, 1_000_000):
            plane = await store.update(with_offset(plane, number))
            tell(str(number))


class Child:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    async def line(self) -> str:
        assert self.process.stdout is not None
        return (await asyncio.wait_for(self.process.stdout.readline(), DEADLINE)).decode().strip()

    async def asked(self, question: str) -> str:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{question}\n".encode())
        await self.process.stdin.drain()
        return await self.line()

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.process.pid, number)

    async def freeze(self, path: Path) -> None:
        """Stop the child where it stands, only not in the middle of a write: then nobody could write."""
        async with asyncio.timeout(DEADLINE), SqliteStore(path, busy_timeout=0.2) as store:
            while True:
                self.signal(signal.SIGSTOP)
                try:
                    await store.append(JournalEntry(plane="alpha", time=0.0, kind="Test", text="frozen"))
                except Unavailable:
                    self.signal(signal.SIGCONT)
                else:
                    return


@contextlib.asynccontextmanager
async def child(doing: str, path: Path) -> AsyncIterator[Child]:
    source = str(Path(sys.modules[SqliteStore.__module__].__file__ or "").parents[2])
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        __file__,
        doing,
        str(path),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": source},
    )
    try:
        yield Child(process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


@pytest.fixture
async def path(tmp_path: Path) -> Path:
    path = tmp_path / "store.db"
    async with SqliteStore(path) as store:
        await store.create(new_control_plane("alpha", site="east"))
    return path


async def test_a_second_driver_is_refused_and_told_who_the_first_is(path: Path) -> None:
    async with child("drive", path) as first, SqliteStore(path) as store:
        assert (await first.line()).startswith("held ")
        with pytest.raises(Conflict, match=rf":{first.process.pid} \(child\) holds it"):
            async with hold_lease(store, "l", "me"):
                pytest.fail("two drivers")
        # It is kept renewed: still held after longer than its time.
        with pytest.raises(Conflict):
            async with hold_lease(store, "l", "me", wait=1.5 * TTL):
                pytest.fail("two drivers")


async def test_a_driver_that_ends_well_passes_its_lease_on_at_once(path: Path) -> None:
    async with child("drive", path) as first, SqliteStore(path) as store:
        held = int((await first.line()).removeprefix("held "))
        assert first.process.stdin is not None
        first.process.stdin.close()
        assert await asyncio.wait_for(first.process.wait(), DEADLINE) == 0
        async with hold_lease(store, "l", "me") as guard:
            assert guard.lease.token > held


async def test_the_lease_of_a_driver_that_was_killed_passes_on_at_once(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TTL", "600")
    async with child("drive", path) as first, SqliteStore(path) as store:
        held = int((await first.line()).removeprefix("held "))
        assert await store.lease("l") is not None
        first.signal(signal.SIGKILL)
        await first.process.wait()
        assert await store.lease("l") is None
        async with hold_lease(store, "l", "me") as guard:
            assert guard.lease.token > held
            await amend(store, ControlPlane, "alpha", one_more, lease=guard.lease)


async def test_a_frozen_driver_of_a_lease_is_not_taken_for_dead(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TTL", "600")
    async with child("drive", path) as first, SqliteStore(path) as store:
        assert (await first.line()).startswith("held ")
        await first.freeze(path)
        with pytest.raises(Conflict):
            async with hold_lease(store, "l", "me"):
                pytest.fail("two drivers")


async def test_a_lease_of_which_nothing_is_known_but_its_holder_runs_out_by_itself(path: Path) -> None:
    """As it is where the disk knows no locks."""
    async with child("drive", path) as first, SqliteStore(path) as store:
        held = int((await first.line()).removeprefix("held "))
        for each in Path(f"{path}-holders").iterdir():
            each.unlink()
        first.signal(signal.SIGKILL)
        await first.process.wait()
        assert await store.lease("l") is not None
        async with hold_lease(store, "l", "me", wait=DEADLINE) as guard:
            assert guard.lease.token > held


@pytest.mark.parametrize("question", ["check", "write"])
async def test_a_driver_woken_after_its_lease_passed_on_does_not_act(path: Path, question: str) -> None:
    async with child("drive", path) as first, SqliteStore(path) as store:
        assert (await first.line()).startswith("held ")
        assert await first.asked(question) == "done"
        before = await store.get(ControlPlane, "alpha")
        await first.freeze(path)
        async with hold_lease(store, "l", "me", wait=DEADLINE) as guard:
            first.signal(signal.SIGCONT)
            assert (await first.asked(question)).startswith("refused: acting under lease 'l'")
            await guard.check()
            assert await store.get(ControlPlane, "alpha") == before
        # And it stays refused when the lease is free again.
        assert (await first.asked(question)).startswith("refused: ")


async def test_a_driver_woken_before_anybody_took_its_lease_goes_on(path: Path) -> None:
    async with child("drive", path) as first, SqliteStore(path) as store:
        assert (await first.line()).startswith("held ")
        await first.freeze(path)
        async with asyncio.timeout(DEADLINE):
            while await store.lease("l") is not None:  # noqa: ASYNC110 - it runs out in silence
                await asyncio.sleep(0.02)
        first.signal(signal.SIGCONT)
        assert await first.asked("check") == "done"
        assert await first.asked("write") == "done"


async def test_who_watches_sees_what_another_process_writes(path: Path) -> None:
    async with SqliteStore(path) as store:
        seen = await store.watch({}, ControlPlane)
        watching = asyncio.create_task(store.watch(seen, ControlPlane))
        async with child("write_on", path) as writer:
            await writer.line()
            assert await asyncio.wait_for(watching, DEADLINE) != seen


async def test_a_process_killed_while_it_writes_loses_nothing_that_it_was_told_is_stored(path: Path) -> None:
    for _ in range(3):
        async with child("write_on", path) as writer:
            for _ in range(20):
                stored = int(await writer.line())
            writer.signal(signal.SIGKILL)
            rest = await asyncio.wait_for(writer.process.communicate(), DEADLINE)
            confirmed = [int(line) for line in rest[0].split(b"\n")[:-1]]
        async with SqliteStore(path) as store:
            found = (await store.get(ControlPlane, "alpha")).status.port_offset
        assert found is not None
        assert found >= max([stored, *confirmed])


if __name__ == "__main__":
    asyncio.run({"drive": drive, "write_on": write_on}[sys.argv[1]](Path(sys.argv[2])))
