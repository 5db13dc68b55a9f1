"""Commands that look at planes, and load no more than that takes: get, status, events."""

from __future__ import annotations

from typing import Annotated

import typer
from pydantic import JsonValue

from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.app.looks import Looks, summary
from quarterdeck.cli.arguments import MaybeName, OutputOption
from quarterdeck.cli.context import Output, go_inside, look
from quarterdeck.cli.groups import command, group
from quarterdeck.cli.output import document, emit, show
from quarterdeck.cli.plane_text import age, print_status, row
from quarterdeck.errors import InvalidInput

app = group()


@command(app, "get", "get alpha -o yaml", name="get")
def get(name: MaybeName = None, output: OutputOption = Output.TABLE) -> None:
    """List planes, or print the spec of one."""

    async def planes(looks: Looks) -> list[ControlPlane]:
        return [await looks.plane(name)] if name is not None else list(await looks.planes())

    found = look(planes)
    if output.is_document:
        document(found, output)
    else:
        show(
            [row(each) for each in found],
            ("name", "site", "replicas", "version", "ready", "age"),
            output,
            wide=("endpoint", "etcd"),
            empty="no planes; create one with 'quarterdeck create NAME'",
        )


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
    fact = summary(look(lambda looks: looks.examine(name)))
    emit(fact, output, lambda: print_status(fact, output))
    if not fact["healthy"]:
        raise typer.Exit(1)


@command(app, "events alpha", "events -o json")
def events(name: MaybeName = None, output: OutputOption = Output.TABLE) -> None:
    """Show the events of a plane or of all planes; repeats are counted."""
    rows: list[dict[str, JsonValue]] = [
        {
            "last seen": age(each.last),
            "plane": each.plane,
            "type": str(each.type),
            "reason": each.reason,
            "count": each.count,
            "message": each.message,
        }
        for each in look(lambda looks: looks.events(name))
    ]
    show(rows, ("last seen", "plane", "type", "reason", "count", "message"), output)
