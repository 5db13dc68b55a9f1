"""Commands that exchange replicas of planes: migrate, scale, wait, abort."""

from __future__ import annotations

from typing import Annotated

import typer

from quarterdeck.api.differences import differences, shown
from quarterdeck.api.operation import Operation
from quarterdeck.app import Abort, Examined, Migrate, Request, Scale, Verdict
from quarterdeck.cli.arguments import Detach, Name, OutputOption, ProbeFrom, ProbeOption, Yes
from quarterdeck.cli.context import Output, err, out, run
from quarterdeck.cli.opening import go_inside_to_drive, opened
from quarterdeck.cli.output import document
from quarterdeck.cli.plan_text import print_forecast
from quarterdeck.cli.watching import probed_drive, write_report
from quarterdeck.cli.work import confirm, detach, follow
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
    probe: ProbeOption = False,
    probe_from: ProbeFrom = None,
    quiet: Annotated[float, typer.Option(help="Seconds that the probe looks at the quiet plane before.")] = 10.0,
    yes: Yes = False,
    detached: Detach = False,
) -> None:
    """Move a plane live to another site: plan, question, progress, report."""
    go_inside_to_drive(name)
    probe = probe or probe_from is not None
    if probe and detached:
        raise InvalidInput(f"migrating plane {name}", "--probe and --detach exclude each other", "use one of them")

    examined = run(planned(Migrate(name, to, replicas, allow_distance)))
    if not examined.needed:
        out.print(f"plane {name} is at {to} already, and as wanted: nothing to do")
        return
    show_examined(examined)
    confirm(f"move plane {name} to {to}?", yes=yes)
    if probe:
        run(probed_drive(name, quiet=quiet, ask=lambda: asked(examined), host=probe_from))
    else:
        bring_about(examined, detached=detached)


@app.command()
def scale(
    name: Name,
    replicas: Annotated[int, typer.Option(help="How many it is to have: 1, 3, 5 or 7.", show_default=False)],
    yes: Yes = False,
    detached: Detach = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Give a plane another number of replicas, where it is, while it serves: plan, question, progress, report."""
    go_inside_to_drive(name)
    examined = run(planned(Scale(name, replicas)))
    if not examined.needed:
        count = f"{replicas} replica{'s' if replicas > 1 else ''}"
        out.print(f"plane {name} has {count}, as wanted: nothing to do")
        return
    change(examined, f"scale plane {name} to {replicas}?", yes=yes, detached=detached, output=output)


def change(examined: Examined, question: str, *, yes: bool, detached: bool, output: Output) -> None:
    """Show what a request comes to, ask, and bring it about."""
    show_examined(examined, output)
    confirm(question, yes=yes)
    bring_about(examined, detached=detached, output=output)


def bring_about(examined: Examined, *, detached: bool, output: Output = Output.TABLE) -> None:
    """Ask for what was examined, and drive the plane: here, to the report, or by a process of its own."""
    operation = run(asked(examined))
    if detached:
        if output in (Output.JSON, Output.YAML):
            document((operation,), output)
            detach(examined.name, tell=err)
        else:
            detach(examined.name)
        return
    run(follow(examined.name))
    run(write_report(operation, output=output))


async def planned(request: Request, *, trial: bool = True) -> Examined:
    """A request, checked and simulated."""
    async with opened(trial=trial) as quarterdeck:
        return await quarterdeck.plan(request)


async def asked(examined: Examined) -> Operation:
    """Put down what was examined."""
    async with opened() as quarterdeck:
        operation = await quarterdeck.ask(examined)
    assert operation is not None, "something is to be done"
    return operation


def show_examined(examined: Examined, output: Output = Output.TABLE) -> None:
    """Print what every check found, and the plan. Raises PreconditionFailed for what must not be. Where documents are
    wanted, the plan is not printed: the report is the only one.
    """
    if not examined.refused:
        for each in examined.findings:
            mark = "[green]✓[/green]" if each.verdict is Verdict.OK else "[yellow]![/yellow]"
            err.print(f"{mark} {each.check}: {each.seen}", highlight=False)
    examined.require()
    if examined.forecast is not None and output in (Output.TABLE, Output.WIDE):
        print_forecast(examined.forecast, output)


@app.command()
def wait(
    name: Name,
    timeout: Annotated[float | None, typer.Option(help="Give up after this many seconds.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing at the end.")] = False,
) -> None:
    """Be there until a plane is as wanted: follow the process that drives it, or drive it if none does."""
    go_inside_to_drive(name)
    run(follow(name, timeout=timeout))
    if not quiet:
        out.print(f"plane {name} is as wanted")


@app.command()
def abort(name: Name, yes: Yes = False, detached: Detach = False) -> None:
    """Take back the operation that is under way, whatever it changes. Possible at any moment."""
    go_inside_to_drive(name)

    examined = run(planned(Abort(name)))
    if examined.needed:
        assert examined.under_way is not None
        undone = examined.under_way.metadata.name
        confirm(f"abort {undone} and go back to {_taken_back(examined)}?", yes=yes)
    operation = run(asked(examined))
    if detached:
        detach(name)
        return
    run(follow(name))
    run(write_report(operation))
    out.print(f"plane {name} is back")


def _taken_back(examined: Examined) -> str:
    """What an abort brings back: the site, else the fields that it changes."""
    assert examined.current is not None
    if examined.current.spec.placement.site != (site := examined.wanted.spec.placement.site):
        return site
    found = differences(examined.current.spec, examined.wanted.spec)
    return ", ".join(f"{each.path} {shown(each.after)}" for each in found) or "what it was"
