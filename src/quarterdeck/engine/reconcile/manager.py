"""The manager of all planes of a store on one network: one keeper for each plane."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.operation import Operation, OperationPhase
from quarterdeck.api.site import Isolation, Site
from quarterdeck.engine.background.addon_task import AddonTask
from quarterdeck.engine.background.backup import backup_tasks
from quarterdeck.engine.background.certificates import ApproveNodes, CertificateRenewal
from quarterdeck.engine.background.disk_watch import WatchMembers
from quarterdeck.engine.background.service_addresses import ServiceAddresses
from quarterdeck.engine.background.tasks import BackgroundTask, ShortTurn
from quarterdeck.engine.background.upkeep import CompareData, Tidy
from quarterdeck.engine.notices.troubles import MET, in_words
from quarterdeck.engine.notices.watchers import Watcher
from quarterdeck.engine.observation.clock_skew import WatchClocks
from quarterdeck.engine.reconcile.drive import Engine
from quarterdeck.engine.reconcile.keeper import Keeper, Log, Steps
from quarterdeck.engine.workspace.leases import loan_name, manager_lease, next_manager_lease
from quarterdeck.engine.workspace.recorded import network_of
from quarterdeck.errors import Conflict, NotFound
from quarterdeck.stores.lease import LeaseGuard, hold_lease
from quarterdeck.stores.port import Versions

#: In the environment of a manager's process: the supervisor that restarts it.
RESTARTED_BY = "QUARTERDECK_RESTARTED_BY"
#: Seconds between two checks whether the previous manager has ended, and whether this one still holds the lease.
_STANDING_BY = 1.0
_PULSE = 2.0
#: Seconds between two checks of the programs that planes share.
_WAKING = 30.0
_WATCHED = (ControlPlane, Site, Operation)


def background_tasks_of(engine: Engine) -> tuple[BackgroundTask, ...]:
    """The background tasks of a plane, in their order: those that use the observation come first, while it is new. Each
    keeper has its own.
    """
    return (
        ShortTurn(name="addresses of the Service kubernetes", turn=ServiceAddresses().turn),
        ShortTurn(name="tidying etcd's databases", turn=Tidy().turn),
        ShortTurn(name="the disks and links of etcd", turn=WatchMembers().turn),
        ShortTurn(name="the clocks of machines", turn=WatchClocks().turn),
        ShortTurn(name="add-ons", turn=AddonTask().turn),
        ShortTurn(name="certificates of nodes", turn=ApproveNodes().turn),
        ShortTurn(name="comparing the data of etcd's members", turn=CompareData().turn),
        ShortTurn(
            name="renewing certificates", turn=CertificateRenewal(home=engine.home, requester=engine.requester).turn
        ),
        *backup_tasks(engine.home, engine.upstream),
    )


@dataclass(kw_only=True)
class PlaneManager:
    """Manages the planes on ``network``. Of two managers on one store, the second stands by. ``alive`` is called every
    few seconds while it runs, and ``elsewhere`` for planes on other networks. ``watchers`` are notified about a plane
    of that name, and ``background_tasks`` are additional background tasks for it.
    """

    engine: Engine
    network: Isolation
    log: Log
    alive: Callable[[], None] = lambda: None
    elsewhere: Callable[[Isolation], None] = lambda _: None
    watchers: Callable[[str], tuple[Watcher, ...]] = lambda _: ()
    background_tasks: Callable[[str], tuple[BackgroundTask, ...]] = lambda _: ()
    clock: Callable[[], float] = time.monotonic
    _keepers: dict[str, tuple[Keeper, asyncio.Task[None]]] = field(default_factory=dict)
    #: Planes on other networks, with the version at which that was observed.
    _others: dict[str, str] = field(default_factory=dict)

    async def run(self) -> None:
        """Manage them until cancelled. Planes keep running then, and the next manager takes over."""
        while True:
            try:
                await self._serve()
            except MET as error:
                self.log.warning(str(in_words(error)))
                await asyncio.sleep(_STANDING_BY)

    async def _serve(self) -> None:
        name, store = manager_lease(self.network), self.engine.home.store
        await self._stand_by(name)
        async with hold_lease(store, name, self.engine.requester.name, clocks=self.engine.clocks) as guard:
            self.log.info("serving", network=str(self.network))
            try:
                await self._watch(guard)
            finally:
                await self._end()

    async def _stand_by(self, name: str) -> None:
        """Return when there is no manager. The first of several standby managers holds a lease for that."""
        store, logged, first = self.engine.home.store, "", None
        async with contextlib.AsyncExitStack() as stack:
            while (held := await store.lease(name)) is not None:
                if held.holder != logged:
                    logged = held.holder
                    self.log.info("standing by", network=str(self.network), serving=logged)
                if first is not None:
                    await first.check()
                else:
                    next_one = hold_lease(
                        store, next_manager_lease(self.network), self.engine.requester.name, clocks=self.engine.clocks
                    )
                    with contextlib.suppress(Conflict):
                        first = await stack.enter_async_context(next_one)
                self.alive()
                await asyncio.sleep(_STANDING_BY)

    async def _watch(self, guard: LeaseGuard) -> None:
        """Follow the store for as long as the lease is held. Failures are retried, and do not affect the keepers."""
        seen: Versions = {}
        watching, woken = self._changes(seen), -math.inf
        try:
            while True:
                await guard.check()
                self.alive()
                await asyncio.wait((watching,), timeout=_PULSE)
                try:
                    if self.clock() - woken > _WAKING:
                        woken = self.clock()
                        await self.engine.home.wake(self.network)
                    now = watching.result() if watching.done() else seen
                    await self._follow(seen, now)
                    seen = now
                except MET as error:
                    self.log.warning(str(in_words(error)))
                    await asyncio.sleep(_STANDING_BY)
                if watching.done():
                    watching = self._changes(seen)
        finally:
            watching.cancel()
            await asyncio.wait((watching,))

    def _changes(self, seen: Versions) -> asyncio.Task[Versions]:
        watched = self.engine.home.store.watch(seen, *_WATCHED)
        return asyncio.create_task(watched, name=f"watch of the planes on {self.network}")

    async def _follow(self, before: Versions, now: Versions) -> None:
        """Start keepers for new planes, and wake those of changed planes."""
        self._keepers = {name: each for name, each in self._keepers.items() if not each[1].done()}
        changed = {key for key in {*before, *now} if before.get(key) != now.get(key)}
        if any(kind == Site.__name__ for kind, _ in changed):
            self._others.clear()
            for keeper, _ in self._keepers.values():
                keeper.poke(news=True)
        for kind, name in changed if self._keepers else ():
            if kind == Operation.__name__ and (plane := await self._asked(name)) in self._keepers:
                self._keepers[plane][0].poke(news=True)
            elif kind == ControlPlane.__name__ and name in self._keepers:
                lent = await self.engine.home.store.lease(loan_name(name)) is not None
                self._keepers[name][0].poke(news=lent)
        for (kind, name), version in now.items():
            if kind == ControlPlane.__name__ and name not in self._keepers and self._others.get(name) != version:
                await self._see_to(name, version)

    async def _see_to(self, name: str, version: str) -> None:
        """Start a keeper for a plane, or report its network."""
        store, network = self.engine.home.store, Isolation.LOOPBACK
        with contextlib.suppress(NotFound):
            network = await network_of(store, await store.get(ControlPlane, name))
        if network is self.network:
            self._start(name)
        else:
            self._others[name] = version
            self.elsewhere(network)

    async def _asked(self, operation: str) -> str:
        """The plane of a pending operation; "" for others."""
        try:
            found = await self.engine.home.store.get(Operation, operation)
        except NotFound:
            return ""
        return found.spec.plane if found.status.phase is OperationPhase.PENDING else ""

    def _start(self, name: str) -> None:
        engine = replace(
            self.engine, watchers=(*self.engine.watchers, Steps(plane=name, log=self.log), *self.watchers(name))
        )
        keeper = Keeper(
            plane=name,
            engine=engine,
            log=self.log,
            background_tasks=(*background_tasks_of(engine), *self.background_tasks(name)),
            clock=self.clock,
        )
        self._keepers[name] = keeper, asyncio.create_task(keeper.run(), name=f"keeper of {name}")

    async def _end(self) -> None:
        tasks = [task for _, task in self._keepers.values()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        self._keepers.clear()
