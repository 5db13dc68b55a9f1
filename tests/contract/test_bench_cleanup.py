"""The benchmarks' homes: nothing of them is left, whatever happened in them."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from support.leftovers import processes_of

from quarterdeck.api.site import Isolation, Site
from quarterdeck.engine.workspace.home import Home
from quarterdeck.sites.netns.lab import available
from quarterdeck.sites.port import Switches

BENCH = Path(__file__).parents[2] / "bench"


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The module that the benchmarks share, found as they find it."""
    monkeypatch.syspath_prepend(str(BENCH))
    import lab

    yield lab
    del sys.modules["lab"]


async def machine_runs(folder: Path) -> None:
    """A site in network namespaces, with a machine that is up: a keeper, a guard, a forwarder and a supervisor."""
    home = await Home.open(folder)
    try:
        resource = Site.model_validate({"metadata": {"name": "near"}, "spec": {"isolation": Isolation.NETNS}})
        site = home.sites.open(await home.store.create(resource))
        machine = (await site.machines())[0].name
        assert isinstance(site, Switches)
        await site.kill_machine(machine)
        await site.boot_machine(machine)
    finally:
        await home.close()


@pytest.mark.soak  # it shows that the bench cleans up
@pytest.mark.netns
def test_a_benchmark_that_fails_in_network_namespaces_leaves_no_process(bench: ModuleType) -> None:
    allowed, reason = asyncio.run(available())
    if not allowed:
        pytest.skip(f"this host does not allow network namespaces: {reason}")
    with pytest.raises(ValueError, match="in the middle"), bench.temporary_home() as folder:
        asyncio.run(machine_runs(folder))
        assert len(processes_of(folder)) >= 3
        raise ValueError("in the middle")
    assert processes_of(folder) == []
    assert not folder.exists()
