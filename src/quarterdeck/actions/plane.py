"""One plane with all the ports that lead to it: what observing and acting need."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import PurePosixPath

from pydantic import SecretStr

from quarterdeck.api.conditions import Condition
from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.memory import MemoryStatus, memory_from_status, memory_to_status
from quarterdeck.api.secrets import PlaneSecrets as SecretsResource
from quarterdeck.components.credentials import PlaneSecrets, ReplicaSecrets
from quarterdeck.components.ports import load_balancer_port, seat_of_before
from quarterdeck.components.settings import PlaneSettings, ReplicaSettings, unit_name
from quarterdeck.components.template import Revisions, settings_of
from quarterdeck.endpoint.port import Dns, LoadBalancer
from quarterdeck.errors import Conflict, Gone, LeaseLost, NotFound, Unavailable
from quarterdeck.etcd.port import Etcd
from quarterdeck.kube.port import Address, Kube
from quarterdeck.model.components import Component
from quarterdeck.model.endpoints import BackendAddress, Claim
from quarterdeck.model.memory import Memory, Replica
from quarterdeck.model.remember import remember
from quarterdeck.model.seats import PortName, Seat
from quarterdeck.model.steps import Step
from quarterdeck.model.timeline import adopted
from quarterdeck.model.units import Machine, MachineRole, Volume
from quarterdeck.pki.codec import decode, encode
from quarterdeck.pki.issuing import ReplicaNames, with_replica, without_replica
from quarterdeck.sites.port import Site
from quarterdeck.stores.lease import LeaseGuard
from quarterdeck.stores.port import Lease, Store

#: Writes of the memory race only with users' changes of the spec, which are few.
_WRITE_TRIES = 10


@dataclass(kw_only=True)
class Plane:
    """A plane in use by one process. ``resource`` is as it was last read or written.

    ``machines`` maps (site, machine) to the machine; addresses never change. ``balancers`` has one for each site
    that can be used, whether it runs or not. ``holding`` is taken while load balancers are held. ``revisions`` has
    what its replicas run, and what is wanted of them.

    ``clock`` is the wall clock, for what people read. What is waited for is counted by ``steady``, the clock of
    ``boot`` that nobody sets (``quarterdeck.clocks``). All in seconds.
    """

    resource: ControlPlane
    store: Store
    guard: LeaseGuard | None
    sites: Mapping[str, Site]
    machines: Mapping[tuple[str, str], Machine]
    etcd: Etcd
    kube: Kube
    balancers: Mapping[str, LoadBalancer]
    dns: Dns
    revisions: Revisions
    secrets: PlaneSecrets = field(repr=False)
    programs: Mapping[Component, PurePosixPath]
    clock: Callable[[], float]
    steady: Callable[[], float]
    boot: str
    holding: asyncio.Lock = field(default_factory=asyncio.Lock)
    _writing: asyncio.Lock = field(default_factory=asyncio.Lock)
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
        """Seconds on the timeline of the memory. Whoever does not drive, and so does not adopt a memory of an earlier
        boot or of another host, has only the wall clock to read it by.
        """
        timeline = self.memory.timeline
        if timeline is None or timeline.boot != self.boot:
            return self.clock()
        return self.steady() + timeline.ahead

    @property
    def claim(self) -> Claim:
        """In whose name this process changes the plane's DNS record."""
        return Claim(
            owner=f"{self.name}/{self.resource.metadata.uid}",
            token=self.guard.lease.token if self.guard is not None else 0,
            addresses=frozenset(each.address.ip for each in self.balancers.values()),
            take_over=self.resource.spec.endpoint.take_over,
        )

    @property
    def settings(self) -> PlaneSettings:
        """What is equal on all replicas as they are wanted."""
        return settings_of(self.name, self.revisions.template(self.revisions.goal))

    def settings_of(self, record: Replica) -> PlaneSettings:
        """What a replica's units are rendered from: its own revision, whatever is wanted by now. Raises Corrupt."""
        return settings_of(self.name, self.revisions.template(record.revision))

    def site(self, name: str) -> Site:
        """A site by name; raises NotFound."""
        try:
            return self.sites[name]
        except KeyError:
            raise NotFound(f"working on plane {self.name}", f"there is no site {name!r}", "see 'site list'") from None

    def seat(self, record: Replica) -> Seat:
        """A replica's place on its machine, which all that runs or reaches it goes by. Raises NotFound for one from
        before there were seats whose machine is gone.
        """
        return seat_of(record, self.resource, self.machines)

    def edge(self, site: str) -> Machine:
        """The machine that hosts a site's load balancers; raises NotFound."""
        for (where, _), machine in self.machines.items():
            if where == site and machine.role is MachineRole.EDGE:
                return machine
        raise NotFound(f"working on plane {self.name}", f"site {site} has no machine for load balancers")

    def unit(self, record: Replica, component: Component) -> str:
        """The name of a replica's unit on its machine."""
        return unit_name(self.name, record.name, component)

    def volume(self, record: Replica) -> str:
        """The name of a replica's volume on its machine."""
        return f"{self.name}-{record.name}"

    def client_url(self, record: Replica) -> str:
        """Where a member answers clients."""
        return self.seat(record).advertised(PortName.ETCD_CLIENT).url()

    def peer_url(self, record: Replica) -> str:
        """Where a member answers its peers; it identifies the member."""
        return self.seat(record).advertised(PortName.ETCD_PEER).url()

    @property
    def audit_volumes(self) -> str:
        """What the names of the volumes of the plane's audit logs begin with, on each machine that has ever hosted an
        apiserver of it. They are the plane's own: another one of the same name does not go on writing there.
        """
        return f"{self.name}-audit-{self.resource.metadata.uid}"

    def audit_volume(self, record: Replica) -> str:
        """The volume of the audit log of a replica's seat. Two apiservers must not share one: each would move away what
        the other is writing to, and write over it (natefinch/lumberjack: openNew). It is the seat's, so that whoever
        sits there next goes on with it, and deletes from it what is too old. That of the seat which the plane's number
        stands for has the name that was given when each machine had one for each plane.
        """
        port = self.seat(record).listen(PortName.APISERVER).port
        of_before = load_balancer_port(self.resource.status.port_offset or 0)
        return self.audit_volumes if port == of_before else f"{self.audit_volumes}-{port}"

    def metrics_url(self, record: Replica) -> str:
        """Where a member tells its metrics, from its first moment on."""
        return self.seat(record).advertised(PortName.ETCD_METRICS).url(self.settings_of(record).metrics_scheme)

    def server(self, record: Replica, port: PortName) -> Address:
        """Where one of a replica's Kubernetes programs answers."""
        end = self.seat(record).advertised(port)
        return Address(end.host, end.port)

    def apiserver(self, record: Replica) -> Address:
        """Where a replica's apiserver answers."""
        return self.server(record, PortName.APISERVER)

    def backend(self, record: Replica) -> BackendAddress:
        """The same, for load balancers."""
        end = self.seat(record).advertised(PortName.APISERVER)
        return BackendAddress(end.host, end.port)

    def client_urls(self) -> tuple[str, ...]:
        """The client URLs of all replicas that are or may be members."""
        memory = self.memory
        return tuple(
            self.client_url(record) for record in memory.replicas if record.listed or record.name in memory.bootstrap
        )

    async def replica_settings(self, record: Replica, component: Component) -> ReplicaSettings:
        """What a replica's unit needs to know of it; makes its volume if there is none, but never that of one that has
        started: its data is somewhere, or lost. Raises Unavailable then. The audit log's is an apiserver's alone:
        a disk that only the log is on keeps no member from starting.
        """
        site = self.site(record.site)
        volume = await self.volume_of(record)
        if volume is None and record.started:
            raise Unavailable(
                f"starting a unit of {record.name}",
                f"its volume {self.volume(record)} is gone from machine {record.machine}",
                "put it back with all that was in it",
            )
        if volume is None:
            volume = await site.create_volume(record.machine, self.volume(record), record.storage_class)
        return ReplicaSettings(
            name=record.name,
            seat=self.seat(record),
            volume=volume.path,
            audit=(await self._audit_volume_at(record)).path if component is Component.APISERVER else None,
            folders={each: site.folder(record.machine, self.unit(record, each)) for each in Component},
            programs=self.programs,
        )

    async def _audit_volume_at(self, record: Replica) -> Volume:
        """The volume of the audit log of a replica's seat: of the site's first class, or of what was that once."""
        site, name = self.site(record.site), self.audit_volume(record)
        try:
            return await site.create_volume(record.machine, name, (await site.storage_classes())[0])
        except Conflict:
            return next(each for each in await site.volumes(record.machine) if each.name == name)

    async def volume_of(self, record: Replica) -> Volume | None:
        """A replica's volume, if its machine has it. Raises Unavailable."""
        site, name = self.site(record.site), self.volume(record)
        try:
            await site.list_volume(record.machine, name)
        except NotFound:
            return None
        return await site.create_volume(record.machine, name, record.storage_class)

    async def certificates(self, record: Replica) -> ReplicaSecrets:
        """A replica's certificates: issued and stored the first time, the same ever after, until its revision wants
        them anew.
        """
        generation = self.revisions.template(record.revision).certificates.generation
        settings = self.settings_of(record)
        names = ReplicaNames(
            replica=record.name,
            addresses=self.seat(record).hosts,
            service_ip=settings.service_ip,
            cluster_domain=settings.cluster_domain,
            endpoint_names=(settings.endpoint_name,) if settings.endpoint_name else (),
            endpoint_addresses=tuple(sorted({balancer.address.ip for balancer in self.balancers.values()})),
        )
        found = self.secrets.replica(record.name)
        if found is None or self.secrets.generation(record.name) < generation:
            now = datetime.now(UTC)  # of two units of a replica one issues them, and the other finds them
            await self._write_secrets(lambda secrets: with_replica(secrets, names, now, generation=generation))
            found = self.secrets.replica(record.name)
        assert found is not None
        return found

    async def forget_certificates(self, record: Replica) -> None:
        """Drop what was issued for a replica that is gone."""
        if self.secrets.replica(record.name) is not None:
            await self._write_secrets(lambda secrets: without_replica(secrets, record.name))

    async def _write_secrets(self, change: Callable[[PlaneSecrets], PlaneSecrets]) -> None:
        async with self._writing:
            stored = await self.store.get(SecretsResource, self.name)
            secrets = decode(stored.data.get_secret_value())
            changed = change(secrets)
            if changed is not secrets:
                data = SecretStr(encode(changed))
                await self.store.update(stored.model_copy(update={"data": data}), lease=self._lease())
            self.secrets = changed

    async def check(self) -> None:
        """Return only if no other process can be driving this plane: asked right before each effect. Takes no time
        as long as the lease was renewed lately. Raises LeaseLost.
        """
        if self.guard is not None:
            await self.guard.check()

    def _lease(self) -> Lease | None:
        return self.guard.lease if self.guard is not None else None

    async def refresh(self) -> None:
        """Read the resource again: the user may have changed the spec. Raises Gone."""
        try:
            self.resource = await self.store.get(ControlPlane, self.name)
        except NotFound as error:
            raise Gone(error.doing, error.seen) from None

    async def adopt(self) -> None:
        """Have the memory's times count by this host's clock of now, if they do not yet: for whoever drives."""
        async with self._writing:
            memory = adopted(self.memory, boot=self.boot, steady=self.steady(), wall=self.clock())
            if memory != self.memory:
                await self.write_status(memory=memory)

    async def remember_seats(self, seats: Mapping[str, Seat]) -> None:
        """Write down the seats of these replicas, if that was not done. Raises LeaseLost."""
        async with self._writing:
            memory = self.memory
            seated = tuple(replace(each, seat=seats.get(each.name, each.seat)) for each in memory.replicas)
            if seated != memory.replicas:
                await self.write_status(memory=replace(memory, replicas=seated))

    async def remember(self, steps: tuple[Step, ...]) -> None:
        """Write what the steps leave in the memory, all at once. Raises LeaseLost."""
        now = self.now()
        async with self._writing:
            memory = self.memory
            for step in steps:
                memory = remember(memory, step, now)
            if memory != self.memory:
                await self.write_status(memory=memory)

    async def write_status(
        self,
        *,
        memory: Memory | None = None,
        conditions: tuple[Condition, ...] | None = None,
        observed_generation: int | None = None,
    ) -> None:
        """Change what is given of the status; the spec is whatever the user made of it meanwhile."""
        changes = {
            "memory": memory_to_status(memory) if memory is not None else None,
            "conditions": conditions,
            "observed_generation": observed_generation,
        }
        changes = {key: value for key, value in changes.items() if value is not None}
        for attempt in range(_WRITE_TRIES):
            status = self.resource.status.model_copy(update=changes)
            try:
                self.resource = await self.store.update(
                    self.resource.model_copy(update={"status": status}), lease=self._lease()
                )
            except LeaseLost:
                raise
            except Conflict:
                if attempt + 1 == _WRITE_TRIES:
                    raise
                await self.refresh()
            else:
                return


def seat_of(record: Replica, plane: ControlPlane, machines: Mapping[tuple[str, str], Machine]) -> Seat:
    """The seat of a replica of any plane. Raises NotFound as ``Plane.seat`` does."""
    if record.seat is not None:
        return record.seat
    machine = machines.get((record.site, record.machine))
    if machine is None:
        raise NotFound(f"working on replica {record.name}", f"site {record.site} has no machine {record.machine}")
    return seat_of_before(record.machine, machine.address, plane.status.port_offset or 0)
