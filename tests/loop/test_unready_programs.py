"""A program of another revision runs, and is never ready: the roll goes back by itself, and the others serve on."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest
from fakes.etcd_cluster import Member

from loop.fake_world import Process
from loop.lives import STORIES, Life, many
from loop.members import Members
from loop.units import Etcd
from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.operation import OperationPhase
from quarterdeck.engine.workspace.settings import planner_settings
from quarterdeck.model.bounds import Settings

#: Seconds that a program gets to become ready here.
START = 20.0


@dataclass(kw_only=True)
class Stuck(Life):
    """A life whose user goes back once it is said that what is wanted does not run."""

    failed: str = ""

    async def _lived(self) -> None:
        task = asyncio.create_task(self._goes_back(), name="the user")
        await super()._lived()
        await task

    async def _goes_back(self) -> None:
        for _ in range(200):
            await asyncio.sleep(1.0)
            operation = self.operations()[-1]
            if operation.status.phase is OperationPhase.FAILED:
                break
        self.failed = operation.status.message
        await self._abort()


@pytest.fixture(autouse=True, scope="module")
def cheap() -> Iterator[None]:
    with many():
        yield


def test_an_etcd_that_runs_and_never_joins_is_given_up_and_all_are_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = Members._runs

    def never_joins(self: Members, node: Member, process: Process, etcd: Etcd) -> None:
        if "snapshot-count" not in process.flags:
            runs(self, node, process, etcd)

    def soon(plane: ControlPlane) -> Settings:
        return replace(planner_settings(plane), start=START)

    monkeypatch.setattr(Members, "_runs", never_joins)
    monkeypatch.setattr("quarterdeck.engine.observation.observe.planner_settings", soon)
    life = Stuck(story=next(each for each in STORIES if each.name == "a flag of 3"))
    life.run()
    assert "runs, and has not been ready for 20 s" in life.failed
    journal = life.world.store._journal
    (given_up,) = (entry for entry in journal if entry.kind == "reject-revision" and entry.outcome == "done")
    assert given_up.replica
    adopted = [entry.replica for entry in journal if entry.kind == "adopt-revision"]
    assert set(adopted) == {given_up.replica}, "no other replica was touched"
