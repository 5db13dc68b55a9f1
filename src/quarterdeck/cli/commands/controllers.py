"""Commands on sets of controllers: list, plan, move, rollback, verify."""

from __future__ import annotations

import typer
from pydantic import JsonValue

from quarterdeck.app import SetHeld
from quarterdeck.cli.arguments import Name, OutputOption
from quarterdeck.cli.commands import handing, verifying
from quarterdeck.cli.context import Output, err, go_inside, looking, out, run
from quarterdeck.cli.output import show

_COLUMNS = ("set", "owner", "guarded by", "held by", "since", "renewed", "transitions")
_WIDE = ("lock", "controllers", "identity")

app = typer.Typer(help="Which manager runs which controllers.", no_args_is_help=True)


@app.callback()
def group() -> None:
    """Which manager runs which controllers."""


@app.command("list")
def list_(name: Name, output: OutputOption = Output.TABLE) -> None:
    """List a plane's sets: who runs each, and which lock guards it. Exit code 1 if one is not run by its owner."""
    go_inside(name)

    async def ask() -> tuple[SetHeld, ...]:
        async with looking() as looks:
            return await looks.controllers(name)

    found = run(ask())
    if not found and output in (Output.TABLE, Output.WIDE):
        out.print(f"plane {name} declares no sets of controllers")
        return
    show([_row(each, output) for each in found], _COLUMNS, output, wide=_WIDE)
    for each in found:
        for why in each.why:
            err.print(f"set {each.name}: {why}", highlight=False, markup=False, soft_wrap=True)
    if not all(each.well for each in found):
        raise typer.Exit(1)


def _row(found: SetHeld, output: Output) -> dict[str, JsonValue]:
    manager = found.manager.value if found.manager is not None else None
    row: dict[str, JsonValue] = {
        "set": found.name,
        "lock": found.lock,
        "owner": found.owner.value,
        "guardedBy": found.guarded_by,
        "manager": manager,
        "replica": found.replica or None,
        "identity": found.identity or None,
        "transitions": found.transitions,
        "controllers": [*found.controllers],
    }
    if output in (Output.JSON, Output.YAML):
        since = found.since.isoformat() if found.since is not None else None
        return {**row, "since": since, "renewedSecondsAgo": found.renewed_ago, "well": found.well, "why": [*found.why]}
    ago = f"{max(0.0, found.renewed_ago):.0f}s ago" if found.renewed_ago is not None else None
    return {
        **row,
        "held by": " of ".join(filter(None, (manager, found.replica)))
        or ("a stranger" if found.identity else "nobody"),
        "guarded by": found.guarded_by,
        "since": f"{found.since:%F %T}Z" if found.since is not None else None,
        "renewed": ago,
    }


for command in (handing.plan, handing.move, handing.rollback, verifying.verify):
    app.command()(command)
