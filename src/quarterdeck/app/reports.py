"""Reports of operations: generated on request, and kept as files in the home."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from quarterdeck.api.operation import Operation
from quarterdeck.app.onlookers import DURING
from quarterdeck.engine.workspace import recorded
from quarterdeck.engine.workspace.home import Home
from quarterdeck.errors import NotFound
from quarterdeck.files import write_atomic
from quarterdeck.handover.tenures import LEFT, TAKEN
from quarterdeck.probe.result import ProbeResult
from quarterdeck.report.build import build, this_machine
from quarterdeck.report.schema import Report, dump, load


@dataclass(frozen=True, slots=True)
class Kept:
    """A report, and the folder that has it as ``report.json`` and ``report.html``."""

    report: Report
    folder: Path


async def reported(home: Home, name: str, operation: str | None) -> Report:
    """The report of an operation, or of a plane's last one. See ``Quarterdeck.report``."""
    found = [each for each in await recorded.operations_of(home.store, name) if operation in (None, each.metadata.name)]
    begun = [each for each in found if each.status.started_at is not None]
    if not begun:
        raise NotFound(f"reporting on plane {name}", "no such operation has begun", f"see 'history {name}'")
    chosen = begun[-1]
    if chosen.status.report is not None:
        return load(Path(chosen.status.report).read_bytes())
    return await _made(home, chosen)


async def kept(home: Home, operation: str, probe: ProbeResult | None) -> Kept:
    """Write the report's files, and record where they are. See ``Quarterdeck.keep_report``."""
    from quarterdeck.report.html import render_html  # plotting takes a second to load, and few programs plot

    done = await home.store.get(Operation, operation)
    report = await _made(home, done, probe=probe)
    folder = home.folder / "reports" / operation
    write_atomic(folder / "report.json", dump(report))
    write_atomic(folder / "report.html", render_html(report).encode())
    status = done.status.model_copy(update={"report": str(folder / "report.json")})
    await home.store.update(done.model_copy(update={"status": status}))
    return Kept(report, folder)


async def _made(home: Home, operation: Operation, *, probe: ProbeResult | None = None) -> Report:
    entries = await home.store.journal(operation.spec.plane, operation=operation.metadata.name)
    locks = [each for kind in (TAKEN, LEFT) for each in await home.store.journal(operation.spec.plane, kind=kind)]
    plane = await recorded.existing(home.store, operation.spec.plane)
    versions = {"kubernetes": plane.spec.kubernetes_version, "etcd": plane.spec.etcd.version}
    return build(
        operation,
        entries,
        machine=this_machine(versions),
        now=datetime.now(UTC),
        probe=probe,
        during=DURING if probe is not None else None,
        locks=locks,
    )
