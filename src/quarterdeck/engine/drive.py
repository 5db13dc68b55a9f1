"""Driving a plane from this process: take its lease, get its programs, loop, and keep the books of its operations."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from quarterdeck.actions.audit import delete_audit_logs
from quarterdeck.actions.plane import Plane
from quarterdeck.actions.seats import settle_seats
from quarterdeck.actions.status import write_status
from quarterdeck.actions.together import together
from quarterdeck.actions.units import guard_members
from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.operation import Operation, OperationPhase
from quarterdeck.components.catalogue import CATALOGUE
from quarterdeck.endpoint.port import OwnServer
from quarterdeck.engine import operations, revisions
from quarterdeck.engine.belongings import renew_manager
from quarterdeck.engine.conditions import stalled
from quarterdeck.engine.driver import POLL, Driver
from quarterdeck.engine.home import Home
from quarterdeck.engine.identity import note_cluster
from quarterdeck.engine.observing import observer_of
from quarterdeck.engine.operations import Asker
from quarterdeck.engine.troubles import MET, Fate, Troubles, fate
from quarterdeck.engine.watchers import Watcher, Watchers
from quarterdeck.errors import Gone, InvalidInput, Paused, QuarterdeckError
from quarterdeck.model.components import Component
from quarterdeck.stores.amend import amend
from quarterdeck.stores.lease import Clocks, LeaseGuard, hold_lease
from quarterdeck.upstream.catalog import Program, Versions
from quarterdeck.upstream.upstream import Upstream

PROGRAMS: Mapping[Component, Program] = {component: Program(spec.program) for component, spec in CATALOGUE.items()}


@dataclass(kw_only=True)
class Engine:
    """Drives planes of one home from this process. ``asker`` is also the lease's holder, in words."""

    home: Home
    upstream: Upstream
    asker: Asker
    watchers: Sequence[Watcher] = ()
    clocks: Clocks = field(default_factory=Clocks)
    processor: Callable[[], float] = time.process_time

    async def programs(self, plane: ControlPlane) -> tuple[dict[Component, PurePosixPath], Path]:
        """The programs of a plane's replicas, and CoreDNS; fetched if they are missing."""
        versions = Versions.parse(kubernetes=plane.spec.kubernetes_version, etcd=plane.spec.etcd.version)
        paths = await self.upstream.ensure((*dict.fromkeys(PROGRAMS.values()), Program.COREDNS), versions)
        found = {component: PurePosixPath(paths[program]) for component, program in PROGRAMS.items()}
        return found, paths[Program.COREDNS]

    async def drive(self, name: str, *, wait: float = 0.0) -> None:
        """Bring a plane to what its spec says, operation after operation, until nothing is left to do.

        Waits up to ``wait`` seconds for another driver to end. Raises Conflict that names it, and what
        ``troubles.fate`` calls the end; all else that fails is told and tried again.
        """
        plane = await operations.existing(self.home.store, name)
        programs, dns_program = await self.programs(plane)
        lease = hold_lease(self.home.store, operations.lease_name(name), self.asker.who, wait=wait, clocks=self.clocks)
        troubles = Troubles(store=self.home.store, plane=name, clock=self.clocks.wall, watchers=Watchers(self.watchers))
        async with lease as guard:
            while True:
                try:
                    if await self._drive(name, guard, programs, dns_program, troubles):
                        return
                except MET as error:
                    await troubles.meet(error)
                    await asyncio.sleep(troubles.pause(POLL))

    async def _drive(
        self,
        name: str,
        guard: LeaseGuard,
        programs: Mapping[Component, PurePosixPath],
        dns_program: Path,
        troubles: Troubles,
    ) -> bool:
        """Drive by the spec of now, until done or until that changes. Whether it is done."""
        await guard.check()
        async with AsyncExitStack() as stack:
            try:
                resource = await operations.existing(self.home.store, name)
                resource = await amend(self.home.store, ControlPlane, name, operations.finalized, lease=guard.lease)
            except Gone:
                # Deleted by the round before this one, which could not write down that this was the end.
                if await operations.deleted(self.home.store, name, self.asker):
                    return True
                raise
            operations.require_known(resource)
            if resource.spec.paused and resource.metadata.deletion_timestamp is None:
                raise Paused(f"driving plane {name}", "it is paused", f"let it go on with 'resume {name}'")
            if resource.metadata.deletion_timestamp is None:
                resource = await revisions.established(self.home.store, resource, lease=guard.lease)
                await renew_manager(self.home.store, resource, lease=guard.lease)
            opened = await self.home.plane(resource, stack, guard=guard, programs=programs, dns_program=dns_program)
            # Nothing watches over such a server but those who use it.
            if isinstance(opened.dns, OwnServer):
                await opened.dns.start()
            return await self._one(opened, troubles)

    async def _one(self, plane: Plane, troubles: Troubles) -> bool:
        store, name = self.home.store, plane.name
        begun = plane.resource
        operation = await operations.current(store, name)
        if operation is not None:
            operation = await operations.begin(store, operation, self.asker)
        troubles.operation = operation.metadata.name if operation is not None else ""
        driver = Driver(
            plane=plane,
            observer=await observer_of(plane),
            troubles=troubles,
            monotonic=self.clocks.monotonic,
            processor=self.processor,
        )
        try:
            await together(guard_members(plane), settle_seats(plane))
            plan = await driver.run(changed=lambda seen: _wants(seen.resource) != _wants(begun))
            if plan.done:
                _require_accepted(plane)
        except MET as error:
            if fate(error) is Fate.HOPELESS:
                await self._failed(plane, operation, error)
            raise
        if not plan.done:
            return False
        await self._done(plane, operation)
        if operation is not None:
            await operations.succeed(store, operation, plane.resource, plan.leftovers, self.asker)
        return True

    async def _failed(self, plane: Plane, operation: Operation | None, error: Exception) -> None:
        """Write down why nothing goes on, if that can be written."""
        try:
            if operation is not None:
                await operations.finish(self.home.store, operation, OperationPhase.FAILED, str(error), self.asker)
            generation = plane.resource.metadata.generation
            so = stalled(plane.resource.status.conditions, str(error), generation=generation, now=plane.clock())
            await write_status(plane, conditions=so, observed_generation=generation)
        except QuarterdeckError as again:
            error.add_note(str(again))

    async def _done(self, plane: Plane, operation: Operation | None) -> None:
        lease = plane.guard.lease if plane.guard is not None else None
        if plane.resource.metadata.deletion_timestamp is not None:
            await delete_audit_logs(plane)
            await settle_seats(plane)
            await self.home.forget(plane.resource, lease=lease)
            return
        await guard_members(plane)
        await note_cluster(plane)
        goals = (operation.spec.from_, operation.spec.to) if operation is not None else ()
        named = [goal.revision for goal in goals if goal is not None]
        await revisions.forget_unused(plane.store, plane.resource, named, lease=lease)


def _require_accepted(plane: Plane) -> None:
    """Raise InvalidInput when what the user wants was given up: the plane is at rest, but not as wanted."""
    rejected = plane.memory.rejected
    if rejected is not None and rejected.revision and rejected.revision == plane.resource.status.revision:
        raise InvalidInput(
            f"changing plane {plane.name}",
            f"revision {rejected.revision} does not run ({rejected.why}), and the plane serves on as before",
            f"take it back with 'abort {plane.name}', or apply something else",
        )


def _wants(plane: ControlPlane) -> tuple[int, str]:
    """What changes with each change of what is wanted; the content of a file that the spec names is in the revision."""
    return plane.metadata.generation, plane.status.revision
