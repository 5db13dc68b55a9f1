"""The context of one plane: the ports and settings that observations and actions need."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import NoReturn

from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.plane.memory import MemoryStatus, memory_from_status
from quarterdeck.api.revision import ReplicaTemplate
from quarterdeck.components.credentials import SharedSecrets
from quarterdeck.components.settings import unit_name
from quarterdeck.components.template import Revisions
from quarterdeck.endpoint.port import Dns, LoadBalancer
from quarterdeck.errors import NotFound, PreconditionFailed
from quarterdeck.etcd.port import EtcdCluster
from quarterdeck.kube.port import Kube
from quarterdeck.model.clusters import Cluster
from quarterdeck.model.components import Component
from quarterdeck.model.endpoints import RecordClaim
from quarterdeck.model.epochs import BackupOrigin
from quarterdeck.model.memory import Memory, Replica
from quarterdeck.model.seats import PortName
from quarterdeck.model.units import Machine
from quarterdeck.sites.port import SitePort
from quarterdeck.stores.lease import LeaseGuard
from quarterdeck.stores.port import Lease, Store


async def _none(*_: object) -> NoReturn:
    raise PreconditionFailed("restoring data of etcd", "this process is read-only", "drive the plane: see 'wait'")


@dataclass(kw_only=True)
class Plane:
    """A plane in use by one process."""

    #: As it was last read or written.
    resource: ControlPlane
    store: Store
    #: None: this process is read-only.
    guard: LeaseGuard | None
    sites: Mapping[str, SitePort]
    #: By site and name; addresses never change.
    machines: Mapping[tuple[str, str], Machine]
    etcd: EtcdCluster
    kube: Kube
    #: By site and machine: one for each usable edge, whether it runs or not.
    balancers: Mapping[str, Mapping[str, LoadBalancer]]
    dns: Dns
    #: The present and wanted revisions of its replicas.
    revisions: Revisions
    secrets: SharedSecrets = field(repr=False)
    #: The paths of the released programs, by program and version (``components.replica.program_version``).
    programs: Mapping[tuple[Component, str], PurePosixPath]
    #: The wall clock in seconds, for what people read.
    clock: Callable[[], float]
    #: The clock of ``boot`` in seconds, which cannot be set, for waiting times (``quarterdeck.clocks``).
    steady: Callable[[], float]
    boot: str
    #: Downloads the program that recovers a lost quorum, if it is missing.
    etcdutl: Callable[[], Awaitable[PurePosixPath]] = _none
    #: The database of a cluster at a revision of a backup, as a file on this host; built if it is missing.
    database: Callable[[BackupOrigin, int, Cluster], Awaitable[Path]] = _none
    #: Taken while load balancers are paused.
    holding: asyncio.Lock = field(default_factory=asyncio.Lock)
    #: Taken while its status or its keys are written.
    writing: asyncio.Lock = field(default_factory=asyncio.Lock)
    #: When (on ``steady``) a running replica was given the files of a revision, by both.
    given: dict[tuple[str, str], float] = field(default_factory=dict)
    _memory: tuple[MemoryStatus, Memory] | None = None

    @property
    def name(self) -> str:
        """The plane's name."""
        return self.resource.metadata.name

    @property
    def memory(self) -> Memory:
        """The memory as last read or written."""
        status = self.resource.status.memory
        if self._memory is None or self._memory[0] is not status:
            self._memory = status, memory_from_status(status)
        return self._memory[1]

    def now(self) -> float:
        """Seconds on the timeline of the memory. A process that does not drive, and so does not adopt a memory of an
        earlier boot or of another host, has only the wall clock to read it by.
        """
        timeline = self.memory.timeline
        if timeline is None or timeline.boot != self.boot:
            return self.clock()
        return self.steady() + timeline.ahead

    @property
    def claim(self) -> RecordClaim:
        """The owner and token with which this process changes the plane's DNS record."""
        return RecordClaim(
            owner=f"{self.name}/{self.resource.metadata.uid}",
            token=self.guard.lease.token if self.guard is not None else 0,
            addresses=self.addresses | self._seats | self._led,
            take_over=self.resource.spec.endpoint.take_over,
        )

    @property
    def wanted(self) -> ReplicaTemplate:
        """The template of the wanted revision. Raises Corrupt."""
        return self.revisions.template(self.revisions.goal)

    def template_of(self, record: Replica) -> ReplicaTemplate:
        """The template of a replica's own revision, from which its units are rendered. Raises Corrupt."""
        return self.revisions.template(record.revision)

    def site(self, name: str) -> SitePort:
        """A site by name; raises NotFound."""
        try:
            return self.sites[name]
        except KeyError:
            raise NotFound(f"working on plane {self.name}", f"there is no site {name!r}", "see 'site list'") from None

    @property
    def addresses(self) -> frozenset[str]:
        """The addresses of its load balancers, on all edges of all sites."""
        return frozenset(each.address.ip for edges in self.balancers.values() for each in edges.values())

    @property
    def _seats(self) -> frozenset[str]:
        """The addresses of its apiservers."""
        seats = (each.seat for each in self.memory.replicas if each.seat is not None)
        return frozenset(each.advertised(PortName.APISERVER).host for each in seats)

    @property
    def _led(self) -> frozenset[str]:
        """The addresses of all machines, where any of them may have the plane's promoted address."""
        promoted = self.resource.spec.endpoint.promoted
        return frozenset(each.address for each in self.machines.values()) if promoted else frozenset()

    def edges(self, site: str) -> Mapping[str, LoadBalancer]:
        """A site's load balancer, by the machines that it runs on; raises NotFound."""
        try:
            return self.balancers[site]
        except KeyError:
            doing = f"working on plane {self.name}"
            raise NotFound(doing, f"site {site} has no machine for load balancers") from None

    def unit(self, record: Replica, component: Component) -> str:
        """The name of a replica's unit on its machine."""
        return unit_name(self.name, record.name, component)

    async def check(self) -> None:
        """Return only if no other process can be driving this plane: called right before each effect. Takes no time if
        the lease was renewed recently. Raises LeaseLost.
        """
        if self.guard is not None:
            await self.guard.check()

    @property
    def lease(self) -> Lease | None:
        """The lease under which this process writes; None if it is read-only."""
        return self.guard.lease if self.guard is not None else None
