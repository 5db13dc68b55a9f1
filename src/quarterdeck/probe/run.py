"""The probe itself: its clients, from their first request to the audit."""

from __future__ import annotations

import asyncio
import gc
import random
from collections import Counter
from collections.abc import Callable, Sequence

from quarterdeck.errors import PreconditionFailed, TimedOut, Unavailable
from quarterdeck.probe.client import Client, RequestOutcome
from quarterdeck.probe.crew import Crew, Runner
from quarterdeck.probe.ledger import Ledger, ObjectSlot
from quarterdeck.probe.network import Direct, Network
from quarterdeck.probe.objects import Requests, parse_list
from quarterdeck.probe.result import FailedRequest, ProbeResult, Summary
from quarterdeck.probe.tally import Tally
from quarterdeck.probe.target import ClientKind, ProbeConfig, SourceLost
from quarterdeck.probe.watchers import ObjectWatcher, add_up
from quarterdeck.probe.wire import Request

_PREPARING = 30.0  # seconds to create the probe's objects
_AT_ONCE = 8  # number of them that are created in parallel: one by one, they take as long as all else before the start
_AUDITING = 30.0  # seconds to get the final list
_CLEANING = 5.0  # seconds to delete what was written
_RETRY = 0.25  # seconds between retries of requests that are not measured
_LAG_TICK = 0.02  # seconds
_HOPELESS = (400, 401, 403, 422)  # a retry changes nothing


class ProbeRun:
    """Prepare, start, mark any number of times, finish. ``now`` is in Unix seconds and never goes back. ``network``:
    that of its clients; all calls that wait for them raise its errors.
    """

    def __init__(
        self,
        config: ProbeConfig,
        *,
        network: Network,
        now: Callable[[], float],
        random_source: random.Random,
        on_failure: Callable[[FailedRequest], None],
    ) -> None:
        self.crashed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._config = config
        self._network = network
        self._now = now
        self._crew = Crew(config, network=network, now=now, random_source=random_source, on_failure=on_failure)
        self._requests = Requests(config.settings.namespace, config.settings.id)
        self._clerk = self._crew.clerk()
        self._ledger = Ledger()
        self._tally = Tally(now())
        self._runners: tuple[Runner, ...] = ()
        self._lag: asyncio.Task[None] | None = None
        self._last_summary = (now(), 0)

    async def prepare(self) -> None:
        """Create the namespace and the writers' objects. Raises Unavailable when that fails."""
        await self._insist(self._requests.create_namespace(), _PREPARING, accept=409)
        settings = self._config.settings
        writers = range(settings.count(ClientKind.WRITER))
        slots = [ObjectSlot(writer, index) for writer in writers for index in range(settings.slots)]
        try:
            async with asyncio.TaskGroup() as group:
                for first in range(min(_AT_ONCE, len(slots))):
                    group.create_task(self._create(slots[first::_AT_ONCE]))
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from errors  # it cancelled the others, or they failed as it did

    async def _create(self, slots: Sequence[ObjectSlot]) -> None:
        """Create objects, one after the other, on a separate connection."""
        clerk = self._crew.clerk()
        try:
            for slot in slots:
                await self._insist(self._requests.create(slot), _PREPARING, accept=409, clerk=clerk)
        finally:
            await clerk.drop()

    async def start(self) -> None:
        """Start all clients: first the watchers, and when they watch, the others, at different moments.

        A crash of one comes out of ``crashed``. Raises TimedOut when the watches cannot be opened.
        """
        self._tally = Tally(self._now())
        self._last_summary = (self._now(), 0)
        self._runners = self._crew.hire(self._tally, self._ledger, self._requests)
        gc.collect()
        gc.freeze()  # existing objects stay: the garbage collector need never stop the clients to look at them
        for runner in self._runners:
            if isinstance(runner.work, ObjectWatcher):
                runner.start(self._ended)
        await self._until_watching()
        for runner in self._runners:
            if runner.task is None:
                runner.start(self._ended)
        self._lag = asyncio.create_task(self._measure_lag(), name="probe-lag")

    async def _until_watching(self) -> None:
        watching = [asyncio.create_task(each.watching.wait()) for each in self._watchers()]
        both = asyncio.gather(*watching)
        try:
            await asyncio.wait((both, self.crashed), timeout=_PREPARING, return_when=asyncio.FIRST_COMPLETED)
            done = both.done()
        finally:
            both.cancel()
        if not done:
            if self.crashed.done():
                self.crashed.result()  # raises its error
            seen = self._tally.failures[-1].reason if self._tally.failures else "no answer"
            raise TimedOut(f"opening a watch at {self._config.target.host}", seen)

    def mark(self, label: str) -> float:
        """Begin a new period; returns when."""
        now = self._now()
        self._tally.mark(label, now)
        return now

    async def retire(self, kind: ClientKind) -> None:
        """End the clients of one kind, each after its current request."""
        await _end([runner for runner in self._runners if runner.kind is kind])

    def summary(self) -> Summary:
        """The current progress."""
        now = self._now()
        requests, failures, resent = self._tally.totals()
        since, before = self._last_summary
        self._last_summary = (now, requests)
        watches = add_up(self._watchers())
        return Summary(
            at=now,
            period=self._tally.label,
            requests=requests,
            failures=failures,
            resent=resent,
            acknowledged=self._ledger.acknowledged,
            lost=self._ledger.lost,
            events=watches.events,
            missed=watches.missed,
            stall_ms=self._tally.overall().stall_ms,
            per_second=round((requests - before) / max(now - since, 1e-3), 1),
        )

    async def finish(self) -> ProbeResult:
        """End all clients, let the watchers catch up, audit the writes, clean up."""
        await _end([runner for runner in self._runners if runner.kind is not ClientKind.WATCHER])
        await self._until_caught_up()
        ended = self._now()
        await self._stop_tasks()
        if self.crashed.done():
            self.crashed.result()  # raises its error
        for watcher in self._watchers():
            watcher.check.settle()
        periods = self._tally.finish(ended)
        await self._audit()
        left_behind = await self._clean_up()
        return ProbeResult(
            id=self._config.settings.id,
            host=self._config.target.host,
            rate=self._config.settings.rate,
            periods=periods,
            compared=(periods[0].label, periods[min(1, len(periods) - 1)].label),
            writes=self._ledger.writes(),
            watches=add_up(self._watchers()),
            failures=tuple(self._tally.failures),
            connections={str(kind): count for kind, count in self._connections().items()},
            samples=self._tally.samples.samples(),
            left_behind=left_behind,
            source=self._config.source.name if self._config.source is not None else None,
        )

    async def abandon(self) -> None:
        """End at once and delete what was written, for a caller that does not need the result."""
        await self._stop_tasks()
        try:
            await self._clean_up()
        except (SourceLost, PreconditionFailed):  # that host is unusable: this one may reach the plane
            self._clerk = self._crew.clerk(Direct())
            await self._clean_up()

    async def _stop_tasks(self) -> None:
        if self._lag is not None:
            self._lag.cancel()
            await asyncio.wait([self._lag])
        await _cancel(self._runners)

    async def _until_caught_up(self) -> None:
        waiting = [asyncio.create_task(each.until_caught_up()) for each in self._watchers()]
        if waiting:
            began = asyncio.get_running_loop().time()
            _, late = await asyncio.wait(waiting, timeout=self._config.settings.timeout)
            for task in late:  # what they did not receive counts as missed
                task.cancel()
            if late:
                await self._network.confirm(began)

    async def _audit(self) -> None:
        try:
            outcome = await self._insist(self._requests.list(), _AUDITING)
            self._ledger.audit(parse_list(outcome.body)[0])
        except Unavailable:
            return  # the result says that it was not audited

    async def _clean_up(self) -> str:
        """Returns the namespace when it could not be deleted."""
        try:
            await self._insist(self._requests.delete_all(), _CLEANING, accept=404)
            await self._insist(self._requests.delete_namespace(), _CLEANING, accept=404)
        except Unavailable:
            return self._config.settings.namespace
        finally:
            await self._clerk.drop()
        return ""

    async def _insist(
        self, request: Request, patience: float, accept: int = 0, clerk: Client | None = None
    ) -> RequestOutcome:
        """Retry until it succeeds: for requests that are not measured."""
        deadline = self._now() + patience
        while True:
            outcome = await (clerk or self._clerk).call(request)
            if outcome.ok or outcome.status == accept:
                return outcome
            if outcome.status in _HOPELESS or self._now() >= deadline:
                raise Unavailable(
                    f"{request.method} {request.path.partition('?')[0]} at {self._config.target.host}",
                    f"{outcome.reason} {outcome.body[:200].decode(errors='replace')}".strip(),
                    "does `kubectl get --raw /readyz` with the same kubeconfig work?",
                )
            await asyncio.sleep(_RETRY)

    async def _measure_lag(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + _LAG_TICK
            await asyncio.sleep(_LAG_TICK)
            self._tally.lag(1e3 * max(loop.time() - due, self._network.lag()))

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and task.exception() is not None and not self.crashed.done():
            self.crashed.set_exception(task.exception() or RuntimeError(task.get_name()))

    def _watchers(self) -> list[ObjectWatcher]:
        return [runner.work for runner in self._runners if isinstance(runner.work, ObjectWatcher)]

    def _connections(self) -> Counter[ClientKind]:
        opened: Counter[ClientKind] = Counter()
        for runner in self._runners:
            opened[runner.kind] += runner.dialer.opened
        return opened


async def _end(runners: list[Runner]) -> None:
    for runner in runners:
        runner.pace.stop()
    tasks = [runner.task for runner in runners if runner.task is not None]
    if tasks:
        await asyncio.wait(tasks)
    for runner in runners:
        await runner.client.drop()


async def _cancel(runners: tuple[Runner, ...]) -> None:
    tasks = [runner.task for runner in runners if runner.task is not None]
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)
    for runner in runners:
        await runner.client.drop()
