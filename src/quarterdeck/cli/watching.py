"""Driving a plane while real clients watch, and the report of what they saw."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path

from quarterdeck.api.operation import Operation
from quarterdeck.cli.context import err, opened, out
from quarterdeck.cli.work import drive
from quarterdeck.engine import operations
from quarterdeck.engine.access import probe_target
from quarterdeck.engine.home import Home
from quarterdeck.engine.watchers import Unwatched
from quarterdeck.files import write_atomic
from quarterdeck.model.steps import Step, StopBalancer
from quarterdeck.probe.result import Failure, ProbeResult
from quarterdeck.probe.session import ProbeSession
from quarterdeck.probe.target import Kind, ProbeSettings
from quarterdeck.report.build import build, this_machine
from quarterdeck.report.schema import Report, dump
from quarterdeck.report.text import render_text

DURING = "migration"
AFTER = "after"
#: Seconds for which the probe looks on once all is done.
_AFTERWARDS = 2.0


class RetirePinned(Unwatched):
    """Ends the clients that never resolve the name again when the old address is let go, as is agreed: its time to
    live and its drain have passed by then.
    """

    def __init__(self, probe: ProbeSession) -> None:
        self._probe = probe

    async def begins(self, step: Step) -> None:
        """See ``Watcher``."""
        if isinstance(step, StopBalancer):
            await self._probe.retire(Kind.PINNED)


async def probed_drive(name: str, *, quiet: float, ask: Callable[[], Awaitable[str]]) -> Report:
    """Watch the quiet plane for ``quiet`` seconds, have the change asked for, drive it, and report."""
    async with opened() as home:
        target = await probe_target(home, await operations.existing(home.store, name))
    settings = ProbeSettings(id=uuid.uuid4().hex[:8])
    async with ProbeSession(target, settings, on_failure=_tell) as probe:
        err.print(f"clients run; looking at the quiet plane for {quiet:.0f} s", highlight=False)
        await asyncio.sleep(quiet)
        await probe.mark(DURING)
        operation = await ask()
        await drive(name, (RetirePinned(probe),))
        await probe.mark(AFTER)
        await asyncio.sleep(_AFTERWARDS)
        result = await probe.stop()
    report = await write_report(name, operation, probe=result)
    assert report is not None
    return report


def _tell(failure: Failure) -> None:
    err.print(f"[red]failed[/red] {failure.kind} {failure.request}: {failure.reason}", highlight=False)


async def write_report(name: str, operation: str, *, probe: ProbeResult | None = None) -> Report | None:
    """Make the report's files, note where they are, and print the summary. None for a plane that is gone."""
    async with opened() as home:
        done = await home.store.get(Operation, operation)
        report = await made_report(home, done, probe=probe)
        from quarterdeck.report.html import render_html  # plotting takes a second to load, and few commands plot

        folder = report_folder(home, operation)
        write_atomic(folder / "report.json", dump(report))
        write_atomic(folder / "report.html", render_html(report).encode())
        status = done.status.model_copy(update={"report": str(folder / "report.json")})
        await home.store.update(done.model_copy(update={"status": status}))
    out.print(render_text(report))
    out.print(f"report: {folder / 'report.html'}", highlight=False, soft_wrap=True)
    return report


def report_folder(home: Home, operation: str) -> Path:
    """Where the files of an operation's report are."""
    return home.folder / "reports" / operation


async def made_report(home: Home, operation: Operation, *, probe: ProbeResult | None = None) -> Report:
    """The report of an operation as of now."""
    entries = await home.store.journal(operation.spec.plane, operation=operation.metadata.name)
    plane = await operations.existing(home.store, operation.spec.plane)
    versions = {"kubernetes": plane.spec.kubernetes_version, "etcd": plane.spec.etcd.version}
    return build(
        operation,
        entries,
        machine=this_machine(versions),
        now=datetime.now(UTC),
        probe=probe,
        during=DURING if probe is not None else None,
    )
