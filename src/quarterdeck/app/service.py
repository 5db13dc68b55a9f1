"""Managing all planes of a home: those on the host's own network here, those on others by one process in each
network.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from quarterdeck import clocks
from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.site import Isolation
from quarterdeck.app.drill.task import drill_tasks, drills_by
from quarterdeck.app.pipes import Parent, PipedMetrics, attended
from quarterdeck.app.upgrade_task import upgrade_task
from quarterdeck.engine.background.tasks import ShortTurn
from quarterdeck.engine.notices.troubles import MET, in_words
from quarterdeck.engine.reconcile.drive import Engine
from quarterdeck.engine.reconcile.keeper import Log
from quarterdeck.engine.reconcile.manager import PlaneManager
from quarterdeck.engine.workspace.recorded import network_of
from quarterdeck.linux.turns import use_short_time_slices
from quarterdeck.runner import start
from quarterdeck.tls_buffers import keep_small_tls_buffers

if TYPE_CHECKING:
    from quarterdeck.metrics.metrics import Metrics

#: Seconds before an ended process is started again, doubled each time, and the longest; how long a process must have
#: run so that its end is no sign of a problem, and how long it gets to shut down.
_SHORTEST = 1.0
_LONGEST = 60.0
_WELL = 60.0
_GRACE = 15.0
#: The value of ``metrics`` for metrics that the parent process requests.
ASKED = "-"
#: Seconds within which a healthy manager reports.
_BEAT = 30.0


@dataclass(kw_only=True)
class Outpost:
    """The process that manages the planes on another network, from inside that network: started when there are any,
    restarted when it ends, and stopped with this one. It ends by itself when its standard input does, however this one
    died.
    """

    engine: Engine
    network: Isolation
    argv: Callable[[], Awaitable[tuple[str, ...]]]
    log: Log
    _needed: asyncio.Event = field(default_factory=asyncio.Event)
    _asked: PipedMetrics | None = None

    def need(self) -> None:
        """There is a plane for it."""
        self._needed.set()

    @property
    def runs(self) -> bool:
        """Whether it was started, and has not ended."""
        return self._asked is not None

    async def metrics(self) -> bytes | None:
        """The metrics of its planes; None if it does not answer."""
        return await self._asked.metrics() if self._asked is not None else None

    async def run(self) -> None:
        """Until cancelled."""
        loop, pause = asyncio.get_running_loop(), _SHORTEST
        while True:
            await self._needed.wait()
            self._needed.clear()
            began = loop.time()
            try:
                if not await self._planes():
                    continue
                code = await self._once()
                self.log.warning("the process on another network ended", network=str(self.network), code=code)
            except MET as error:
                self.log.warning(str(in_words(error)), network=str(self.network))
            pause = _SHORTEST if loop.time() - began > _WELL else min(2 * pause, _LONGEST)
            self._needed.set()
            await asyncio.sleep(pause)

    async def _planes(self) -> tuple[ControlPlane, ...]:
        """The planes on its network; their programs are present then, since they cannot be downloaded from inside."""
        home = self.engine.home
        planes = await home.store.list(ControlPlane)
        found = [each for each in planes if await network_of(home.store, each) is self.network]
        for each in found:
            try:
                await self.engine.programs(each)
            except MET as error:  # the present programs may be enough; the manager reports missing ones
                self.log.warning(str(in_words(error)), plane=each.name)
        return tuple(found)

    async def _once(self) -> int:
        argv = await self.argv()
        pipe = asyncio.subprocess.PIPE
        process = await start()(*argv, stdin=pipe, stdout=pipe, stderr=None)
        self._asked = PipedMetrics(process)
        try:
            return await process.wait()
        finally:
            asked, self._asked = self._asked, None
            await asked.end()
            if process.returncode is None:
                assert process.stdin is not None
                process.stdin.close()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_GRACE):
                        await process.wait()
            if process.returncode is None:
                process.kill()
                await process.wait()


async def served(
    engine: Engine,
    network: Isolation,
    *,
    outposts: tuple[Outpost, ...],
    log: Log,
    alive: Callable[[], None],
    metrics: str,
    parent: Parent | None,
) -> None:
    """Manage the planes on ``network``, and start ``outposts`` for the others. Until cancelled, or until ``parent``,
    the process that started this one, has ended. ``metrics``: the address and port that serve them ("": none;
    ``ASKED``: to ``parent``).
    """
    keep_small_tls_buffers()
    use_short_time_slices()  # clients wait while traffic is paused, and a swap needs both sites

    def elsewhere(where: Isolation) -> None:
        for each in outposts:
            if each.network is where:
                each.need()

    drill = drills_by(engine)
    manager = PlaneManager(
        engine=engine,
        network=network,
        log=log,
        alive=alive,
        elsewhere=elsewhere,
        background_tasks=lambda _: (*drill_tasks(drill), upgrade_task(engine)),
    )
    async with contextlib.AsyncExitStack() as stack:
        text: Callable[[], Awaitable[bytes]] = _nothing
        if metrics == ASKED:
            manager, text = counted(manager)
        elif metrics:
            manager = await measured(manager, metrics, stack, outposts)
        await _kept(manager, outposts, None if parent is None else attended(parent, text))


async def _nothing() -> bytes:
    return b""


def _counted(manager: PlaneManager, metrics: Metrics) -> PlaneManager:
    """The manager, with metrics of its planes counted."""
    from quarterdeck.metrics.measures import Measures  # few users enable them

    return replace(
        manager,
        watchers=lambda name: (metrics.of(name),),
        background_tasks=lambda name: (
            *manager.background_tasks(name),
            ShortTurn(name="measures", turn=Measures(metrics=metrics).turn),
        ),
    )


def counted(manager: PlaneManager) -> tuple[PlaneManager, Callable[[], Awaitable[bytes]]]:
    """The manager, with metrics of its planes counted, and the function that renders their text."""
    from quarterdeck.metrics.metrics import Metrics
    from quarterdeck.metrics.operation_counter import OperationCounter

    metrics = Metrics()
    operations = OperationCounter(store=manager.engine.home.store, metrics=metrics)

    async def text() -> bytes:
        await operations.count()
        return metrics.text()

    return _counted(manager, metrics), text


async def measured(
    manager: PlaneManager, address: str, stack: contextlib.AsyncExitStack, outposts: tuple[Outpost, ...] = ()
) -> PlaneManager:
    """The manager, with metrics of its planes, and of those of ``outposts``, served until ``stack`` ends. Raises
    InvalidInput, PreconditionFailed.
    """
    from quarterdeck.metrics.metrics import Metrics
    from quarterdeck.metrics.server import ListenAddress, serve_metrics

    metrics, beat = Metrics(), -math.inf

    async def others() -> tuple[bytes, ...]:
        asked = [each for each in outposts if each.runs]
        texts = await asyncio.gather(*(each.metrics() for each in asked))
        metrics.answered({str(each.network): text is not None for each, text in zip(asked, texts, strict=True)})
        return tuple(text for text in texts if text is not None)

    def alive() -> None:
        nonlocal beat
        beat = clocks.steady()
        manager.alive()

    def ready() -> str:
        return "" if clocks.steady() - beat < _BEAT else "it manages no planes: another manager does, or it hangs"

    store = manager.engine.home.store
    at = await stack.enter_async_context(
        serve_metrics(metrics, ListenAddress.parse(address), store=store, ready=ready, others=others)
    )
    manager.log.info("serving metrics", address=f"http://{at}/metrics")
    return replace(_counted(manager, metrics), alive=alive)


async def _kept(
    manager: PlaneManager, outposts: tuple[Outpost, ...], parent: Coroutine[None, None, None] | None
) -> None:
    """Until cancelled, or until ``parent`` returns."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(manager.run(), name=f"manager of {manager.network}")]
        tasks += [group.create_task(each.run(), name=f"outpost on {each.network}") for each in outposts]
        if parent is not None:
            await parent
            for task in tasks:
                task.cancel()
