"""A client whose requests are all counted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from quarterdeck.errors import Unavailable
from quarterdeck.probe.client import Client, RequestOutcome
from quarterdeck.probe.result import FailedRequest
from quarterdeck.probe.tally import Tally
from quarterdeck.probe.target import ClientKind
from quarterdeck.probe.wire import Request

T = TypeVar("T")


class Reporter:
    """Sends requests through one client, and reports the outcome of each."""

    def __init__(
        self,
        *,
        name: str,
        kind: ClientKind,
        client: Client,
        tally: Tally,
        now: Callable[[], float],
        on_failure: Callable[[FailedRequest], None],
    ) -> None:
        self.name = name
        self.kind = kind
        self.client = client
        self.now = now
        self._tally = tally
        self._on_failure = on_failure

    async def call(self, request: Request, parse: Callable[[bytes], T]) -> tuple[RequestOutcome, T | None]:
        """One whole request, and its parsed body. A success that cannot be parsed is a failure."""
        started = self.now()
        outcome = await self.client.call(request)
        found: T | None = None
        if outcome.ok:
            try:
                found = parse(outcome.body)
            except Unavailable as error:
                outcome = replace(outcome, status=0, reason=str(error))
        self._report(request, outcome, started)
        return outcome, found

    async def open(self, request: Request) -> RequestOutcome:
        """A request with a streamed body. 410 Gone is the protocol's request for a list: no failure."""
        started = self.now()
        outcome = await self.client.open(request)
        if outcome.status != 410:
            self._report(request, outcome, started)
        return outcome

    def news(self, started: float) -> None:
        """An event arrived that was waited for since ``started``."""
        self._tally.news(self.name, self.kind, started, self.now(), address=self.client.address)

    def _report(self, request: Request, outcome: RequestOutcome, started: float) -> None:
        ended = self.now()
        if outcome.ok:
            self._tally.success(self.name, self.kind, started, ended, address=outcome.address, resent=outcome.resent)
            return
        failure = self._tally.failure(
            self.name,
            self.kind,
            started,
            ended,
            request=f"{request.method} {request.path.partition('?')[0]}",
            reason=outcome.reason,
            address=outcome.address,
            resent=outcome.resent,
        )
        self._on_failure(failure)
