"""Driving a plane from this process: take its lease, get its programs, loop, and keep the books of its operations."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from quarterdeck.actions.audit import delete_audit_logs
from quarterdeck.actions.plane import Plane
from quarterdeck.actions.units import guard_members
from quarterdeck.api.conditions import ConditionStatus, with_condition
from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.operation import OperationPhase
from quarterdeck.endpoint.coredns import CoreDns
from quarterdeck.engine import operations
from quarterdeck.engine.driver import Driver, Unwatched, Watcher
from quarterdeck.engine.home import Home, front_site
from quarterdeck.engine.observe import Observer
from quarterdeck.engine.operations import Asker
from quarterdeck.engine.settings import planner_settings, wanted_slots
from quarterdeck.errors import Conflict, QuarterdeckError
from quarterdeck.model.steps import Plan
from quarterdeck.model.world import Component
from quarterdeck.stores.lease import Clocks, hold_lease
from quarterdeck.upstream.catalog import Program, Versions
from quarterdeck.upstream.upstream import Upstream

READY = "Ready"
PROGRAMS: Mapping[Component, Program] = {
    Component.ETCD: Program.ETCD,
    Component.APISERVER: Program.KUBE_APISERVER,
    Component.CONTROLLER_MANAGER: Program.KUBE_CONTROLLER_MANAGER,
    Component.SCHEDULER: Program.KUBE_SCHEDULER,
}


def lease_name(plane: str) -> str:
    """The lease that whoever drives a plane holds."""
    return f"plane/{plane}"


@dataclass(kw_only=True)
class Engine:
    """Drives planes of one home from this process. ``asker`` is also the lease's holder, in words."""

    home: Home
    upstream: Upstream
    asker: Asker
    watcher: Watcher = field(default_factory=Unwatched)
    clocks: Clocks = field(default_factory=Clocks)
    processor: Callable[[], float] = time.process_time

    async def programs(self, plane: ControlPlane) -> tuple[dict[Component, PurePosixPath], Path]:
        """The programs of a plane's replicas, and CoreDNS; fetched if they are missing."""
        versions = Versions.parse(kubernetes=plane.spec.kubernetes_version, etcd=plane.spec.etcd.version)
        paths = await self.upstream.ensure((*PROGRAMS.values(), Program.COREDNS), versions)
        found = {component: PurePosixPath(paths[program]) for component, program in PROGRAMS.items()}
        return found, paths[Program.COREDNS]

    async def drive(self, name: str, *, wait: float = 0.0) -> None:
        """Bring a plane to what its spec says, operation after operation, until nothing is left to do.

        Waits up to ``wait`` seconds for another driver to end. Raises Conflict that names it; what the loop raises.
        """
        plane = await operations.existing(self.home.store, name)
        programs, dns_program = await self.programs(plane)
        lease = hold_lease(self.home.store, lease_name(name), self.asker.who, wait=wait, clocks=self.clocks)
        async with lease as guard:
            while True:
                async with AsyncExitStack() as stack:
                    resource = await operations.existing(self.home.store, name)
                    opened = await self.home.plane(
                        resource, stack, guard=guard, programs=programs, dns_program=dns_program
                    )
                    # Nothing watches over the hub but those who use it.
                    if isinstance(opened.dns, CoreDns):
                        await opened.dns.start()
                    if await self._one(opened):
                        return

    async def _one(self, plane: Plane) -> bool:
        """Drive until done or until the spec changed. Whether it is done."""
        store, name = self.home.store, plane.name
        generation = plane.resource.metadata.generation
        operation = await operations.current(store, name)
        if operation is not None:
            operation = await operations.begin(store, operation, self.asker)
        driver = Driver(
            plane=plane,
            observer=await self.observer(plane),
            operation=operation.metadata.name if operation is not None else "",
            watcher=self.watcher,
            monotonic=self.clocks.monotonic,
            processor=self.processor,
        )
        if plane.resource.spec.paused and plane.resource.metadata.deletion_timestamp is None:
            raise Conflict(f"driving plane {name}", "it is paused", f"let it go on with 'resume {name}'")
        await guard_members(plane)
        try:
            plan = await driver.run(changed=lambda seen: seen.resource.metadata.generation != generation)
        except QuarterdeckError as error:
            if operation is not None and not isinstance(error, Conflict):
                await operations.finish(store, operation, OperationPhase.FAILED, str(error), self.asker)
            raise
        if not plan.done:
            return False
        await self._done(plane, plan)
        if operation is not None:
            message = "; ".join(("as wanted", *plan.leftovers))
            await operations.finish(store, operation, OperationPhase.SUCCEEDED, message, self.asker)
        return True

    async def observer(self, plane: Plane) -> Observer:
        """An observer of a plane, by its spec of now."""
        resource = plane.resource
        site = await self.home.site(resource.spec.placement.site)
        return Observer(
            plane=plane,
            settings=planner_settings(resource),
            slots=wanted_slots(resource, site),
            deleting=resource.metadata.deletion_timestamp is not None,
            front=front_site(resource),
        )

    async def _done(self, plane: Plane, plan: Plan) -> None:
        if plane.resource.metadata.deletion_timestamp is not None:
            await delete_audit_logs(plane)
            await self.home.forget(plane.resource, lease=plane.guard.lease if plane.guard is not None else None)
            return
        await guard_members(plane)
        conditions = with_condition(
            plane.resource.status.conditions,
            READY,
            ConditionStatus.TRUE,
            reason="AsWanted",
            now=plane.clock(),
            message="; ".join(plan.leftovers),
            observed_generation=plane.resource.metadata.generation,
        )
        await plane.write_status(conditions=conditions, observed_generation=plane.resource.metadata.generation)
