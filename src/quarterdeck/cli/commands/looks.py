"""The command that observes a plane, and loads no more than that takes: status."""

from __future__ import annotations

from typing import Annotated

import typer

from quarterdeck.app.looks import summary
from quarterdeck.cli.arguments import MaybeName, OutputOption
from quarterdeck.cli.context import Output, go_inside, look
from quarterdeck.cli.groups import command, group
from quarterdeck.cli.output import emit
from quarterdeck.cli.plane_text import print_status
from quarterdeck.errors import InvalidInput

app = group()


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
