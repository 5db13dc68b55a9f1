"""The clients of a probe, each with its connection, pace and work."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from quarterdeck.probe.client import Client
from quarterdeck.probe.dial import Dialer, HttpVersion, tls_context
from quarterdeck.probe.ledger import Ledger
from quarterdeck.probe.network import Network
from quarterdeck.probe.objects import Requests
from quarterdeck.probe.order import EventCheck
from quarterdeck.probe.pace import Pace
from quarterdeck.probe.readers import Reader
from quarterdeck.probe.reporter import Reporter
from quarterdeck.probe.resolve import PinnedResolver, resolver_for
from quarterdeck.probe.result import FailedRequest
from quarterdeck.probe.tally import Tally
from quarterdeck.probe.target import ClientKind, ProbeConfig
from quarterdeck.probe.watchers import ObjectWatcher
from quarterdeck.probe.writers import Writer

_WRITES_MISSING = 20  # a watch that misses that many writes in a row counts as cut


@dataclass(slots=True, kw_only=True)
class Runner:
    """One client at work."""

    kind: ClientKind
    dialer: Dialer
    client: Client
    pace: Pace
    work: Writer | Reader | ObjectWatcher
    task: asyncio.Task[None] | None = None

    def start(self, on_end: Callable[[asyncio.Task[None]], None]) -> None:
        """Let it run."""
        self.task = asyncio.create_task(self.work.run(self.pace), name=f"probe-{self.kind}")
        self.task.add_done_callback(on_end)


class Crew:
    """Creates the clients of the settings. Raises InvalidInput when the certificates are invalid."""

    def __init__(
        self,
        config: ProbeConfig,
        *,
        network: Network,
        now: Callable[[], float],
        random_source: random.Random,
        on_failure: Callable[[FailedRequest], None],
    ) -> None:
        self._target = config.target
        self._settings = config.settings
        self._network = network
        self._now = now
        self._random = random_source
        self._on_failure = on_failure
        self._contexts = {http: tls_context(config.target, http) for http in HttpVersion}

    def clerk(self, network: Network | None = None) -> Client:
        """A client whose requests are not counted: it prepares, audits and cleans up. It uses the others' network
        unless ``network`` is given.
        """
        return Client(self._dialer(HttpVersion.ONE, network or self._network), timeout=self._settings.timeout)

    def hire(self, tally: Tally, ledger: Ledger, requests: Requests) -> tuple[Runner, ...]:
        """All clients, ready to start."""
        return tuple(self._runners(tally, ledger, requests))

    def _runners(self, tally: Tally, ledger: Ledger, requests: Requests) -> Iterator[Runner]:
        checks = [EventCheck() for _ in range(self._settings.count(ClientKind.WATCHER))]
        for kind, count in self._settings.clients:
            for index in range(count):
                dialer = self._dialer(_protocol(kind, index), self._network, pinned=kind is ClientKind.PINNED)
                client = Client(dialer, timeout=self._settings.timeout, keep=kind is not ClientKind.NEW_CONNECTION)
                reporter = Reporter(
                    name=f"{kind}-{index}",
                    kind=kind,
                    client=client,
                    tally=tally,
                    now=self._now,
                    on_failure=self._on_failure,
                )
                work: Writer | Reader | ObjectWatcher
                if kind is ClientKind.WRITER:
                    work = Writer(
                        index, self._settings.slots, reporter=reporter, requests=requests, ledger=ledger, checks=checks
                    )
                elif kind is ClientKind.WATCHER:
                    silence = max(self._settings.timeout, _WRITES_MISSING / self._settings.rate)
                    work = ObjectWatcher(reporter=reporter, requests=requests, check=checks[index], silence=silence)
                else:
                    work = Reader(reporter=reporter, requests=requests, ledger=ledger)
                yield Runner(kind=kind, dialer=dialer, client=client, pace=self._pace(), work=work)

    def _dialer(self, http: HttpVersion, network: Network, *, pinned: bool = False) -> Dialer:
        resolver = resolver_for(self._target, self._now, network)
        return Dialer(
            target=self._target,
            resolver=PinnedResolver(resolver) if pinned else resolver,
            network=network,
            context=self._contexts[http],
            http=http,
        )

    def _pace(self) -> Pace:
        return Pace(self._settings.rate, self._random.random() / self._settings.rate, self._now)


def _protocol(kind: ClientKind, index: int) -> HttpVersion:
    """Every other watcher speaks HTTP/2, as informers do."""
    return (
        HttpVersion.TWO
        if kind is ClientKind.HTTP2 or (kind is ClientKind.WATCHER and index % 2 == 1)
        else HttpVersion.ONE
    )
