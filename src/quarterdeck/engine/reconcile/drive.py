"""Driving a plane from this process: take its lease, get its programs, run the loop, and update its operations."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Protocol

from quarterdeck.actions.audit import delete_audit_logs
from quarterdeck.actions.plane import Plane
from quarterdeck.actions.seats import settle_seats
from quarterdeck.actions.status import remember, write_status
from quarterdeck.actions.units import guard_members
from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.operation import Operation, OperationPhase
from quarterdeck.api.revision import ReplicaTemplate
from quarterdeck.components.catalogue import CATALOGUE
from quarterdeck.components.replica import program_version
from quarterdeck.concurrency import together
from quarterdeck.endpoint.port import OwnServer
from quarterdeck.engine.background.addon_task import KEPT_PATIENCE, PATIENCE, AddonTask
from quarterdeck.engine.background.tasks import BackgroundTask, BackgroundTasks, LongTasks
from quarterdeck.engine.controller_sets.handover_checks import hands_over, taken_up
from quarterdeck.engine.controller_sets.lock_watch import locks_watched
from quarterdeck.engine.notices.conditions import stalled
from quarterdeck.engine.notices.troubles import MET, Disposition, Troubles, fate
from quarterdeck.engine.notices.watchers import Watcher, Watchers
from quarterdeck.engine.observation.identity import note_cluster
from quarterdeck.engine.observation.observe import observer_of
from quarterdeck.engine.reconcile.former_secrets import forget_former
from quarterdeck.engine.reconcile.loop import POLL, Driver
from quarterdeck.engine.reconcile.trials import NoTrials, Trials
from quarterdeck.engine.workspace import addons, leases, operations, recorded, revisions
from quarterdeck.engine.workspace.home import Home
from quarterdeck.engine.workspace.operations import Requester, Wants, wants
from quarterdeck.engine.workspace.restores import restored_database
from quarterdeck.engine.workspace.secrets_in_use import settle_secrets
from quarterdeck.errors import Gone, InvalidInput, NotApplied, Paused, QuarterdeckError, kind_of
from quarterdeck.model.clusters import Cluster
from quarterdeck.model.components import Component
from quarterdeck.model.epochs import BackupOrigin
from quarterdeck.model.steps.plan import Plan
from quarterdeck.model.steps.units import RetryRevision
from quarterdeck.stores.lease import Clocks, LeaseGuard, hold_lease
from quarterdeck.upstream.catalog import UpstreamProgram, Versions
from quarterdeck.upstream.upstream import Upstream


def released() -> Mapping[Component, UpstreamProgram]:
    """The programs that are downloaded: those that no revision names itself."""
    return {component: UpstreamProgram(spec.program) for component, spec in CATALOGUE.items() if spec.given is None}


class IdleWait(Protocol):
    """The time between two observations of a plane that is up to date, and the background tasks until then."""

    @property
    def news(self) -> int:
        """Grows when a change outside the plane's own spec needs a new drive."""
        ...

    @property
    def background_tasks(self) -> Sequence[BackgroundTask]:
        """The background tasks of the plane."""
        ...

    async def go_on(self) -> None:
        """Called before each drive. Raises LeaseLost when the plane is lent to another process."""
        ...

    async def over(self, wanted: Wants) -> None:
        """Return when it is time for the next observation, or the wanted state changed."""
        ...


@dataclass(kw_only=True)
class _Hold:
    """A plane that this process drives, or manages (with ``rest``). ``began``: the wanted state when it was opened."""

    name: str
    guard: LeaseGuard
    tasks: LongTasks
    troubles: Troubles
    rest: IdleWait | None
    news: int = field(init=False)
    began: Wants = (None, 0, "", "")

    def __post_init__(self) -> None:
        self.news = self.rest.news if self.rest is not None else 0

    def changed(self, plane: Plane) -> bool:
        """Whether the wanted state has changed."""
        return self.began != wants(plane.resource) or (self.rest is not None and self.rest.news != self.news)


@dataclass(kw_only=True)
class Engine:
    """Drives planes of one home from this process. ``requester`` is also the lease's holder. ``trials`` test a new
    configuration before it is accepted.
    """

    home: Home
    upstream: Upstream
    requester: Requester
    watchers: Sequence[Watcher] = ()
    trials: Trials = field(default_factory=NoTrials)
    clocks: Clocks = field(default_factory=Clocks)
    processor: Callable[[], float] = time.process_time

    async def programs(self, plane: ControlPlane) -> tuple[dict[tuple[Component, str], PurePosixPath], Path]:
        """The programs of all revisions of a plane's replicas, by program and version, and CoreDNS; downloaded if they
        are missing.
        """
        known = await revisions.known(self.home.store, plane, guess=True)
        return await self.programs_of(*known.templates.values()), await self.name_server()

    async def programs_of(self, *templates: ReplicaTemplate) -> dict[tuple[Component, str], PurePosixPath]:
        """The programs of replicas of these revisions, by program and version; downloaded if they are missing. Those of
        each pair of versions are looked for once: all of a cached program is read then.
        """
        wanted, found = released(), dict[tuple[Component, str], PurePosixPath]()
        for (kubernetes, etcd), template in {
            (each.kubernetes_version, each.etcd.version): each for each in templates
        }.items():
            versions = Versions.parse(kubernetes=kubernetes, etcd=etcd)
            paths = await self.upstream.ensure(tuple(dict.fromkeys(wanted.values())), versions)
            for component, program in wanted.items():
                found[component, program_version(component, template)] = PurePosixPath(paths[program])
        return found

    async def name_server(self) -> Path:
        """CoreDNS; downloaded if it is missing."""
        return (await self.upstream.ensure((UpstreamProgram.COREDNS,), Versions()))[UpstreamProgram.COREDNS]

    async def etcdutl(self, plane: ControlPlane) -> PurePosixPath:
        """The program that restores data of etcd; downloaded if it is missing."""
        versions = Versions.parse(kubernetes=plane.spec.kubernetes_version, etcd=plane.spec.etcd.version)
        return PurePosixPath(
            (await self.upstream.ensure((UpstreamProgram.ETCDUTL,), versions))[UpstreamProgram.ETCDUTL]
        )

    async def database(self, plane: ControlPlane, origin: BackupOrigin, revision: int, cluster: Cluster) -> Path:
        """The database of a cluster at a revision of a backup; built if it is missing."""
        return (await restored_database(self.home, self.upstream, plane, origin, revision, cluster)).path

    async def drive(self, name: str, *, wait: float = 0.0) -> None:
        """Drive a plane, operation after operation, until it is up to date.

        Waits up to ``wait`` seconds for another driver to end. Raises Conflict that names it, and errors that
        ``troubles.fate`` does not retry; all others are reported and retried.
        """
        await self.programs(await recorded.existing(self.home.store, name))  # before the lease is taken
        await self._hold(name, wait, None)

    async def keep(self, name: str, rest: IdleWait) -> None:
        """``drive`` a plane and, when it is up to date, observe it again after each ``rest``, until it is deleted. A
        paused plane is only observed, and one whose change was rejected stays as it is.
        """
        await self._hold(name, 0.0, rest)

    async def _hold(self, name: str, wait: float, rest: IdleWait | None) -> None:
        lease = hold_lease(self.home.store, leases.lease_name(name), self.requester.name, wait=wait, clocks=self.clocks)
        troubles = Troubles(store=self.home.store, plane=name, clock=self.clocks.wall, watchers=Watchers(self.watchers))
        async with lease as guard:
            tasks = LongTasks(plane=name, check=guard.check, troubles=troubles)
            try:
                await self._drive_on(name, guard, tasks, troubles, rest)
            finally:
                await tasks.end()

    async def _drive_on(
        self, name: str, guard: LeaseGuard, tasks: LongTasks, troubles: Troubles, rest: IdleWait | None
    ) -> None:
        """Drive under a lease until the end. Long tasks continue across retries."""
        while True:
            try:
                if await self._drive(_Hold(name=name, guard=guard, tasks=tasks, troubles=troubles, rest=rest)):
                    return
            except MET as error:
                await troubles.meet(error)
                await asyncio.sleep(troubles.pause(POLL))

    async def _drive(self, hold: _Hold) -> bool:
        """Drive by the present spec, until done or until it changes. Returns whether it is done."""
        store, name, lease = self.home.store, hold.name, hold.guard.lease
        await hold.guard.check()
        if hold.rest is not None:
            await hold.rest.go_on()
        async with AsyncExitStack() as stack:
            try:
                resource = await recorded.existing(store, name)
            except Gone:
                # Deleted by the previous round, which could not record the end of the operation.
                if await operations.deleted(store, name, self.requester):
                    return True
                raise
            operations.require_known(resource)
            paused = operations.why_paused(resource, self.requester.now())
            if paused and hold.rest is None:
                raise Paused(f"driving plane {name}", paused, f"resume it with 'resume {name}'")
            if resource.metadata.deletion_timestamp is None:
                resource = await revisions.established(store, resource, lease=lease)
                resource = await addons.established(store, resource, lease=lease)
                await settle_secrets(store, resource, lease=lease)
            programs, dns_program = await self.programs(resource)
            opened = await self.home.plane(
                resource, stack, guard=hold.guard, programs=programs, dns_program=dns_program
            )
            opened.etcdutl = partial(self.etcdutl, resource)
            opened.database = partial(self.database, resource)
            await stack.enter_async_context(locks_watched(opened, hold.troubles))
            if hold.rest is not None and paused:
                await self._look_on(opened, hold, hold.rest)
                return False
            # Only the drivers that use such a server supervise it.
            if isinstance(opened.dns, OwnServer):
                await opened.dns.start()
            return await self._one(opened, hold)

    async def _look_on(self, plane: Plane, hold: _Hold, rest: IdleWait) -> None:
        """Only observe, as long as the plane is paused."""
        driver = await self._driver(plane, hold)
        while (paused := operations.why_paused(plane.resource, self.requester.now())) and not hold.changed(plane):
            await driver.look_on(paused)
            await rest.over(wants(plane.resource))

    async def _one(self, plane: Plane, hold: _Hold) -> bool:
        store, rest = self.home.store, hold.rest
        operation = await recorded.current(store, plane.name)
        if operation is not None:
            operation = await operations.begin(store, operation, self.requester)
        hold.troubles.operation = operation.metadata.name if operation is not None else ""
        driver = await self._driver(plane, hold)
        acted = -1
        try:
            await together(guard_members(plane), settle_seats(plane))
            await _retry_first(plane)
            while True:
                plan = await driver.run(changed=partial(_is_over, hold, operation))
                if operation is not None and (why := _first_given_up(plane)):
                    await self._gave_up(plane, operation, why, hold)
                    operation, hold.troubles.operation = None, ""
                    continue
                if not plan.done:
                    return False
                if acted != driver.acted:
                    if driver.background_tasks is not None:
                        await driver.background_tasks.end()  # ``_reached`` applies add-ons itself
                    await self._reached(plane, operation, plan, hold)
                    if hold.changed(plane):
                        return False
                    operation, hold.troubles.operation, acted = None, "", driver.acted
                if rest is None or plane.resource.metadata.deletion_timestamp is not None:
                    return True
                await rest.over(wants(plane.resource))
        except MET as error:
            if fate(error) is Disposition.HOPELESS:
                await self._failed(plane, operation, error)
            raise
        finally:
            if driver.background_tasks is not None:
                await driver.background_tasks.end()

    async def _gave_up(self, plane: Plane, operation: Operation, why: str, hold: _Hold) -> None:
        """A creation has failed. Raises InvalidInput, unless the plane is managed: its programs are still retried."""
        error = _never_ran(plane, why)
        if hold.rest is None:
            raise error
        await self._failed(plane, operation, error)

    async def _driver(self, plane: Plane, hold: _Hold) -> Driver:
        hold.began = wants(plane.resource)
        kept = () if hold.rest is None else hold.rest.background_tasks
        return Driver(
            plane=plane,
            observer=await observer_of(plane),
            troubles=hold.troubles,
            monotonic=self.clocks.monotonic,
            processor=self.processor,
            background_tasks=BackgroundTasks(troubles=hold.troubles, tasks=hold.tasks, background_tasks=kept)
            if kept
            else None,
        )

    async def _reached(self, plane: Plane, operation: Operation | None, plan: Plan, hold: _Hold) -> None:
        """The plan is done: apply the add-ons, wait for the owners of controller sets, and finish the operation. Raises
        InvalidInput when the wanted revision was rejected, and NotApplied when a requested change does not take effect,
        unless the plane is managed: it keeps serving, and is still managed.
        """
        try:
            _require_accepted(plane)
            await self._add(plane, operation, hold)
            if hands_over(operation):
                await taken_up(plane, changed=hold.changed, tell=hold.troubles.say, monotonic=self.clocks.monotonic)
        except (InvalidInput, NotApplied) as error:
            if hold.rest is None:
                raise
            await self._failed(plane, operation, error)
            return
        if hold.changed(plane):
            return
        await self._done(plane, operation)
        if operation is not None:
            await operations.succeed(self.home.store, operation, plane.resource, plan.leftovers, self.requester)

    async def _add(self, plane: Plane, operation: Operation | None, hold: _Hold) -> None:
        """Apply the add-ons. A managed plane has a background task for that, so it does not wait long here."""
        await AddonTask(monotonic=self.clocks.monotonic).finish(
            plane,
            asked=operations.asks_for_addons(operation),
            patience=PATIENCE if hold.rest is None else KEPT_PATIENCE,
            changed=hold.changed,
            tell=hold.troubles.say,
        )

    async def _failed(self, plane: Plane, operation: Operation | None, error: Exception) -> None:
        """Record why the operation failed, if that can be written."""
        try:
            if operation is not None:
                kind, phase = kind_of(error), OperationPhase.FAILED
                await operations.finish(self.home.store, operation, phase, str(error), self.requester, error=kind)
            async with plane.writing:
                generation = plane.resource.metadata.generation
                conditions = stalled(
                    plane.resource.status.conditions, str(error), generation=generation, now=plane.clock()
                )
                await write_status(plane, conditions=conditions, observed_generation=generation)
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
        await forget_former(plane)
        goals = (operation.spec.from_, operation.spec.to) if operation is not None else ()
        named = [goal.revision for goal in goals if goal is not None]
        await revisions.forget_unused(plane.store, plane.resource, named, lease=lease)
        manifests = [goal.addon_manifests for goal in goals if goal is not None]
        await addons.forget_unused(plane.store, plane.resource, manifests, lease=lease)


def _is_over(hold: _Hold, operation: Operation | None, plane: Plane) -> bool:
    """Whether the wanted state changed, or a creation has failed."""
    return hold.changed(plane) or (operation is not None and bool(_first_given_up(plane)))


def _first_given_up(plane: Plane) -> str:
    """Why the first revision of a plane was rejected; "" if it was not, or if it is no longer wanted."""
    rejected = plane.memory.rejected
    if plane.memory.proven or plane.resource.metadata.deletion_timestamp is not None:
        return ""
    if rejected is None or rejected.revision != plane.resource.status.revision:
        return ""
    return f"revision {rejected.revision} does not run: {rejected.why}"


def _never_ran(plane: Plane, why: str) -> InvalidInput:
    name = plane.name
    return InvalidInput(
        f"creating plane {name}",
        why,
        f"apply a spec that runs, or fix the cause and 'wait {name}', or 'delete {name}'",
    )


async def _retry_first(plane: Plane) -> None:
    """Retry a rejected first revision when a driver drives the plane again."""
    if _first_given_up(plane):
        why = "the plane is driven again"
        await remember(plane, (RetryRevision(site="", why=why, revision=plane.resource.status.revision),))


def _require_accepted(plane: Plane) -> None:
    """Raise InvalidInput when the wanted revision was rejected: nothing is left to do, but the plane is not up to date.
    Never for a plane in deletion.
    """
    rejected, status = plane.memory.rejected, plane.resource.status
    if plane.resource.metadata.deletion_timestamp is not None:
        return
    short = any(each.revision != status.revision for each in plane.memory.replicas)
    stops = (status.revision, *(status.via if short else ()))
    if rejected is not None and rejected.revision and rejected.revision in stops:
        raise InvalidInput(
            f"changing plane {plane.name}",
            f"revision {rejected.revision} does not run ({rejected.why}), and the plane keeps its previous revision",
            f"undo it with 'abort {plane.name}', or apply another spec",
        )
