"""A fake of the kube port, for tests of whatever uses it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

from pydantic import JsonValue

from quarterdeck.errors import Unavailable
from quarterdeck.kube.fake_objects import FakeObjects
from quarterdeck.kube.objects import Discovered, Meta, Resource
from quarterdeck.kube.port import Address, HealthAnswer, LeaderLease


@dataclass
class FakeApiserver:
    """An apiserver that answers while it is ``up``. ``has_roles``: it has seen to the plane's default roles; ``works``:
    it says so, ready or not. ``silent``: one that ends has not told its clients yet.
    """

    version: str = "1.36.3"
    up: bool = True
    hangs: bool = False
    ready: bool = True
    has_roles: bool = True
    works: bool = True
    silent: bool = False
    loaded: str | None = None


@dataclass(frozen=True)
class FakeWitness:
    """Connections to an apiserver that answered, if any did."""

    kube: FakeKube
    address: Address | None

    @property
    def told(self) -> bool:
        """See the port. Who is no more has told all."""
        server = self.kube.apiservers.get(self.address) if self.address is not None else None
        return server is None or not (server.up or server.silent)


@dataclass
class FakeKube:
    """Apiservers by their address; ``leases`` and ``objects`` are the plane's. ``leaders`` maps controllers to
    what they hold; ``frozen`` are those that accept connections and answer none.
    """

    apiservers: dict[Address, FakeApiserver] = field(default_factory=dict)
    leases: dict[str, LeaderLease] = field(default_factory=dict)
    leaders: dict[Address, frozenset[str]] = field(default_factory=dict)
    frozen: frozenset[Address] = frozenset()
    revision: int = 1
    objects: FakeObjects = field(init=False)

    def __post_init__(self) -> None:
        self.objects = FakeObjects(self._reach)

    def set_lease(self, name: str, holder: str, *, renewed: float | None = None, duration: float = 15.0) -> None:
        """What a leader does when it acquires or renews its lease."""
        self.revision += 1
        self.leases[name] = LeaderLease(
            name=name, holder=holder, renewed=renewed, duration=duration, resource_version=str(self.revision)
        )

    async def readyz(self, apiserver: Address, *, founded: bool = False, within: float | None = None) -> HealthAnswer:
        """See the port."""
        server = self.apiservers.get(apiserver)
        if server is None or not server.up:
            return HealthAnswer(False, "connection refused")
        if server.hangs:
            return HealthAnswer(None, "no answer within 1 s")
        if server.ready and not server.has_roles and not founded:
            return HealthAnswer(False, "500: [-]poststarthook/rbac/bootstrap-roles failed")
        return HealthAnswer(True) if server.ready else HealthAnswer(False, "500: [-]shutdown failed")

    async def ping(self, apiserver: Address) -> HealthAnswer:
        """See the port."""
        answer = await self.readyz(apiserver)
        server = self.apiservers.get(apiserver)
        alive = server is not None and server.up and not server.hangs
        return HealthAnswer(True) if alive else answer

    async def livez(self, apiserver: Address, *, within: float | None = None) -> HealthAnswer:
        """See the port."""
        server = self.apiservers.get(apiserver)
        if server is None or not server.up:
            return HealthAnswer(False, "connection refused")
        if server.hangs:
            return HealthAnswer(None, "no answer within 1 s")
        return HealthAnswer(True) if server.works else HealthAnswer(False, "500: [-]ping failed")

    async def healthz(self, controller: Address, *, within: float | None = None) -> HealthAnswer:
        """See the port."""
        if controller in self.frozen:
            return HealthAnswer(None, "no answer within 1 s")
        known = controller in self.leaders
        return HealthAnswer(True) if known else HealthAnswer(False, "connection refused")

    async def listens(self, server: Address) -> bool | None:
        """See the port: the kernel accepts connections for a frozen process."""
        return (found := self.apiservers.get(server)) is not None and found.up

    @asynccontextmanager
    async def witness(self, apiserver: Address) -> AsyncIterator[FakeWitness]:
        """See the port."""
        server = self.apiservers.get(apiserver)
        answers = server is not None and server.up and not server.hangs
        yield FakeWitness(self, apiserver if answers else None)

    async def version(self, apiserver: Address) -> str:
        """See the port."""
        return self._reach(apiserver).version

    async def loaded(self, apiserver: Address) -> str | None:
        """See the port."""
        return self._reach(apiserver).loaded

    async def leads(self, controller: Address, lease: str) -> bool | None:
        """See the port."""
        held = self.leaders.get(controller)
        return None if held is None else lease in held

    async def leader_lease(self, apiserver: Address, name: str) -> LeaderLease | None:
        """See the port."""
        self._reach(apiserver)
        return self.leases.get(name)

    async def release_lease(self, apiserver: Address, name: str, holder: str) -> bool:
        """See the port."""
        self._reach(apiserver)
        lease = self.leases.get(name)
        if lease is None or not holder or lease.holder != holder:
            return False
        self.revision += 1
        self.leases[name] = replace(lease, holder="", duration=1.0, resource_version=str(self.revision))
        return True

    async def discover(self, apiserver: Address) -> Discovered:
        """See the port."""
        return await self.objects.discover(apiserver)

    async def read(self, apiserver: Address, path: str) -> JsonValue:
        """See the port."""
        return await self.objects.read(apiserver, path)

    async def metadata(self, apiserver: Address, resource: Resource, selector: str) -> tuple[Meta, ...]:
        """See the port."""
        return await self.objects.metadata(apiserver, resource, selector)

    async def apply(
        self, apiserver: Address, path: str, manifest: Mapping[str, JsonValue], *, manager: str, force: bool = False
    ) -> Meta:
        """See the port."""
        return await self.objects.apply(apiserver, path, manifest, manager=manager, force=force)

    async def delete(self, apiserver: Address, path: str, *, uid: str) -> bool:
        """See the port."""
        return await self.objects.delete(apiserver, path, uid=uid)

    async def close(self) -> None:
        """See the port."""

    def _reach(self, apiserver: Address) -> FakeApiserver:
        server = self.apiservers.get(apiserver)
        if server is None or not server.up or server.hangs:
            raise Unavailable(f"asking {apiserver.host}:{apiserver.port}", "connection refused")
        return server
