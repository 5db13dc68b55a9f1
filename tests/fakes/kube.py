"""A fake of the kube port, for tests of whatever uses it."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

from pydantic import JsonValue

from fakes.kube_objects import FakeObjects
from quarterdeck.errors import TimedOut, Unavailable
from quarterdeck.kube.port import (
    Address,
    ApiResource,
    DeprecatedUse,
    Discovered,
    HealthAnswer,
    Meta,
    SeenLease,
    WriteTrial,
)

#: How many changes of leases are told to who watches; seconds after which one that hangs is silent.
_TOLD = 100
_SILENT = 5.0


@dataclass
class FakeApiserver:
    """An apiserver that answers while it is ``up``. ``has_roles``: it has seen to the plane's default roles; ``works``:
    it says so, ready or not. ``silent``: one that ends has not told its clients yet.
    """

    version: str = "1.37.2"
    up: bool = True
    hangs: bool = False
    ready: bool = True
    has_roles: bool = True
    works: bool = True
    silent: bool = False
    loaded: str | None = None
    deprecated: tuple[DeprecatedUse, ...] = ()


@dataclass(frozen=True)
class FakeWitness:
    """Connections to an apiserver that answered, if any did."""

    kube: FakeKube
    address: Address | None

    @property
    def informed(self) -> bool:
        """See the port. Who is no more has told all."""
        server = self.kube.apiservers.get(self.address) if self.address is not None else None
        return server is None or not (server.up or server.silent)


@dataclass
class FakeKube:
    """Apiservers by their address; ``leases`` and ``objects`` are the plane's. ``leaders`` maps controllers to
    what they hold; ``frozen`` are those that accept connections and answer none. ``clock`` is that of the apiservers,
    in seconds since the epoch. ``refuses_leases``: what a webhook says to each write of a lease ("": nothing);
    ``delays_leases``: a webhook answers none in time.
    """

    apiservers: dict[Address, FakeApiserver] = field(default_factory=dict)
    leases: dict[str, SeenLease] = field(default_factory=dict)
    leaders: dict[Address, frozenset[str]] = field(default_factory=dict)
    frozen: frozenset[Address] = frozenset()
    revision: int = 1
    objects: FakeObjects = field(init=False)
    #: Who may write which lease, as (user, lease).
    holders: set[tuple[str, str]] = field(default_factory=set)
    clock: Callable[[], float] = time.time
    refuses_leases: str = ""
    delays_leases: bool = False
    _changes: deque[SeenLease] = field(default_factory=lambda: deque(maxlen=_TOLD))
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.objects = FakeObjects(self._reach)

    def set_lease(
        self, name: str, holder: str, *, renewed: float | None = None, duration: float = 15.0, manager: str = ""
    ) -> None:
        """What a leader does when it acquires or renews its lease, or ("") lets go of it."""
        before = self.leases.get(name)
        same = before is not None and holder in ("", before.holder)
        self._put(
            SeenLease(
                name=name,
                holder=holder,
                renewed=renewed,
                duration=duration,
                resource_version=str(self.revision + 1),
                acquired=before.acquired if same and before else renewed,
                transitions=before.transitions + (not same) if before else 0,
                manager=manager or (before.manager if same and before else ""),
                written_at=self.clock(),
            )
        )

    def delete_lease(self, name: str) -> None:
        """What a person does who knows no better."""
        gone = replace(self.leases[name], resource_version=str(self.revision + 1), deleted=True)
        self._put(gone)
        del self.leases[name]

    def _put(self, lease: SeenLease) -> None:
        self.revision += 1
        self.leases[lease.name] = lease
        self._changes.append(lease)
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

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

    async def deprecated_uses(self, apiserver: Address) -> tuple[DeprecatedUse, ...]:
        """See the port."""
        return self._reach(apiserver).deprecated

    async def leads(self, controller: Address, lease: str) -> bool | None:
        """See the port."""
        held = self.leaders.get(controller)
        return None if held is None else lease in held

    async def leader_lease(self, apiserver: Address, name: str) -> SeenLease | None:
        """See the port."""
        self._reach(apiserver)
        lease = self.leases.get(name)
        return replace(lease, answered_at=self.clock()) if lease is not None else None

    async def try_lease(self, apiserver: Address, name: str, *, within: float) -> WriteTrial:
        """See the port."""
        self._reach(apiserver)
        if self.delays_leases:
            await asyncio.sleep(within)
        return WriteTrial(refusal=self.refuses_leases, late=self.delays_leases)

    async def release_lease(self, apiserver: Address, name: str, holder: str) -> bool:
        """See the port."""
        self._reach(apiserver)
        lease = self.leases.get(name)
        if lease is None or not holder or lease.holder != holder:
            return False
        self._put(replace(lease, holder="", duration=1.0, resource_version=str(self.revision + 1)))
        return True

    async def lease_changes(self, apiserver: Address) -> AsyncGenerator[SeenLease, None]:
        """See the port. Who falls too far behind is told all again."""
        self._reach(apiserver)
        known = self.revision
        for each in tuple(self.leases.values()):
            yield each
        while True:
            changed = self._changed
            await self._answers(apiserver)
            if self._changes and int(self._changes[0].resource_version) > known + 1:
                missed, known = tuple(self.leases.values()), self.revision
            else:
                missed, known = (
                    tuple(each for each in self._changes if int(each.resource_version) > known),
                    self.revision,
                )
            for each in missed:
                yield each
            if not changed.is_set():
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(1.0):  # whether it answers is nothing that is told
                        await changed.wait()

    async def _answers(self, apiserver: Address) -> None:
        if (server := self.apiservers.get(apiserver)) is not None and server.up and server.hangs:
            await asyncio.sleep(_SILENT)
            raise TimedOut(f"watching the leases that {apiserver.host}:{apiserver.port} has", "nothing for 5 s")
        self._reach(apiserver)

    async def may_hold(self, apiserver: Address, user: str, lease: str) -> bool:
        """See the port. A webhook on everything is called for this, too."""
        self._reach(apiserver)
        if self.refuses_leases or self.delays_leases:
            raise Unavailable(f"asking {apiserver.host}:{apiserver.port}", self.refuses_leases or "no answer in time")
        return (user, lease) in self.holders

    async def discover(self, apiserver: Address) -> Discovered:
        """See the port."""
        return await self.objects.discover(apiserver)

    async def read(self, apiserver: Address, path: str) -> JsonValue:
        """See the port."""
        return await self.objects.read(apiserver, path)

    async def metadata(self, apiserver: Address, resource: ApiResource, selector: str) -> tuple[Meta, ...]:
        """See the port."""
        return await self.objects.metadata(apiserver, resource, selector)

    async def apply(
        self, apiserver: Address, path: str, manifest: Mapping[str, JsonValue], *, manager: str, force: bool = False
    ) -> Meta:
        """See the port."""
        return await self.objects.apply(apiserver, path, manifest, manager=manager, force=force)

    async def preview(
        self, apiserver: Address, path: str, manifest: Mapping[str, JsonValue], *, manager: str
    ) -> JsonValue:
        """See the port."""
        return await self.objects.preview(apiserver, path, manifest, manager=manager)

    async def rewrite(self, apiserver: Address, path: str) -> bool:
        """See the port."""
        return await self.objects.rewrite(apiserver, path)

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
