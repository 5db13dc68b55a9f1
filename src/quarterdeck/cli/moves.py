"""Commands that move planes: migrate, wait, abort."""

from __future__ import annotations

from typing import Annotated

import typer

from quarterdeck.api.operation import Operation
from quarterdeck.app import Abort, Examined, Migrate, Request, Verdict
from quarterdeck.cli.arguments import Detach, Name, Yes
from quarterdeck.cli.context import Output, err, go_inside, opened, out, run
from quarterdeck.cli.plane_text import print_forecast
from quarterdeck.cli.watching import probed_drive, write_report
from quarterdeck.cli.work import confirm, detach, drive, follow
from quarterdeck.errors import InvalidInput

app = typer.Typer()


@app.command()
def migrate(
    name: Name,
    to: Annotated[str, typer.Option("--to", help="The site to move to.", show_default=False)],
    replicas: Annotated[
        int | None, typer.Option(help="With this many replicas there; as many as now without it.")
    ] = None,
    allow_distance: Annotated[
        bool, typer.Option("--allow-distance", help="Go over more than 180 ms of round trip.")
    ] = False,
    probe: Annotated[bool, typer.Option("--probe", help="Watch it with real clients from outside.")] = False,
    quiet: Annotated[float, typer.Option(help="Seconds that the probe looks at the quiet plane before.")] = 10.0,
    yes: Yes = False,
    detached: Detach = False,
) -> None:
    """Move a plane live to another site: plan, question, progress, report."""
    go_inside(name, drives=True)
    if probe and detached:
        raise InvalidInput(f"migrating plane {name}", "--probe and --detach exclude each other", "use one of them")

    examined = run(_planned(Migrate(name, to, replicas, allow_distance)))
    if not examined.needed:
        out.print(f"plane {name} is at {to} already, and as wanted: nothing to do")
        return
    _show(examined)
    confirm(f"move plane {name} to {to}?", yes=yes)
    if detached:
        run(_asked(examined))
        detach(name)
    elif probe:
        run(probed_drive(name, quiet=quiet, ask=lambda: _asked(examined)))
    else:
        operation = run(_asked(examined))
        run(drive(name))
        run(write_report(operation))


async def _planned(request: Request) -> Examined:
    async with opened() as quarterdeck:
        return await quarterdeck.plan(request)


async def _asked(examined: Examined) -> Operation:
    async with opened() as quarterdeck:
        operation = await quarterdeck.ask(examined)
    assert operation is not None, "something is to be done"
    return operation


def _show(examined: Examined) -> None:
    """Print what every check found, and the plan. Raises PreconditionFailed for what must not be."""
    if not examined.refused:
        for each in examined.findings:
            mark = "[green]✓[/green]" if each.verdict is Verdict.OK else "[yellow]![/yellow]"
            err.print(f"{mark} {each.check}: {each.seen}", highlight=False)
    examined.require()
    if examined.forecast is not None:
        print_forecast(examined.forecast, Output.TABLE)


@app.command()
def wait(
    name: Name,
    timeout: Annotated[float | None, typer.Option(help="Give up after this many seconds.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing at the end.")] = False,
) -> None:
    """Be there until a plane is as wanted: follow the process that drives it, or drive it if none does."""
    go_inside(name, drives=True)
    run(follow(name, timeout=timeout))
    if not quiet:
        out.print(f"plane {name} is as wanted")


@app.command()
def abort(name: Name, yes: Yes = False, detached: Detach = False) -> None:
    """Go back to where the plane was before the operation that is under way. Possible at any moment."""
    go_inside(name, drives=True)

    examined = run(_planned(Abort(name)))
    if examined.needed:
        assert examined.under_way is not None
        undone, site = examined.under_way.metadata.name, examined.wanted.spec.placement.site
        confirm(f"abort {undone} and go back to {site}?", yes=yes)
    operation = run(_asked(examined))
    if detached:
        detach(name)
        return
    run(follow(name, timeout=None))
    run(write_report(operation))
    out.print(f"plane {name} is back")
