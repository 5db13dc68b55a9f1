"""Commands that look at planes, and load no more than that takes: get, status, events."""

from __future__ import annotations

from typing import Annotated

import typer

from quarterdeck.api.base import instant
from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.output.status import EventRow
from quarterdeck.app.looks import Looks, summary
from quarterdeck.cli.arguments import MaybeName, OutputOption, UnnamedOption
from quarterdeck.cli.context import Output, UnnamedOutput, go_inside, look, out
from quarterdeck.cli.groups import command, group
from quarterdeck.cli.output import Column, document, emit, show, table
from quarterdeck.cli.plane_text import PLANE_COLUMNS, print_status, since
from quarterdeck.errors import InvalidInput

app = group()


@command(app, "get", "get alpha -o yaml", name="get")
def get(name: MaybeName = None, output: OutputOption = Output.TABLE) -> None:
    """List planes, or print the spec of one."""

    async def planes(looks: Looks) -> list[ControlPlane]:
        return [await looks.plane(name)] if name is not None else list(await looks.planes())

    found = look(planes)
    if not output.for_people:
        document(found, output)
    elif found:
        table(found, PLANE_COLUMNS, wide=output is Output.WIDE)
    else:
        out.print("no planes; create one with 'quarterdeck create NAME'")


@command(app, "status alpha", "status --watch")
def status(
    name: MaybeName = None,
    watched: Annotated[
        bool, typer.Option("--watch", "-w", help="Keep watching until Ctrl-C; all planes without a name.")
    ] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show the health of a plane: members, leaders, load balancers, operations, and the failures it survives.

    Exits 1 if the plane is not healthy.
    """
    if watched:
        from quarterdeck.cli.commands.watch import watch  # most look once

        watch(name, output)
        return
    if name is None:
        step = "give the name of one, or --watch to see all; 'quarterdeck get' lists them"
        raise InvalidInput("looking at a plane", "no plane is named", step)
    go_inside(name)
    seen = summary(look(lambda looks: looks.examine(name)))
    emit(seen, output, lambda: print_status(seen, output))
    if not seen.healthy:
        raise typer.Exit(1)


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
        for each in look(lambda looks: looks.events(name))
    ]
    show(rows, _EVENT_COLUMNS, output)
