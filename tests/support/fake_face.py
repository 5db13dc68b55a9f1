"""The application face as tests of the command line have it: what needs a plane that runs is answered by the test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest
from report_lab import probe_result

from quarterdeck.api.operation import OperationPhase
from quarterdeck.app import DryRun, Finding, Looks, Quarterdeck, SetHeld, Verdict, Watcher, changes
from quarterdeck.engine.notices.watchers import Watchers
from quarterdeck.engine.preflight import local_changes, moves, renewal
from quarterdeck.engine.workspace import operations, recorded
from quarterdeck.engine.workspace.home import Home
from quarterdeck.engine.workspace.operations import Requester
from quarterdeck.errors import QuarterdeckError
from quarterdeck.model.steps.traffic import StopBalancer
from quarterdeck.probe.result import ProbeResult
from quarterdeck.probe.target import ClientKind

ASKER = Requester(name="a test")
WELL = (Finding("health", Verdict.OK, "3 members healthy"), Finding("distance", Verdict.WARN, "90 ms"))


@dataclass
class FakeProbe:
    """A probe that remembers what it was told, with its clients at ``host``. ``lost``: what it ends with."""

    calls: list[str] = field(default_factory=list)
    host: str | None = None
    lost: QuarterdeckError | None = None

    async def mark(self, label: str) -> float:
        self.calls.append(label)
        return 0.0

    async def retire(self, kind: ClientKind) -> None:
        self._hear(f"retire {kind}")

    async def look(self, seconds: float | None) -> None:
        self._hear(f"look for {seconds} s")

    async def stop(self) -> ProbeResult:
        self._hear("stop")
        seen = probe_result()
        quiet, during = seen.periods
        change = during.model_copy(update={"label": self.calls[0]})
        periods = {"periods": (quiet, change), "compared": (quiet.label, change.label)}
        return seen.model_copy(update={"source": self.host, **periods})

    def _hear(self, words: str) -> None:
        self.calls.append(words)
        if self.lost is not None:
            raise self.lost


@dataclass
class FakeFace:
    """What the face says: ``findings`` and ``forecast`` are what planning any change comes to, ``sets`` the sets of
    controllers of every plane. All that is asked of planes is stored, and done as far as the books say.
    """

    findings: tuple[Finding, ...] = WELL
    forecast: DryRun = field(default_factory=lambda: DryRun(steps=()))
    sets: tuple[SetHeld, ...] = ()
    probe: FakeProbe = field(default_factory=FakeProbe)

    def install(self, patch: pytest.MonkeyPatch) -> None:
        """Have commands get these answers."""
        for module in (changes, local_changes, moves):
            patch.setattr(module, "preview", self._preview)
        for module in (changes, moves, renewal):
            patch.setattr(module, "forecast", self._forecast)
        for module in (changes, local_changes):
            patch.setattr(module, "admit", self._admit)
        patch.setattr("quarterdeck.app.drive.facts.look", self._look)
        patch.setattr("quarterdeck.app.onlookers._AFTERWARDS", 0.0)
        patch.setattr(Quarterdeck, "carry_out", _carry_out)
        patch.setattr(Quarterdeck, "probing", self._probing)
        patch.setattr(Looks, "controllers", self._controllers)

    async def _preview(self, *_: object, **__: object) -> tuple[tuple[Finding, ...], DryRun | None]:
        refused = any(each.verdict is Verdict.REFUSE for each in self.findings)
        return self.findings, None if refused else self.forecast

    async def _forecast(self, *_: object) -> DryRun:
        return self.forecast

    async def _admit(self, *_: object, **__: object) -> None: ...

    async def _look(self, *_: object, **__: object) -> SimpleNamespace:
        return SimpleNamespace(world=SimpleNamespace(unled=(), controls=True))

    async def _controllers(self, _: str) -> tuple[SetHeld, ...]:
        return self.sets

    @asynccontextmanager
    async def _probing(self, *_: object, host: str | None = None, **__: object) -> AsyncIterator[FakeProbe]:
        self.probe.host = host
        yield self.probe


async def _carry_out(face: Quarterdeck, name: str, watchers: Sequence[Watcher] = (), **_: object) -> None:
    await books(face._home, name, watchers)


async def books(home: Home, name: str = "demo", watchers: Sequence[Watcher] = ()) -> None:
    """What is under way is done, as far as the books say."""
    running = await recorded.current(home.store, name)
    assert running is not None
    await Watchers(watchers).tell(lambda each: each.begins(StopBalancer(site="east", why="")))
    begun = await operations.begin(home.store, running, ASKER)
    await operations.finish(home.store, begun, OperationPhase.SUCCEEDED, "up to date", ASKER)
