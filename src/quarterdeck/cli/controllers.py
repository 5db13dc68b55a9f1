"""Commands on sets of controllers: list, plan, move, rollback, verify."""

from __future__ import annotations

import typer

from quarterdeck.cli import handing

app = typer.Typer(help="Which manager runs which controllers.", no_args_is_help=True)


@app.callback()
def group() -> None:
    """Which manager runs which controllers."""


for command in (handing.plan, handing.move, handing.rollback):
    app.command()(command)
