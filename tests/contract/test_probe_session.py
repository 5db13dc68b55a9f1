"""The probe in a process of its own, against a fake apiserver: what its parent gets, whatever happens."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from probe_lab import Act, FakeApiserver, until

from quarterdeck.errors import InvalidInput, Unavailable
from quarterdeck.probe.result import Summary
from quarterdeck.probe.schema import Failure
from quarterdeck.probe.session import ProbeSession
from quarterdeck.probe.target import ClientKind, ProbeSettings

SETTINGS = ProbeSettings(id="s", rate=40, slots=4, timeout=20.0)


@pytest.fixture
async def server() -> AsyncIterator[FakeApiserver]:
    async with FakeApiserver() as fake:
        yield fake


def gone(pid: int) -> bool:
    return not Path(f"/proc/{pid}").exists()


async def test_a_session_marks_retires_and_ends_with_a_result(server: FakeApiserver) -> None:
    summaries: list[Summary] = []
    failures: list[Failure] = []
    async with ProbeSession(
        server.target(), SETTINGS, on_summary=summaries.append, on_failure=failures.append
    ) as probe:
        pid = probe.pid
        assert pid is not None
        await until(lambda: len(summaries) >= 1)
        marked = await probe.mark("migrate")
        server.act = lambda exchange: None if exchange.watch or failures else Act.REFUSE
        await until(lambda: len(failures) >= 1)
        await probe.retire(ClientKind.PINNED)
        await until(lambda: probe.summary is not None and probe.summary.period == "migrate")
        result = await probe.stop()
    assert gone(pid)
    quiet, migrate = result.periods
    assert (quiet.label, migrate.label, migrate.start) == ("quiet", "migrate", marked)
    assert quiet.overall.failures == 0
    assert migrate.overall.failures == len(failures) == result.failed >= 1
    assert result.failures[0].reason == "status 429"
    assert (result.writes.lost, result.writes.audited, result.watches.missed) == (0, True, 0)
    assert server.namespaces == set()


async def test_the_death_of_the_worker_is_an_error_that_says_how_it_died(server: FakeApiserver) -> None:
    async with ProbeSession(server.target(), SETTINGS) as probe:
        assert probe.pid is not None
        os.kill(probe.pid, signal.SIGKILL)
        with pytest.raises(Unavailable, match="killed by signal 9"):
            await probe.mark("migrate")
        with pytest.raises(Unavailable, match="killed by signal 9"):
            await probe.stop()


async def test_leaving_without_stop_cleans_up_and_leaves_no_process(server: FakeApiserver) -> None:
    async with ProbeSession(server.target(), SETTINGS) as probe:
        pid = probe.pid
        assert pid is not None
        assert server.namespaces == {"quarterdeck-probe-s"}
    assert gone(pid)
    assert server.namespaces == set()
    assert server.store.objects == {}


async def test_a_worker_whose_parent_died_cleans_up_and_ends(server: FakeApiserver) -> None:
    async with ProbeSession(server.target(), SETTINGS) as probe:
        process = probe._process
        assert process is not None
        assert process.stdin is not None
        process.stdin.close()  # what the worker sees of a parent's death
        async with asyncio.timeout(20):
            assert await process.wait() == 0
    assert server.namespaces == set()


async def test_what_the_worker_cannot_do_comes_out_as_its_own_error(server: FakeApiserver) -> None:
    with pytest.raises(InvalidInput, match="certificates"):
        await ProbeSession(server.target(ca_pem="no"), SETTINGS).__aenter__()
    server.act = lambda exchange: Act.FORBID
    with pytest.raises(Unavailable, match=r"POST /api/v1/namespaces at plane\.test: status 403"):
        await ProbeSession(server.target(), SETTINGS).__aenter__()


async def test_secrets_are_nowhere_to_be_seen(server: FakeApiserver) -> None:
    async with ProbeSession(server.target(), replace(SETTINGS, id="t")) as probe:
        proc = Path(f"/proc/{probe.pid}")
        shown = (proc / "cmdline").read_bytes() + (proc / "environ").read_bytes()
        assert b"PRIVATE KEY" not in shown
