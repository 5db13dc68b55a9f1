"""Commands that move planes: migrate, wait, abort."""

from __future__ import annotations

from typing import Annotated

import typer

from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.operation import OperationType
from quarterdeck.cli.arguments import Detach, Name, Yes
from quarterdeck.cli.context import Output, asker, engine, err, go_inside, opened, out, run
from quarterdeck.cli.plane_text import print_forecast
from quarterdeck.cli.planes import moved_placement
from quarterdeck.cli.watching import probed_drive, write_report
from quarterdeck.cli.work import confirm, detach, drive, follow
from quarterdeck.engine import operations
from quarterdeck.engine.facts import forecast, look
from quarterdeck.engine.preconditions import Verdict, require
from quarterdeck.engine.wording import what
from quarterdeck.errors import Conflict, InvalidInput, PreconditionFailed
from quarterdeck.model.steps import Plan

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

    wanted = run(_examined(name, to, replicas, allow_distance=allow_distance))
    if wanted is None:
        out.print(f"plane {name} is at {to} already, and as wanted: nothing to do")
        return
    confirm(f"move plane {name} to {to}?", yes=yes)

    async def ask() -> str:
        async with opened() as home:
            return (await operations.change(home, wanted, OperationType.MIGRATE, asker())).metadata.name

    if detached:
        run(ask())
        detach(name)
    elif probe:
        run(probed_drive(name, quiet=quiet, ask=ask))
    else:
        operation = run(ask())
        run(drive(name))
        run(write_report(name, operation))


async def _examined(name: str, to: str, replicas: int | None, *, allow_distance: bool) -> ControlPlane | None:
    """The plane as it is to be, once every precondition was looked at and the plan was shown. Changes nothing.

    None when it is there already and nothing is left to do: a script that tries again has got what it wants.
    """
    async with opened() as home, engine(home) as made:
        current = await operations.existing(home.store, name)
        wanted = _wanted(current, to, replicas)
        running = await operations.current(home.store, name)
        if running is not None:
            raise Conflict(
                f"migrating plane {name}",
                f"operation {running.metadata.name} ({running.spec.type.value}) is under way",
                f"let it end with 'wait {name}', or go back with 'abort {name}'",
            )
        if wanted.spec == current.spec:
            _require_done(name, to, (await look(made, name)).plan)
            return None
        for each in await require(made, current, wanted, allow_distance=allow_distance):
            mark = "[green]✓[/green]" if each.verdict is Verdict.OK else "[yellow]![/yellow]"
            err.print(f"{mark} {each.check}: {each.seen}", highlight=False)
        predicted = await forecast(made, wanted)
    if predicted.stuck_on:
        reasons = "; ".join(predicted.stuck_on)
        raise PreconditionFailed(
            f"planning the move of {name} to {to}", f"it would wait for {reasons}", "mend that first"
        )
    print_forecast(predicted, Output.TABLE)
    return wanted


def _require_done(name: str, to: str, plan: Plan) -> None:
    if not plan.done:
        left = "; ".join((*(what(step) for step in plan.now), *plan.waiting))
        raise Conflict(
            f"migrating plane {name}", f"it is wanted at {to} already, and left to do is: {left}", f"use 'wait {name}'"
        )


def _wanted(current: ControlPlane, to: str, replicas: int | None) -> ControlPlane:
    doing = f"migrating plane {current.metadata.name}"
    if replicas is not None and replicas not in (1, 3, 5):
        raise InvalidInput(doing, f"{replicas} replicas", "use 1, 3 or 5")
    if to == current.spec.placement.site:
        if replicas not in (None, current.spec.replicas):
            raise InvalidInput(doing, f"it is at {to} already", "name another site, or change the number by 'apply'")
        return current
    return operations.moved(current, moved_placement(current, to), replicas)


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

    async def ask() -> str | None:
        async with opened() as home:
            plane = await operations.existing(home.store, name)
            running = await operations.current(home.store, name)
            if running is None or running.spec.from_ is None:
                return None
            goal = running.spec.from_
            if running.spec.type is OperationType.ABORT:
                return running.metadata.name  # it is going back already
            confirm(f"abort {running.metadata.name} and go back to {goal.placement.site}?", yes=yes)
            wanted = operations.moved(plane, goal.placement, goal.replicas)
            return (await operations.change(home, wanted, OperationType.ABORT, asker())).metadata.name

    operation = run(ask())
    if operation is None:
        raise Conflict(
            f"aborting on plane {name}", "no operation that could be undone is under way", f"see 'history {name}'"
        )
    if detached:
        detach(name)
        return
    run(follow(name, timeout=None))
    run(write_report(name, operation))
    out.print(f"plane {name} is back")
