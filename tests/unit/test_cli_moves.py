"""What the commands that move planes print and ask for, of a plane that a test drives by the books alone."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from report_lab import probe_result
from support.cli_lab import Cli

from quarterdeck.api.controlplane import ControlPlaneSpec
from quarterdeck.api.operation import Operation, OperationPhase, OperationType
from quarterdeck.app import Asker, DryRun, Finding, Quarterdeck, Verdict, Watcher, inplace
from quarterdeck.engine import facts, operations, preconditions
from quarterdeck.engine.home import Home
from quarterdeck.model.steps import StopBalancer
from quarterdeck.probe.result import ProbeResult
from quarterdeck.probe.target import Kind

ASKER = Asker(who="a test")
WELL = (Finding("health", Verdict.OK, "3 members healthy"), Finding("distance", Verdict.WARN, "90 ms"))


@dataclass
class FakeProbe:
    """A probe that remembers what it was told."""

    told: list[str] = field(default_factory=list)

    async def mark(self, label: str) -> float:
        self.told.append(label)
        return 0.0

    async def retire(self, kind: Kind) -> None:
        self.told.append(f"retire {kind}")

    async def stop(self) -> ProbeResult:
        self.told.append("stop")
        seen = probe_result()
        quiet, during = seen.periods
        return replace(seen, periods=(quiet, replace(during, label=self.told[0])))


@dataclass
class Lab:
    """Plane ``demo``, as wanted at east. ``findings`` and ``forecast`` are what planning a move of it comes to."""

    cli: Cli
    findings: tuple[Finding, ...] = WELL
    forecast: DryRun = field(default_factory=lambda: DryRun(steps=()))
    probe: FakeProbe = field(default_factory=FakeProbe)

    def operations(self) -> list[Operation]:
        async def read(home: Home) -> list[Operation]:
            return list(await operations.operations_of(home.store, "demo"))

        return self.cli.with_store(read)

    def spec(self) -> ControlPlaneSpec:
        async def read(home: Home) -> ControlPlaneSpec:
            return (await operations.existing(home.store, "demo")).spec

        return self.cli.with_store(read)

    def site(self) -> str:
        return self.spec().placement.site


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Lab:
    made = Lab(Cli(tmp_path, monkeypatch, capsys))

    async def examine(*_: object, **__: object) -> tuple[Finding, ...]:
        return made.findings

    async def forecast(*_: object) -> DryRun:
        return made.forecast

    async def carry_out(face: Quarterdeck, name: str, watchers: Sequence[Watcher] = (), **_: object) -> None:
        await books(face._home, watchers)

    @asynccontextmanager
    async def probing(*_: object, **__: object) -> AsyncIterator[FakeProbe]:
        yield made.probe

    async def admit(*_: object, **__: object) -> None: ...

    monkeypatch.setattr(inplace, "admit", admit)
    monkeypatch.setattr(preconditions, "examine", examine)
    monkeypatch.setattr(facts, "forecast", forecast)
    monkeypatch.setattr(Quarterdeck, "carry_out", carry_out)
    monkeypatch.setattr(Quarterdeck, "probing", probing)
    monkeypatch.setattr("quarterdeck.app.onlookers._AFTERWARDS", 0.0)
    made.cli.plane()
    made.cli.with_store(books)
    return made


async def books(home: Home, watchers: Sequence[Watcher] = ()) -> None:
    """What is under way is done, as far as the books say."""
    running = await operations.current(home.store, "demo")
    assert running is not None
    for each in watchers:
        await each.begins(StopBalancer(site="east", why=""))
    begun = await operations.begin(home.store, running, ASKER)
    await operations.finish(home.store, begun, OperationPhase.SUCCEEDED, "as wanted", ASKER)


def test_a_migration_shows_its_checks_and_its_plan_and_ends_with_a_report(lab: Lab) -> None:
    said = lab.cli("migrate", "demo", "--to", "west", "--yes")
    assert (said.code, lab.site()) == (0, "west"), said
    assert said.err.splitlines()[:2] == ["✓ health: 3 members healthy", "! distance: 90 ms"]
    assert "nothing to do" in said.out, "the plan comes before the report"
    made = lab.operations()[-1]
    assert made.spec.requested_by.endswith("(quarterdeck migrate demo)")
    assert made.status.report is not None
    assert f"report: {Path(made.status.report).with_name('report.html')}" in said.out
    assert "demo moved east → west" in lab.cli("report", "demo").out


def test_a_migration_that_a_check_refuses_shows_only_why(lab: Lab) -> None:
    lab.findings = (*WELL, Finding("alarms", Verdict.REFUSE, "NOSPACE", "disarm it"))
    lab.cli.refused("migrate", "demo", "--to", "west", "--yes", code=5, says=("alarms: NOSPACE; disarm it",))
    assert (lab.site(), len(lab.operations())) == ("east", 1)


def test_a_migration_that_would_not_end_is_refused_after_its_checks_were_shown(lab: Lab) -> None:
    lab.forecast = DryRun(steps=(), stuck_on=("a person",))
    said = lab.cli("migrate", "demo", "--to", "west", "--yes")
    assert (said.code, said.out, lab.site()) == (5, "", "east"), "its plan is not shown"
    assert said.err.splitlines() == [
        "✓ health: 3 members healthy",
        "! distance: 90 ms",
        "error: planning the move of demo to west: it would wait for a person; mend that first",
    ]


def test_clients_look_at_the_quiet_plane_then_at_the_move_and_its_report_has_them(lab: Lab) -> None:
    said = lab.cli("migrate", "demo", "--to", "west", "--yes", "--probe", "--quiet", "0")
    assert (said.code, lab.site()) == (0, "west"), said
    assert "clients run; looking at the quiet plane for 0 s" in said.err
    assert lab.probe.told == ["change", "retire pinned", "after", "stop"]
    report = lab.cli("report", "demo", "-o", "json").out
    assert '"probe": {' in report


def test_an_abort_brings_the_plane_back_and_says_so(lab: Lab) -> None:
    async def moving(home: Home) -> None:
        current = await operations.existing(home.store, "demo")
        placement = current.spec.placement.model_copy(update={"site": "west"})
        wanted = operations.moved(current, placement, None)
        await operations.change(home, wanted, OperationType.MIGRATE, ASKER)

    lab.cli.with_store(moving)
    lab.cli.refused("abort", "demo", code=4, says=("abort demo-migrate-", "and go back to east?", "--yes"))
    said = lab.cli("abort", "demo", "--yes")
    assert (said.code, lab.site()) == (0, "east"), said
    assert said.out.rstrip().endswith("plane demo is back")
    assert [each.spec.type for each in lab.operations()[1:]] == [OperationType.MIGRATE, OperationType.ABORT]


def test_scaling_shows_its_checks_and_ends_with_a_report_of_scaling(lab: Lab) -> None:
    assert lab.cli("scale", "demo", "--replicas", "5").code == 4, "there is nobody to ask"
    said = lab.cli("scale", "demo", "--replicas", "5", "--yes")
    assert (said.code, lab.spec().replicas) == (0, 5), said
    assert said.err.splitlines()[:2] == ["✓ health: 3 members healthy", "! distance: 90 ms"]
    assert [each.spec.type for each in lab.operations()] == [OperationType.CREATE, OperationType.SCALE]
    assert "demo scaled 3 → 5 in" in said.out
    assert "migrat" not in said.out.replace("demo-migrate", "")
    (_, last) = (line.split() for line in lab.cli("history", "demo").out.splitlines()[1:])
    assert last[1:4] == ["Scale", "east/3", "east/5"]


def test_scaling_that_a_check_refuses_changes_nothing_and_says_what_it_was(lab: Lab) -> None:
    lab.findings = (Finding("machines", Verdict.REFUSE, "4 machines are up at east, 5 are needed"),)
    says = ("scaling plane demo to 5 replicas (nothing was changed): machines: 4 machines are up",)
    lab.cli.refused("scale", "demo", "--replicas", "5", "--yes", code=5, says=says)
    lab.findings, lab.forecast = (), DryRun(steps=(), stuck_on=("a person",))
    says = ("planning the scaling of demo to 5 replicas: it would wait for a person",)
    lab.cli.refused("scale", "demo", "--replicas", "5", "--yes", code=5, says=says)


def test_a_document_is_all_that_is_printed_where_one_is_wanted(lab: Lab) -> None:
    report = json.loads(lab.cli("scale", "demo", "--replicas", "5", "--yes", "-o", "json").out)
    assert (report["kind"], report["source"]["replicas"], report["target"]["replicas"]) == ("Scale", 3, 5)
    assert report["changes"] == [{"path": "spec.replicas", "before": "3", "after": "5"}]


def test_an_abort_takes_back_a_change_that_moves_nothing(lab: Lab) -> None:
    async def changing(home: Home) -> None:
        plane = await operations.existing(home.store, "demo")
        spec = plane.spec.model_copy(update={"replicas": 5, "service_cidr": "10.0.0.0/12"})
        await operations.change(home, plane.model_copy(update={"spec": spec}), OperationType.APPLY, ASKER)

    before = lab.spec()
    lab.cli.with_store(changing)
    says = ("abort demo-apply-", "go back to spec.replicas 3, spec.serviceCidr 10.96.0.0/16?")
    lab.cli.refused("abort", "demo", code=4, says=says)
    said = lab.cli("abort", "demo", "--yes")
    assert (said.code, lab.spec()) == (0, before), said
    assert "spec.serviceCidr: 10.0.0.0/12 → 10.96.0.0/16" in said.out
