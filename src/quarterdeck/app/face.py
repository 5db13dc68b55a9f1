"""The application face: one typed call for each command, for the command line and for other programs."""

from __future__ import annotations

import getpass
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from typing_extensions import override

from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.operation import Operation
from quarterdeck.api.site import Isolation
from quarterdeck.app import access, certificates, changes, cordons, drains, drive, logs, service
from quarterdeck.app.access import IssuedKubeconfig, UserAccess, requested_access
from quarterdeck.app.backup.backups import Backups
from quarterdeck.app.certificates import Certificate
from quarterdeck.app.drains import Drain
from quarterdeck.app.drive import Hand
from quarterdeck.app.etcd import recovery
from quarterdeck.app.etcd.care import EtcdCare
from quarterdeck.app.etcd.recovery import LostQuorum
from quarterdeck.app.logs import Tail
from quarterdeck.app.looks import Looks, opened
from quarterdeck.app.nodes import WorkerNodes
from quarterdeck.app.operation_progress import Onlooker
from quarterdeck.app.pipes import Parent
from quarterdeck.app.site.sites import Sites
from quarterdeck.drivers import networks
from quarterdeck.drivers.trials import LocalTrials
from quarterdeck.engine.notices.watchers import Watcher
from quarterdeck.engine.preflight.moves import foreseen
from quarterdeck.engine.preflight.requests import Examined, Request
from quarterdeck.engine.preflight.upgrades import UpgradeOption, upgrade_options
from quarterdeck.engine.reconcile.drive import Engine
from quarterdeck.engine.reconcile.keeper import Log
from quarterdeck.engine.reconcile.trials import NoTrials, Trials
from quarterdeck.engine.workspace import recorded
from quarterdeck.engine.workspace.home import Home
from quarterdeck.engine.workspace.operations import Requester
from quarterdeck.model.components import Component
from quarterdeck.planner.simulated.dry_run import DryRun
from quarterdeck.progress import Progress
from quarterdeck.stores.key_seal import Key
from quarterdeck.stores.lease import this_process
from quarterdeck.upstream.upstream import Upstream

if TYPE_CHECKING:  # probes and reports take long to load, and most commands need neither
    from quarterdeck.api.belongings import Drill
    from quarterdeck.app.drill.plans import DrillPlan
    from quarterdeck.app.reports import Kept
    from quarterdeck.drills.aim import Wish
    from quarterdeck.probe.result import ProbeResult, Summary
    from quarterdeck.probe.schema import Failure
    from quarterdeck.probe.session import ProbeSession
    from quarterdeck.report.schema import Report


def requester(program: str) -> Requester:
    """The requester: this user, and this process, which runs ``program`` (text for people; no secret)."""
    return Requester(name=f"{getpass.getuser()}@{this_process(program)}")


def ignore_driver(_: Hand) -> None:
    """Receives the process that drives a plane, and ignores it."""


class Quarterdeck(Looks):
    """One open home: ``async with Quarterdeck.open() as quarterdeck: ...``.

    Every call that names a plane raises Gone (a NotFound) when no plane has that name. Those that reach its machines
    raise PreconditionFailed when its networks are its own (isolation ``netns``) and this process is in none of them:
    see ``inside_argv``. All errors are ``QuarterdeckError``. Seconds are floats, and times are aware.
    """

    def __init__(
        self,
        home: Home,
        *,
        requester: Requester,
        upstream: Upstream | None = None,
        progress: Progress | None = None,
        trials: Trials | None = None,
    ) -> None:
        """See ``open``; the caller closes ``home``. Without ``trials`` no program is tried."""
        super().__init__(home)
        self._requester = requester
        self._upstream = upstream
        self._progress = progress
        self._trials = trials or NoTrials()
        self.sites = Sites(home, requester, lambda: self._engine().name_server())
        self.nodes = WorkerNodes(home)
        self.etcd = EtcdCare(home, requester)
        self.backups = Backups(home, self._engine)

    @classmethod
    @asynccontextmanager
    @override
    async def open(
        cls,
        folder: Path | None = None,
        *,
        key: Key | None = None,
        upstream: Upstream | None = None,
        requester: Requester | None = None,
        progress: Progress | None = None,
        trial: bool = True,
    ) -> AsyncIterator[Quarterdeck]:
        """The home in ``folder``, created with its two default sites if it does not exist.

        The environment gives the defaults: QUARTERDECK_HOME (``folder``), QUARTERDECK_KEY_FILE (``key``),
        QUARTERDECK_BIN_DIR, QUARTERDECK_CACHE and QUARTERDECK_MIRROR (``upstream``). ``progress`` receives the progress
        of downloads and of files that are sent to hosts. ``requester`` names the requester of operations and holder of
        leases, for people: this user and process by default. ``trial``: before a plane is created or changed, the
        programs that get a new configuration run here for a few seconds, and a configuration with which a program does
        not start is refused.

        Raises InvalidInput for an invalid environment, Corrupt for a damaged store or one of a newer version,
        Unavailable when it cannot be written, PreconditionFailed when other users may write to it, or it is sealed with
        another key.
        """
        async with opened(folder, key, progress) as home:
            trials = LocalTrials.from_environment(os.environ, progress=progress) if trial else None
            yield cls(home, requester=requester or _this_program(), upstream=upstream, progress=progress, trials=trials)

    # reading: see ``Looks``

    async def forecast(self, name: str, *, to: str | None = None, replicas: int | None = None) -> DryRun:
        """Every step that is left to do, or that a move to site ``to`` or to this number of replicas would take, with
        the quorum margin after it; no check is made. Raises NotFound for a site, InvalidInput for the number.
        """
        return await foreseen(self._engine(), name, to, replicas)

    async def upgrade_options(self, name: str) -> tuple[UpgradeOption, ...]:
        """The versions that a plane could go to, and what stands in the way. Raises as ``forecast`` does."""
        return await upgrade_options(self._home, name)

    def logs(
        self, name: str, *, replica: str | None = None, component: Component | None = None, lines: int = 50
    ) -> AsyncIterator[Tail]:
        """The last ``lines`` that each program of a plane wrote, program by program. Raises NotFound (the replica)."""
        return logs.tails(self._home, name, replica=replica, component=component, lines=lines)

    async def certificates(self, name: str) -> tuple[Certificate, ...]:
        """Every certificate that a plane's programs use: the plane's own, then those of each replica."""
        return await certificates.listed(self._home, name)

    async def kubeconfig(self, name: str, wanted: UserAccess | None = None) -> IssuedKubeconfig:
        """A kubeconfig that is valid before, during and after a migration; by default, an administrator's."""
        return await access.issued(self._home, name, wanted or requested_access(), self._requester)

    # requests

    async def plan(self, request: Request) -> Examined:
        """Everything about a request that is known in advance; changes nothing but the programs' cache.

        Failed checks are findings of the result: see ``Examined.require``. Impossible requests raise: InvalidInput (the
        request), NotFound (the site), Conflict (the operation in progress does not allow it, or there is nothing to
        undo), PreconditionFailed (a new plane cannot be here).
        """
        return await changes.planned(self._home, self._engine, request)

    async def prepare(self, request: Request) -> Examined:
        """``plan`` without the forecast of each step: the effect of a request, and the findings of its checks."""
        return await changes.examined(self._home, self._engine, request)

    async def ask(self, request: Request | Examined) -> Operation | None:
        """Store the new desired state; ``carry_out`` or another process reconciles it.

        Returns the operation in progress; None when there is nothing to change. Raises what ``plan`` does,
        PreconditionFailed that names every failed check, Conflict when the plane was changed since it was planned.
        Nothing is changed then.
        """
        if not isinstance(request, Examined):
            request = await changes.examined(self._home, self._engine, request)
        return await changes.store_request(self._home, request, self._requester)

    async def pause(self, name: str, *, until: datetime | None = None) -> None:
        """Keep drivers from changing a plane, until that time if it is given: a manager resumes by itself afterwards.
        Running programs keep running. Raises InvalidInput for a time in the past.
        """
        await changes.set_paused(self._home, name, paused=True, until=until)

    async def resume(self, name: str) -> None:
        """End a pause. A driver reconciles the plane: ``carry_out``."""
        await changes.set_paused(self._home, name, paused=False)

    async def recover(self, lost: LostQuorum, *, even_if_others_live: bool = False) -> None:
        """Consent to continue with the survivors of a plane's etcd, as ``lost_quorum`` reported them: a driver begins
        that one epoch, and keeps all old data aside.

        Raises PreconditionFailed where others may still serve clients, unless that is overridden: they are stopped as
        soon as they can be reached; Conflict where another epoch has begun since.
        """
        await recovery.consent(self._home, lost, even_if_others_live=even_if_others_live)

    async def cordon(self, name: str, replica: str) -> bool:
        """Exclude a replica from healing and from all changes that can wait. Whether that changed anything. Raises
        NotFound (the replica), Conflict while the plane moves or the replica must be replaced.
        """
        return await cordons.cordon_replica(self._home, name, replica, self._requester)

    async def uncordon(self, name: str, replica: str) -> bool:
        """Remove the cordon of a replica; whether there was one. Raises NotFound (the replica)."""
        return await cordons.uncordon_replica(self._home, name, replica)

    async def plan_drain(self, site: str, machine: str | None = None) -> Drain:
        """The plan to move all replicas of all planes off a machine, or off all of a site; changes nothing. Obstacles
        are in the result: see ``Drain.require``. Raises NotFound (the site, the machine), InvalidInput for the machine
        of load balancers.
        """
        return await drains.planned(self._engine(), site, machine)

    async def drain(self, drain: Drain) -> tuple[Operation, ...]:
        """Cordon the machines, and request of each plane that its replicas there are replaced: ``follow`` each.

        Raises what ``Drain.require`` does, Conflict for a plane that was changed since; a repeated drain continues the
        first.
        """
        return await drains.asked(self._home, drain, self._requester)

    async def left_to_drain(self, site: str, machine: str | None = None) -> tuple[str, ...]:
        """The replicas that are on a machine, or at a site, as PLANE/REPLICA."""
        return await drains.left(self._home, site, machine)

    # reconciling

    async def carry_out(self, name: str, watchers: Sequence[Watcher] = (), *, wait: float = 12.0) -> None:
        """Reconcile a plane from this process until it is up to date. If cancelled, it releases the lease.

        ``watchers`` receive what happens. ``wait``: seconds to wait for another driver to end, or to die; a manager
        does not end (see ``follow`` and ``alone``). Raises Conflict that names it, Paused, and errors that no retry can
        fix; all other errors are reported and retried.
        """
        await drive.carried_out(self._engine(watchers), name, wait=wait)

    def alone(self, name: str) -> AbstractAsyncContextManager[None]:
        """Make a manager leave a plane to this process for the block. It is for callers with ``watchers`` that must see
        each step before it is taken:
        ``async with quarterdeck.alone(name): await quarterdeck.carry_out(name, watchers)``.

        Raises Conflict when another driver than a manager has it, or waits for it.
        """
        return drive.alone(self._engine(), name)

    async def follow(
        self,
        name: str,
        *,
        timeout: float | None = None,
        report: Callable[[Hand], None] = ignore_driver,
        watchers: Sequence[Watcher] = (),
        onlooker: Onlooker | None = None,
    ) -> None:
        """Wait until a plane is up to date, or deleted: follow another process that drives it, ``carry_out`` when there
        is none. ``report`` receives at once which process drives it, ``watchers`` the steps of this process, and
        ``onlooker`` those of the other one. Raises the error of the operation in progress, Paused, Unavailable after
        ``timeout`` seconds.
        """
        await drive.followed(
            self._home,
            name,
            timeout=timeout,
            report=report,
            drive=lambda: self.carry_out(name, watchers),
            onlooker=onlooker,
        )

    async def serve(
        self,
        network: Isolation = Isolation.LOOPBACK,
        *,
        log: Log,
        alive: Callable[[], None] = lambda: None,
        outposts: Mapping[Isolation, Callable[[], Awaitable[tuple[str, ...]]]] | None = None,
        metrics: str = "",
        parent: Parent | None = None,
    ) -> None:
        """Reconcile and heal all planes on a network until cancelled. Of two such processes the second is a standby.
        Planes keep running when it ends.

        ``alive`` is called every few seconds as long as it is healthy. ``outposts``: the commands that start a manager
        of the planes on another network, as long as there are any. Such a process ends when its standard input does.
        ``metrics``: the address and port that serve the Prometheus metrics of all planes; raises InvalidInput for an
        invalid one, PreconditionFailed when nothing can listen there; or ``-``: the process that started this one
        (``parent``) requests them. This returns when ``parent`` has ended.
        """
        engine = self._engine()
        made = tuple(
            service.Outpost(engine=engine, network=where, argv=argv, log=log)
            for where, argv in (outposts or {}).items()
        )
        await service.served(engine, network, outposts=made, log=log, alive=alive, metrics=metrics, parent=parent)

    def probing(
        self,
        name: str,
        *,
        rate: float = 20.0,
        host: str | None = None,
        on_failure: Callable[[Failure], None] | None = None,
        on_summary: Callable[[Summary], None] | None = None,
    ) -> AbstractAsyncContextManager[ProbeSession]:
        """Real clients that use a plane from outside as long as the block lasts, at ``rate`` requests a second each;
        ``await session.stop()`` gives their result. ``Onlookers`` run them while the plane is changed.

        ``host``: the host of an ssh site (HOST, or SITE/HOST) that makes their connections, instead of this one. Raises
        NotFound, InvalidInput where it cannot reach such a plane, Unavailable when it cannot be reached,
        PreconditionFailed when its sshd refuses the login or does not forward connections. Losing the host is an error
        (Unavailable) and not a failure of the plane.
        """
        from quarterdeck.app import onlookers

        return onlookers.probing(self._home, name, rate=rate, host=host, on_failure=on_failure, on_summary=on_summary)

    async def plan_drill(self, name: str, wish: Wish, *, hold: float | None = None) -> DrillPlan:
        """The targets of a drill of at most ``hold`` seconds (None: as long as the detection of such a failure takes),
        and the reasons against it; changes nothing. Raises NotFound and InvalidInput for invalid targets,
        PreconditionFailed where no such failure is possible.
        """
        from quarterdeck.app.drill import drills

        return await drills.planned(self._home, name, wish, hold=hold)

    async def drill(
        self,
        name: str,
        wish: Wish,
        *,
        hold: float | None = None,
        dangerous: bool = False,
        tell: Callable[[str], None] = lambda _: None,
    ) -> Drill:
        """Inject a real fault while clients run, undo it, wait until the plane has recovered, and return the result.
        However this ends, also by this process's death, the fault is undone. ``tell`` receives progress messages.

        Raises what ``plan_drill`` does, PreconditionFailed with all reasons against it, Conflict when a drill is in
        progress. ``dangerous``: also what the plane would not survive.
        """
        from quarterdeck.app.drill import drills

        return await drills.drilled(
            self._home,
            name,
            wish,
            requester=self._requester,
            upstream=lambda: self._engine().upstream,
            hold=hold,
            dangerous=dangerous,
            tell=tell,
        )

    # reports

    async def report(self, name: str, operation: str | None = None) -> Report:
        """The steps of an operation (without a name: of the plane's last one), and what clients measured: the kept
        report, or else one as of now. Raises NotFound when no such operation has begun.
        """
        from quarterdeck.app import reports

        return await reports.reported(self._home, name, operation)

    async def keep_report(self, operation: str, *, probe: ProbeResult | None = None) -> Kept:
        """Write the files of an operation's report. Raises NotFound when it has not begun, or its plane is deleted."""
        from quarterdeck.app import reports

        return await reports.kept(self._home, operation, probe)

    # infrastructure

    async def fetch_programs(self, name: str) -> None:
        """Download the programs that a plane runs, so that they are there when it is driven."""
        await self._engine().programs(await recorded.existing(self._home.store, name))

    async def tidy(self) -> None:
        """Take down what all planes share, if there are no planes. Call it from outside of their networks, which end
        with it.
        """
        if not await self._home.store.list(ControlPlane):
            await self._home.close_hubs()
            await networks.close(self._home.folder)

    def _engine(self, watchers: Sequence[Watcher] = ()) -> Engine:
        if self._upstream is None:
            self._upstream = Upstream.from_environment(os.environ, progress=self._progress)
        return Engine(
            home=self._home,
            upstream=self._upstream,
            requester=self._requester,
            watchers=watchers,
            trials=self._trials,
        )


def _this_program() -> Requester:
    return requester("a program that uses quarterdeck.app")
