"""What every load balancer driver, and the fake, promise."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import pytest
from fakes.endpoint import FakeBalancer, FakeConnection
from support.endpoint_lab import eventually
from support.lb_lab import envoy_lab
from support.tiers import smoke

from quarterdeck.endpoint.port import LoadBalancer
from quarterdeck.errors import TimedOut, Unavailable
from quarterdeck.model.endpoints import BackendAddress


class Connection(Protocol):
    async def ask(self) -> str | None:
        """The backend that answers; None when the connection is cut."""


class Lab(Protocol):
    @property
    def balancer(self) -> LoadBalancer: ...
    async def add(self, name: str) -> BackendAddress: ...
    async def set_ready(self, name: str, ready: bool) -> None: ...
    async def stop(self, name: str) -> None: ...
    def break_program(self) -> None:
        """From now on its program exits as soon as it is started."""

    async def connect(self) -> Connection | None:
        """None when nobody serves."""


@dataclass
class FakeClient:
    lab: FakeLab
    connection: FakeConnection

    async def ask(self) -> str | None:
        return self.connection.backend if self.connection in self.lab.balancer.live() else None


@dataclass
class FakeLab:
    balancer: FakeBalancer = field(init=False)
    states: dict[BackendAddress, bool] = field(default_factory=dict)
    names: dict[str, BackendAddress] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.balancer = FakeBalancer(ready=lambda address: self.states[address])

    async def add(self, name: str) -> BackendAddress:
        self.names[name] = BackendAddress("192.0.2.9", 7000 + len(self.names))
        self.states[self.names[name]] = True
        return self.names[name]

    async def set_ready(self, name: str, ready: bool) -> None:
        self.states[self.names[name]] = ready

    def break_program(self) -> None:
        self.balancer.fails = True

    async def stop(self, name: str) -> None:
        self.states[self.names[name]] = False
        for connection in self.balancer.connections:
            if connection.backend == name:
                connection.close()

    async def connect(self) -> FakeClient | None:
        try:
            return FakeClient(self, self.balancer.connect())
        except Unavailable:
            return None


@pytest.fixture(params=smoke("fake", "envoy"))
async def lab(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Lab]:
    if request.param == "fake":
        yield FakeLab()
        return
    async with envoy_lab(tmp_path, patience=3.0) as lab:
        yield lab


async def healthy(lab: Lab, *names: str) -> None:
    async def seen() -> bool:
        return (await lab.balancer.observe()).healthy == set(names)

    await eventually(seen)


async def served_by(lab: Lab, tries: int = 8) -> set[str | None]:
    found: set[str | None] = set()
    for _ in range(tries):
        connection = await lab.connect()
        found.add(await connection.ask() if connection else None)
    return found


async def test_nothing_runs_before_the_first_apply(lab: Lab) -> None:
    assert not (await lab.balancer.observe()).running
    assert await lab.connect() is None


async def test_every_backend_applied_gets_new_connections_and_nobody_else(lab: Lab) -> None:
    await lab.add("outsider")
    await lab.balancer.apply({name: await lab.add(name) for name in ("r1", "r2", "r3")})
    await healthy(lab, "r1", "r2", "r3")
    assert await served_by(lab, 12) == {"r1", "r2", "r3"}


async def test_a_backend_taken_out_gets_no_new_connection_once_apply_returns(lab: Lab) -> None:
    both = {name: await lab.add(name) for name in ("r1", "r2")}
    await lab.balancer.apply(both)
    await healthy(lab, "r1", "r2")
    await lab.balancer.apply({"r2": both["r2"]})
    assert await served_by(lab) == {"r2"}
    assert (await lab.balancer.observe()).backends == {"r2"}


async def test_connections_to_a_backend_taken_out_live_until_it_closes_them(lab: Lab) -> None:
    both = {name: await lab.add(name) for name in ("r1", "r2")}
    await lab.balancer.apply({"r1": both["r1"]})
    await healthy(lab, "r1")
    old = await lab.connect()
    assert old is not None
    assert await old.ask() == "r1"
    await lab.balancer.apply({"r2": both["r2"]})
    await lab.set_ready("r1", False)
    assert await served_by(lab) == {"r2"}
    assert await old.ask() == "r1"
    await lab.stop("r1")
    assert await old.ask() is None


async def test_a_backend_that_is_not_ready_is_out_with_its_connections_and_comes_back(lab: Lab) -> None:
    await lab.balancer.apply({name: await lab.add(name) for name in ("r1", "r2")})
    await healthy(lab, "r1", "r2")
    clients = [client for client in [await lab.connect() for _ in range(4)] if client]
    led_to = [await client.ask() for client in clients]
    assert set(led_to) == {"r1", "r2"}
    await lab.set_ready("r1", False)
    await healthy(lab, "r2")
    assert await served_by(lab) == {"r2"}
    assert [await client.ask() for client in clients] == [None if backend == "r1" else backend for backend in led_to]
    assert (await lab.balancer.observe()).backends == {"r1", "r2"}
    await lab.set_ready("r1", True)
    await healthy(lab, "r1", "r2")
    assert await served_by(lab) == {"r1", "r2"}


async def test_replacing_all_backends_never_leaves_new_connections_with_nobody(lab: Lab) -> None:
    names = [await lab.add(name) for name in ("r1", "r2")]
    await lab.balancer.apply({"r1": names[0]})
    await healthy(lab, "r1")
    done = asyncio.Event()

    async def knock() -> set[str | None]:
        seen: set[str | None] = set()
        while not done.is_set():
            seen |= await served_by(lab, 1)
            await asyncio.sleep(0)
        return seen

    knocking = asyncio.create_task(knock())
    for turn in range(6):
        await lab.balancer.apply({f"r{turn % 2 + 1}": names[turn % 2]})
        await asyncio.sleep(0)
    done.set()
    assert await knocking <= {"r1", "r2"}
    assert (await lab.balancer.observe()).backends == {"r2"}


async def test_backends_that_serve_are_kept_when_none_of_the_new_ones_does(lab: Lab) -> None:
    r1, r2 = await lab.add("r1"), await lab.add("r2")
    await lab.balancer.apply({"r1": r1})
    await healthy(lab, "r1")
    await lab.set_ready("r2", False)
    with pytest.raises(TimedOut, match="former ones are kept"):
        await lab.balancer.apply({"r2": r2})
    assert await served_by(lab) == {"r1"}
    assert (await lab.balancer.observe()).backends == {"r1", "r2"}


async def test_the_same_set_again_cuts_nobody(lab: Lab) -> None:
    backends = {"r1": await lab.add("r1")}
    await lab.balancer.apply(backends)
    await healthy(lab, "r1")
    client = await lab.connect()
    assert client is not None
    await lab.balancer.apply(backends)
    assert await client.ask() == "r1"


async def test_an_empty_set_refuses_new_connections_and_keeps_old_ones(lab: Lab) -> None:
    await lab.balancer.apply({"r1": await lab.add("r1")})
    await healthy(lab, "r1")
    client = await lab.connect()
    assert client is not None
    await lab.balancer.apply({})
    assert await lab.connect() is None
    assert await client.ask() == "r1"


async def test_connections_are_counted(lab: Lab) -> None:
    await lab.balancer.apply({"r1": await lab.add("r1")})
    await healthy(lab, "r1")
    before = await lab.balancer.observe()
    clients = [await lab.connect() for _ in range(3)]
    now = await lab.balancer.observe()
    assert (now.connections, now.accepted_total) == (3, before.accepted_total + 3)
    assert len(clients) == 3


async def test_removed_it_serves_nobody_and_removing_it_again_is_fine(lab: Lab) -> None:
    await lab.balancer.apply({"r1": await lab.add("r1")})
    await healthy(lab, "r1")
    client = await lab.connect()
    assert client is not None
    await lab.balancer.remove()
    assert await client.ask() is None
    assert not (await lab.balancer.observe()).running
    await lab.balancer.remove()


async def test_one_that_exits_again_and_again_is_there_until_it_is_removed(lab: Lab) -> None:
    lab.break_program()
    with pytest.raises(TimedOut):
        await lab.balancer.apply({"r1": await lab.add("r1")})
    seen = await lab.balancer.observe()
    assert (seen.running, seen.left) == (False, True)
    await lab.balancer.remove()
    seen = await lab.balancer.observe()
    assert (seen.running, seen.left) == (False, False)
