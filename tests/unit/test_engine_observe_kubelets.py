"""Whether kubelets reach the apiservers of a new epoch: by what they have written in it, as long as somebody waits."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from quarterdeck.components.etcd import BUMP
from quarterdeck.engine.observation.observe_kubelets import LEASES, KubeletsObserver
from quarterdeck.errors import Unavailable
from quarterdeck.kube.port import Address
from quarterdeck.model.epochs import BackupOrigin, Seed
from quarterdeck.model.memory import Memory, Replica
from quarterdeck.model.seats import HostPort, PortName, Seat, SeatPort, Slot

SEED = Seed(
    origin=BackupOrigin(store="file:///backups", folder="alpha/1", epoch=0),
    founder="east-1",
    revision=1000,
    seen=1200,
    restored=True,
    served=100.0,
)
SEAT = Seat(
    machine="east-a1",
    ports=(
        SeatPort(name=PortName.APISERVER, listen=HostPort("127.0.0.1", 6443), advertised=HostPort("127.0.0.1", 6443)),
    ),
)


class Kube:
    """Leases by the revision at which they were written; what else it answers, or that it does not."""

    def __init__(self, *revisions: int) -> None:
        self.answer: Any = {"items": [{"metadata": {"resourceVersion": str(each)}} for each in revisions]}
        self.fails: Exception | None = None
        self.hangs = False
        self.asked = 0

    async def read(self, _: Address, path: str) -> Any:
        assert path == LEASES
        self.asked += 1
        if self.hangs:
            await asyncio.Event().wait()
        if self.fails is not None:
            raise self.fails
        return self.answer


def memory(seed: Seed | None = SEED, *, epoch: int = 1) -> Memory:
    record = Replica(name="east-1", slot=Slot(site="east", zone="a"), machine="east-a1", seat=SEAT, epoch=1)
    return Memory(replicas=(record,), epoch=epoch, seed=seed)


def observer(kube: Kube) -> KubeletsObserver:
    return KubeletsObserver(plane=cast("Any", SimpleNamespace(kube=kube)), within=60.0)


async def observed(kube: Kube, known: Memory | None = None, *, now: float = 110.0) -> bool | None:
    return await observer(kube).observe(known or memory(), {"east-1": True}, now)


@pytest.mark.parametrize(
    ("revisions", "back"),
    [
        ((), True),
        ((900, 1000), False),
        ((900, 1007), False),
        ((900, 1001 + BUMP), True),
    ],
    ids=["no nodes", "as old as the data", "a survivor had applied more than it said", "renewed"],
)
async def test_a_lease_that_was_written_in_the_epoch_shows_that_kubelets_are_back(
    revisions: tuple[int, ...], back: bool
) -> None:
    assert await observed(Kube(*revisions)) is back


async def test_what_is_not_known_is_not_taken_for_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quarterdeck.engine.observation.observe_kubelets._WITHIN_S", 0.01)
    silent, broken = Kube(), Kube()
    silent.hangs, broken.fails = True, Unavailable("reading", "connection refused")
    assert await observed(silent) is None
    assert await observed(broken) is None
    assert await observer(Kube()).observe(memory(), {"east-1": None}, 110.0) is None


@pytest.mark.parametrize(
    ("known", "now"),
    [
        (memory(None), 110.0),
        (memory(replace(SEED, restored=False)), 110.0),
        (memory(), 160.0),
        (memory(epoch=2), 110.0),
    ],
    ids=["no epoch began", "its data is not there yet", "nobody waits any longer", "it serves a former epoch"],
)
async def test_nobody_is_asked_when_nothing_follows(known: Memory, now: float) -> None:
    kube = Kube(1001 + BUMP)
    assert await observed(kube, known, now=now) is None
    assert kube.asked == 0


async def test_kubelets_that_are_back_are_not_looked_for_again_in_that_epoch() -> None:
    kube = Kube(1001 + BUMP)
    its = observer(kube)
    assert [await its.observe(memory(), {"east-1": True}, 110.0) for _ in range(2)] == [True, True]
    assert kube.asked == 1
    other = replace(memory(replace(SEED, revision=1001 + BUMP)), epoch=2)
    other = replace(other, replicas=tuple(replace(each, epoch=2) for each in other.replicas))
    assert await its.observe(other, {"east-1": True}, 110.0) is False
    assert kube.asked == 2


async def test_before_an_apiserver_was_noted_to_serve_they_are_looked_for_too() -> None:
    assert await observed(Kube(900), memory(replace(SEED, served=None)), now=10_000.0) is False
