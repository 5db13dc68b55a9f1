"""The application face: what a command does is one typed call here, for the command line and for other programs."""

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
from quarterdeck.app import certificates, changes, cordons, drains, drive, logs, service
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
from quarterdeck.engine.reconcile.drive import Engine
from quarterdeck.engine.reconcile.keeper import Log
from quarterdeck.engine.reconcile.trials import NoTrials, Trials
from quarterdeck.engine.workspace import operations
from quarterdeck.engine.workspace.access import admin_kubeconfig
from quarterdeck.engine.workspace.home import Home
from quarterdeck.engine.workspace.operations import Asker
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


def asker(program: str) -> Asker:
    """Who asks: this user, and this process, which runs ``program`` (words for people; no secret)."""
    return Asker(who=f"{getpass.getuser()}@{this_process(program)}")


def nobody(_: Hand) -> None:
    """Is told whose hand a plane is in, and keeps it to itself."""


class Quarterdeck(Looks):
    """One open home: ``async with Quarterdeck.open() as quarterdeck: ...``.

    Every call that names a plane raises Gone (a NotFound) when there is none of that name. Those that look at its
    machines raise PreconditionFailed when it lives on networks of its own (isolation ``netns``) and this process is in
    none of them: see ``inside_argv``. All errors are ``QuarterdeckError``. Seconds are floats, and times are aware.
    """

    def __init__(
        self,
        home: Home,
        *,
        asker: Asker,
        upstream: Upstream | None = None,
        progress: Progress | None = None,
        trials: Trials | None = None,
    ) -> None:
        """See ``open``; ``home`` stays the caller's to close. Without ``trials`` no program is tried."""
        super().__init__(home)
        self._asker = asker
        self._upstream = upstream
        self._progress = progress
        self._trials = trials or NoTrials()
        self.sites = Sites(home, asker, lambda: self._engine().name_server())
        self.nodes = WorkerNodes(home)
        self.etcd = EtcdCare(home, asker)

    @classmethod
    @asynccontextmanager
    @override
    async def open(
        cls,
        folder: Path | None = None,
        *,
        key: Key | None = None,
        upstream: Upstream | None = None,
        asker: Asker | None = None,
        progress: Progress | None = None,
        trial: bool = True,
    ) -> AsyncIterator[Quarterdeck]:
        """The home in ``folder``, made with its two default sites if it is new.

        What is not given is as the environment says: QUARTERDECK_HOME (``folder``), QUARTERDECK_KEY_FILE (``key``),
        QUARTERDECK_BIN_DIR, QUARTERDECK_CACHE and QUARTERDECK_MIRROR (``upstream``). ``progress`` is told what it
        fetches, and what is sent to hosts. ``asker`` is who asks for operations and holds leases, in words: this user
        and process if not given. ``trial``: before a plane is created or changed, the programs that would be started
        with a new configuration are started for a few seconds here, and what does not start is refused.

        Raises InvalidInput for an environment that makes no sense, Corrupt for a damaged store or one of a newer
        version, Unavailable when it cannot be written, PreconditionFailed when somebody else may write to it, or it is
        sealed by another key.
        """
        async with opened(folder, key, progress) as home:
            trials = LocalTrials.from_environment(os.environ, progress=progress) if trial else None
            yield cls(home, asker=asker or _this_program(), upstream=upstream, progress=progress, trials=trials)

    # looking: see ``Looks``

    async def forecast(self, name: str, *, to: str | None = None, replicas: int | None = None) -> DryRun:
        """Every step that is left to do, or that a move to site ``to`` or to so many replicas would take, with the
        quorum's margin after it; no check is made. Raises NotFound for a site, InvalidInput for the number.
        """
        return await foreseen(self._engine(), name, to, replicas)

    def logs(
        self, name: str, *, replica: str | None = None, component: Component | None = None, lines: int = 50
    ) -> AsyncIterator[Tail]:
        """The last ``lines`` that each program of a plane wrote, one after the other. Raises NotFound (the replica)."""
        return logs.tails(self._home, name, replica=replica, component=component, lines=lines)

    async def certificates(self, name: str) -> tuple[Certificate, ...]:
        """Every certificate that a plane's programs use: the plane's own, then those of each replica."""
        return await certificates.listed(self._home, name)

    async def kubeconfig(self, name: str) -> str:
        """A kubeconfig (YAML, with an administrator's key) that stays right before, during and after a migration."""
        return await admin_kubeconfig(self._home, await operations.existing(self._home.store, name))

    # asking

    async def plan(self, request: Request) -> Examined:
        """Everything about a request that is known before it is asked for; changes nothing but the programs' cache.

        Checks that say no are findings of the result, as ``Examined.require`` tells. What makes no sense at all
        raises: InvalidInput (the request), NotFound (the site), Conflict (what is under way does not allow it, or
        there is nothing to undo), PreconditionFailed (a new plane cannot be here).
        """
        return await changes.planned(self._home, self._engine, request)

    async def prepare(self, request: Request) -> Examined:
        """``plan`` without the forecast of each step: what a request comes to, and what its checks say."""
        return await changes.examined(self._home, self._engine, request)

    async def ask(self, request: Request | Examined) -> Operation | None:
        """Put down what is wanted from now on; ``carry_out`` or another process brings it about.

        The operation under way; None when all is so already. Raises what ``plan`` does, PreconditionFailed that names
        every check that says no, Conflict when the plane was changed since it was planned. Nothing is changed then.
        """
        if not isinstance(request, Examined):
            request = await changes.examined(self._home, self._engine, request)
        return await changes.put_down(self._home, request, self._asker)

    async def pause(self, name: str, *, until: datetime | None = None) -> None:
        """Have nothing of a plane changed by drivers, until then if that is given: a manager goes on by itself
        afterwards. What runs goes on running. Raises InvalidInput for a time that is over.
        """
        await changes.set_paused(self._home, name, paused=True, until=until)

    async def resume(self, name: str) -> None:
        """End a pause. A driver brings the plane to what is wanted: ``carry_out``."""
        await changes.set_paused(self._home, name, paused=False)

    async def recover(self, lost: LostQuorum, *, even_if_others_live: bool = False) -> None:
        """Consent to go on with what is left of a plane's etcd, as ``lost_quorum`` told it: a driver begins that one
        epoch, and keeps all data of before aside.

        Raises PreconditionFailed where others may still serve somebody, unless it is to be done all the same: they are
        stopped as soon as they can be reached; Conflict where another epoch has begun meanwhile.
        """
        await recovery.consent(self._home, lost, even_if_others_live=even_if_others_live)

    async def cordon(self, name: str, replica: str) -> bool:
        """Have a replica left as it is: healing does not touch it, nor does anything that can wait. Whether that is
        news. Raises NotFound (the replica), Conflict while the plane moves or the replica is to be replaced.
        """
        return await cordons.cordon_replica(self._home, name, replica, self._asker)

    async def uncordon(self, name: str, replica: str) -> bool:
        """Take that back; whether it was so. Raises NotFound (the replica)."""
        return await cordons.uncordon_replica(self._home, name, replica)

    async def plan_drain(self, site: str, machine: str | None = None) -> Drain:
        """What it comes to to move all replicas of all planes off a machine, or off all of a site; changes nothing.
        What stands in the way is in the result: see ``Drain.require``. Raises NotFound (the site, the machine),
        InvalidInput for the machine of load balancers.
        """
        return await drains.planned(self._engine(), site, machine)

    async def drain(self, drain: Drain) -> tuple[Operation, ...]:
        """Cordon the machines, and put down of each plane that its replicas there are exchanged: ``follow`` each.

        Raises what ``Drain.require`` does, Conflict for a plane that was changed since; to drain again is to go on.
        """
        return await drains.asked(self._home, drain, self._asker)

    async def left_to_drain(self, site: str, machine: str | None = None) -> tuple[str, ...]:
        """The replicas that are on a machine, or at a site, as PLANE/REPLICA."""
        return await drains.left(self._home, site, machine)

    # doing

    async def carry_out(self, name: str, watchers: Sequence[Watcher] = (), *, wait: float = 12.0) -> None:
        """Bring a plane to what is wanted from this process. Cancelling it lets go in good order; nothing is lost.

        ``watchers`` are told what happens. ``wait``: seconds to wait for another driver to end, or to die; a manager
        does not end (see ``follow`` and ``alone``). Raises Conflict that names it, Paused, and what no retry mends; all
        else that fails is told and tried again.
        """
        await drive.carried_out(self._engine(watchers), name, wait=wait)

    def alone(self, name: str) -> AbstractAsyncContextManager[None]:
        """Have a manager that keeps a plane leave it to this process for the block, for who must be told of each step
        before it is taken: ``async with quarterdeck.alone(name): await quarterdeck.carry_out(name, watchers)``.

        Raises Conflict when another driver than a manager has it, or wants it.
        """
        return drive.alone(self._engine(), name)

    async def follow(
        self,
        name: str,
        *,
        timeout: float | None = None,
        told: Callable[[Hand], None] = nobody,
        watchers: Sequence[Watcher] = (),
        onlooker: Onlooker | None = None,
    ) -> None:
        """Be there until a plane is as wanted, or gone: look on while another process drives or keeps it, ``carry_out``
        when none does. ``told`` hears at once whose hand it is in, ``watchers`` what is done here, and ``onlooker``
        what the other one does. Raises what the operation under way failed with, Paused, Unavailable after ``timeout``
        seconds.
        """
        await drive.followed(
            self._home,
            name,
            timeout=timeout,
            told=told,
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
        """Keep all planes on a network until cancelled: what is wanted is brought about, and what breaks is mended.
        Of two processes that do so the second stands by. Planes go on running when it ends.

        ``alive`` is called every few seconds as long as it goes on. ``outposts``: what to start to have a process keep
        the planes on another network, as long as there are any. It ends when its standard input does. ``metrics``:
        the address and port at which Prometheus is told of all planes; raises InvalidInput when it is none,
        PreconditionFailed when nothing can listen there; or ``-``: who started this process (``parent``) asks for them.
        This returns when ``parent`` is gone.
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
        """Real clients that ask a plane from outside for as long as the block lasts, at ``rate`` requests a second
        each; ``await session.stop()`` gives their result. ``Onlookers`` has them look on while the plane is changed.

        ``host``: the host of an ssh site (HOST, or SITE/HOST) that makes their connections, instead of this one. Raises
        NotFound, InvalidInput where it reaches no such plane, Unavailable when it cannot be reached, PreconditionFailed
        when its sshd lets nobody in, or opens no connections. When it is lost, that is an error (Unavailable) and not
        the plane's failure.
        """
        from quarterdeck.app import onlookers

        return onlookers.probing(self._home, name, rate=rate, host=host, on_failure=on_failure, on_summary=on_summary)

    async def plan_drill(self, name: str, wish: Wish, *, hold: float | None = None) -> DrillPlan:
        """What a drill would strike, for at most ``hold`` seconds (None: as long as such a failure takes to be found),
        and what is to be said against it; changes nothing.
        Raises NotFound and InvalidInput for what is named and cannot be, PreconditionFailed where nothing fails so.
        """
        from quarterdeck.app.drill import plans as drill_plans

        return await drill_plans.planned(self._home, name, wish, hold=hold)

    async def drill(
        self,
        name: str,
        wish: Wish,
        *,
        hold: float | None = None,
        dangerous: bool = False,
        tell: Callable[[str], None] = lambda _: None,
    ) -> Drill:
        """Have something fail for real while clients look on, undo it, wait until all is as before, and say what came
        of it. However this ends, also by this process's death, the failure is undone. ``tell`` hears how it goes.

        Raises what ``plan_drill`` does, PreconditionFailed with all that was to be said against it, Conflict when a
        drill is made already. ``dangerous``: also what the plane would not survive.
        """
        from quarterdeck.app.drill import drills

        return await drills.drilled(
            self._home,
            name,
            wish,
            asker=self._asker,
            hold=hold,
            dangerous=dangerous,
            tell=tell,
        )

    # afterwards

    async def report(self, name: str, operation: str | None = None) -> Report:
        """What was done in an operation (the last one of the plane without a name), and what clients saw: as it was
        kept, else as of now. Raises NotFound when no such operation has begun.
        """
        from quarterdeck.app import reports

        return await reports.reported(self._home, name, operation)

    async def keep_report(self, operation: str, *, probe: ProbeResult | None = None) -> Kept:
        """Make the files of an operation's report. Raises NotFound when it has not begun, or its plane is gone."""
        from quarterdeck.app import reports

        return await reports.kept(self._home, operation, probe)

    # the ground that planes stand on

    async def fetch_programs(self, name: str) -> None:
        """Get the programs that a plane runs on, so that they are there when it is driven."""
        await self._engine().programs(await operations.existing(self._home.store, name))

    async def tidy(self) -> None:
        """Take down what all planes share, if there are none. From outside of their networks, which end with it."""
        if not await self._home.store.list(ControlPlane):
            await self._home.close_hubs()
            await networks.close(self._home.folder)

    def _engine(self, watchers: Sequence[Watcher] = ()) -> Engine:
        if self._upstream is None:
            self._upstream = Upstream.from_environment(os.environ, progress=self._progress)
        return Engine(
            home=self._home,
            upstream=self._upstream,
            asker=self._asker,
            watchers=watchers,
            trials=self._trials,
        )


def _this_program() -> Asker:
    return asker("a program that uses quarterdeck.app")
