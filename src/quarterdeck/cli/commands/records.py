"""Commands that print what the store has, and load no more than that takes: get, events, history."""

from __future__ import annotations

from quarterdeck.api.base import instant
from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.output.operations import OperationRow
from quarterdeck.api.output.status import EventRow
from quarterdeck.app.records import Records
from quarterdeck.cli.ages import since
from quarterdeck.cli.arguments import MaybeName, Name, OutputOption, UnnamedOption
from quarterdeck.cli.context import Output, UnnamedOutput, out, read
from quarterdeck.cli.groups import command, group
from quarterdeck.cli.operation_rows import operation_row
from quarterdeck.cli.output import Column, document, show, table

app = group()


def _ready(plane: ControlPlane) -> str:
    """Whether it is ready, by a condition that is about the spec as it is now."""
    ready = next((each for each in plane.status.conditions if each.type == "Ready"), None)
    current = ready is not None and plane.status.observed_generation == plane.metadata.generation
    return str(ready.status.value) if ready is not None and current else "Unknown"


_PLANE_COLUMNS: tuple[Column[ControlPlane], ...] = (
    Column("name", lambda row: row.name),
    Column("site", lambda row: row.spec.placement.site),
    Column("replicas", lambda row: row.spec.replicas),
    Column("version", lambda row: row.spec.kubernetes_version),
    Column("ready", _ready),
    Column("age", lambda row: since(row.metadata.creation_timestamp)),
    Column("endpoint", lambda row: row.host, wide=True),
    Column("etcd", lambda row: row.spec.etcd.version, wide=True),
)


@command(app, "get", "get alpha -o yaml", name="get")
def get(name: MaybeName = None, output: OutputOption = Output.TABLE) -> None:
    """List planes, or print the spec of one."""

    async def planes(records: Records) -> list[ControlPlane]:
        return [await records.plane(name)] if name is not None else list(await records.planes())

    found = read(planes)
    if not output.for_people:
        document(found, output)
    elif found:
        table(found, _PLANE_COLUMNS, wide=output is Output.WIDE)
    else:
        out.print("no planes; create one with 'quarterdeck create NAME'")


_EVENT_COLUMNS: tuple[Column[EventRow], ...] = (
    Column("last seen", lambda row: since(row.last_seen_at)),
    Column("plane", lambda row: row.plane),
    Column("type", lambda row: row.type),
    Column("reason", lambda row: row.reason),
    Column("count", lambda row: row.count),
    Column("message", lambda row: row.message),
)


@command(app, "events alpha", "events -o json")
def events(name: MaybeName = None, output: UnnamedOption = UnnamedOutput.TABLE) -> None:
    """Show the events of a plane or of all planes; repeats are counted."""
    rows = [
        EventRow(
            plane=each.plane,
            type=str(each.type),
            reason=each.reason,
            message=each.message,
            count=each.count,
            first_seen_at=instant(each.first),
            last_seen_at=instant(each.last),
        )
        for each in read(lambda records: records.events(name))
    ]
    show(rows, _EVENT_COLUMNS, output)


_OPERATION_COLUMNS: tuple[Column[OperationRow], ...] = (
    Column("operation", lambda row: row.name),
    Column("type", lambda row: row.type),
    Column("from", lambda row: f"{row.from_site}/{row.from_replicas}" if row.from_site else None),
    Column("to", lambda row: f"{row.to_site}/{row.to_replicas}" if row.to_site else None),
    Column("phase", lambda row: row.phase),
    Column("took", lambda row: f"{row.duration_seconds:.1f} s" if row.duration_seconds is not None else None),
    Column("by", lambda row: row.requested_by.split(" ")[0]),
    Column("started", lambda row: f"{row.started_at:%Y-%m-%dT%H:%M:%SZ}" if row.started_at else None, wide=True),
    Column("message", lambda row: row.message, wide=True),
)


@command(app, "history alpha", "history alpha -o wide")
def history(name: Name, output: OutputOption = Output.TABLE) -> None:
    """List the operations of a plane and their outcomes."""
    show([operation_row(each) for each in read(lambda records: records.history(name))], _OPERATION_COLUMNS, output)
