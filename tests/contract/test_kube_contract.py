"""What every kube driver does: the fake, and real programs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pytest
from support.byhand import OneReplica, binaries, one_replica, until

from quarterdeck.components import scheduler
from quarterdeck.errors import Unavailable
from quarterdeck.kube.fake import FakeApiserver, FakeKube
from quarterdeck.kube.http import HttpKube
from quarterdeck.kube.port import Address, Kube
from quarterdeck.model.components import Component
from quarterdeck.model.seats import PortName
from quarterdeck.upstream.catalog import Program

__all__ = ["binaries"]

HOLDER = "machine-1_3f2a"


class Lab(Protocol):
    """One apiserver that is ready, one scheduler that leads, and an address where nothing listens."""

    kube: Kube
    apiserver: Address
    leader: Address
    nobody: Address

    def freeze(self) -> None:
        """Have the apiserver accept connections, but never answer."""
        ...

    def thaw(self) -> None: ...


@dataclass
class FakeLab:
    kube: FakeKube
    apiserver: Address
    leader: Address
    nobody: Address

    def freeze(self) -> None:
        self.kube.apiservers[self.apiserver].hangs = True

    def thaw(self) -> None:
        self.kube.apiservers[self.apiserver].hangs = False


@dataclass
class RealLab:
    kube: HttpKube
    apiserver: Address
    leader: Address
    nobody: Address
    replica: OneReplica

    def freeze(self) -> None:
        self.replica.processes.freeze(self.replica.spec(Component.APISERVER))

    def thaw(self) -> None:
        self.replica.processes.thaw(self.replica.spec(Component.APISERVER))


@pytest.fixture(scope="module")
def replica(tmp_path_factory: pytest.TempPathFactory, binaries: Mapping[Program, Path]) -> Iterator[OneReplica]:
    with one_replica(tmp_path_factory.mktemp("replica"), binaries) as replica:
        for component in (Component.ETCD, Component.APISERVER, Component.SCHEDULER):
            replica.start_and_await(component)
        yield replica


@pytest.fixture(params=["fake", "real"])
def programs(request: pytest.FixtureRequest) -> OneReplica | None:
    """The replica, started outside of the event loop; none for the fake."""
    replica: OneReplica = request.getfixturevalue("replica") if request.param == "real" else None
    if replica is not None:
        until(lambda: replica.leads(scheduler.LEASE), "a scheduler that leads")
    return replica


@pytest.fixture
async def lab(programs: OneReplica | None) -> AsyncIterator[Lab]:
    nobody = Address("127.0.0.1", 1)
    if programs is None:
        apiserver, leader = Address("10.0.0.1", 6443), Address("10.0.0.1", 10259)
        kube = FakeKube({apiserver: FakeApiserver()}, leaders={leader: frozenset({scheduler.LEASE})})
        kube.set_lease(scheduler.LEASE, HOLDER, renewed=1000.0)
        yield FakeLab(kube, apiserver, leader, nobody)
        return
    real = HttpKube(
        programs.secrets.kubernetes_ca.bundle,
        programs.secrets.manager,
        health_deadline=1.0,
        call_deadline=2.0,
    )
    leader = programs.at(PortName.SCHEDULER)
    try:
        yield RealLab(real, programs.apiserver, leader, nobody, programs)
    finally:
        await real.close()


async def test_a_ready_apiserver_says_so(lab: Lab) -> None:
    assert (await lab.kube.readyz(lab.apiserver)).ok is True
    assert (await lab.kube.readyz(lab.apiserver, founded=True)).ok is True
    assert (await lab.kube.ping(lab.apiserver)).ok is True


async def test_a_refused_connection_is_a_plain_no(lab: Lab) -> None:
    for answer in (await lab.kube.readyz(lab.nobody, founded=True), await lab.kube.ping(lab.nobody)):
        assert answer.ok is False
        assert answer.detail == "connection refused"


async def test_it_is_told_whether_anything_listens_ready_or_not(lab: Lab) -> None:
    assert await lab.kube.listens(lab.apiserver) is True
    assert await lab.kube.listens(lab.nobody) is False
    lab.freeze()
    try:
        assert await lab.kube.listens(lab.apiserver) is not False
    finally:
        lab.thaw()


async def test_silence_is_unknown_and_not_a_no(lab: Lab) -> None:
    lab.freeze()
    try:
        answer = await lab.kube.readyz(lab.apiserver)
        assert answer.ok is None
        assert "no answer" in answer.detail
        with pytest.raises(Unavailable):
            await lab.kube.leader_lease(lab.apiserver, scheduler.LEASE)
    finally:
        lab.thaw()
    assert (await lab.kube.readyz(lab.apiserver)).ok is True


async def test_the_version_is_a_plain_number(lab: Lab) -> None:
    assert await lab.kube.version(lab.apiserver) == "1.36.3"


async def test_calls_where_nobody_listens_are_unavailable(lab: Lab) -> None:
    with pytest.raises(Unavailable):
        await lab.kube.version(lab.nobody)
    with pytest.raises(Unavailable):
        await lab.kube.release_lease(lab.nobody, scheduler.LEASE, HOLDER)


async def test_a_leader_knows_that_it_leads(lab: Lab) -> None:
    assert await lab.kube.leads(lab.leader, scheduler.LEASE) is True
    assert await lab.kube.leads(lab.leader, "another-lease") is False
    assert await lab.kube.leads(lab.nobody, scheduler.LEASE) is None


async def test_a_lease_tells_its_holder(lab: Lab) -> None:
    lease = await lab.kube.leader_lease(lab.apiserver, scheduler.LEASE)
    assert lease is not None
    assert lease.name == scheduler.LEASE
    assert lease.holder
    assert lease.renewed is not None
    assert lease.duration == 15.0
    assert await lab.kube.leader_lease(lab.apiserver, "no-such-lease") is None


async def test_the_lease_of_somebody_else_is_never_released(lab: Lab) -> None:
    lease = await lab.kube.leader_lease(lab.apiserver, scheduler.LEASE)
    assert lease is not None
    assert await lab.kube.release_lease(lab.apiserver, scheduler.LEASE, "somebody-else") is False
    assert await lab.kube.release_lease(lab.apiserver, scheduler.LEASE, "") is False
    assert await lab.kube.release_lease(lab.apiserver, "no-such-lease", lease.holder) is False
    after = await lab.kube.leader_lease(lab.apiserver, scheduler.LEASE)
    assert after is not None
    assert after.holder == lease.holder


async def test_a_released_lease_has_no_holder(lab: Lab) -> None:
    """The real scheduler takes it again some time later: what was written is seen in the answer to the write."""
    lease = await lab.kube.leader_lease(lab.apiserver, scheduler.LEASE)
    assert lease is not None
    assert await lab.kube.release_lease(lab.apiserver, scheduler.LEASE, lease.holder) is True
    after = await lab.kube.leader_lease(lab.apiserver, scheduler.LEASE)
    assert after is not None
    assert after.resource_version != lease.resource_version
    assert after.holder == "" or isinstance(lab, RealLab)
