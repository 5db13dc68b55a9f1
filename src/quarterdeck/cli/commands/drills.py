"""Failure drills: something fails for real, and what comes of it is measured."""

from __future__ import annotations

import signal
from typing import Annotated

import typer
from pydantic import JsonValue
from rich.markup import escape

from quarterdeck.api.belongings import Drill, DrillPhase
from quarterdeck.app import Quarterdeck, Wish
from quarterdeck.app.words import named
from quarterdeck.cli.arguments import PROGRAM, Name, OutputOption, Yes
from quarterdeck.cli.context import Output, err, go_inside, look
from quarterdeck.cli.durations import duration_option
from quarterdeck.cli.groups import command, group
from quarterdeck.cli.open_home import call, go_inside_to_drive
from quarterdeck.cli.output import emit, show
from quarterdeck.cli.plane_text import age
from quarterdeck.cli.work import confirm, ended_by
from quarterdeck.errors import InvalidInput
from quarterdeck.model.components import Component
from quarterdeck.model.faults import Fail

_REPLICA = "The replica to hit (default: a different one each time; for slow-disk the etcd leader)."
_HOLD = "How long the fault lasts at most (default: 30s; 2m for slow-disk, which takes long to detect)."
app = group(
    "Inject a real fault into a plane, measure the impact, and undo it ('drill NAME' is short for 'drill run NAME').",
    default="run",
)


@command(app, "drill alpha --fail machine", "drill run alpha --fail unit --component etcd --hold 1m", name="run")
def run_(
    name: Name,
    fail: Annotated[Fail, typer.Option("--fail", help="The kind of fault.", show_default=False)],
    replica: Annotated[str, typer.Option(help=_REPLICA, show_default=False)] = "",
    component: Annotated[
        Component, typer.Option(parser=named, metavar=PROGRAM, help="The program to hit (for unit and hang).")
    ] = Component.APISERVER,
    zone: Annotated[str, typer.Option(help="The zone to hit (for zone).", show_default=False)] = "",
    hold: Annotated[float | None, duration_option("--hold", _HOLD)] = None,
    dangerous: Annotated[
        bool, typer.Option("--dangerous", help="Allow drills that the plane may not survive.")
    ] = False,
    yes: Yes = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Inject a fault into a plane, measure the impact, and undo it.

    Exits 1 if the drill fails.
    """
    if hold is not None and not 0 < hold <= 3600:
        raise InvalidInput("reading --hold", f"{hold:g} s is no time for a fault", "give more than 0 and at most 1h")
    go_inside_to_drive(name)
    wish = Wish(fail=fail, replica=replica, component=component, zone=zone)
    lasting = _planned(name, wish, hold, dangerous=dangerous)
    confirm(f"have this fail now, for at most {lasting:g} s?", yes=yes)
    made = _made(name, wish, hold, dangerous=dangerous)
    emit(_fact(made), output, lambda: _print(made, output))
    if made.status.phase is not DrillPhase.PASSED:
        raise typer.Exit(1)


@command(app, "drill list alpha", name="list")
def list_(name: Name, output: OutputOption = Output.TABLE) -> None:
    """List the last drills of a plane and their results."""
    go_inside(name)
    rows = [_fact(each) if output.is_document else _row(each) for each in look(lambda looks: looks.drills(name))]
    empty = f"plane {name} had no drill yet; make one with 'quarterdeck drill {name} --fail unit'"
    show(rows, _COLUMNS, output, wide=_WIDE, empty=empty)


def _print(made: Drill, output: Output) -> None:
    show([_row(made)], _COLUMNS, output, wide=_WIDE)
    for each in made.status.failures:
        err.print(f"[yellow]failed[/yellow] {escape(each)}", highlight=False, soft_wrap=True)
    for each in (*((made.status.message,) if made.status.message else ()), *made.status.left):
        err.print(each, highlight=False, soft_wrap=True)


def _planned(name: str, wish: Wish, hold: float | None, *, dangerous: bool) -> float:
    """Tell what is to come, and for how many seconds at most. Raises PreconditionFailed."""
    plan = call(lambda face: face.plan_drill(name, wish, hold=hold))
    for each in plan.struck:
        err.print(f"to come: {each}", highlight=False, soft_wrap=True)
    for each in plan.dangers:
        err.print(f"[yellow]![/yellow] {each}", highlight=False, soft_wrap=True)
    plan.require(dangerous=dangerous)
    return plan.hold


def _made(name: str, wish: Wish, hold: float | None, *, dangerous: bool) -> Drill:
    def tell(words: str) -> None:
        err.print(words, highlight=False, soft_wrap=True)

    async def drill(face: Quarterdeck) -> Drill:
        with ended_by(signal.SIGTERM, signal.SIGHUP):
            return await face.drill(name, wish, hold=hold, dangerous=dangerous, tell=tell)

    return call(drill)


_COLUMNS = ("drill", "fail", "result", "detected", "served again", "redundant", "failed", "lost writes", "age")
_WIDE = ("requests", "last failure", "last failed sent", "undone", "longest stall", "struck")


def _row(drill: Drill) -> dict[str, JsonValue]:
    status = drill.status
    return {
        "drill": drill.name,
        "fail": drill.spec.fail.value,
        "result": status.phase.value.lower(),
        "detected": _told(status.detected),
        "served again": "always" if status.served_again == 0 and _over(drill) else _told(status.served_again),
        "redundant": _told(status.redundant),
        "failed": status.failed if _over(drill) else None,
        "lost writes": status.lost if _over(drill) else None,
        "age": age(status.started_at.timestamp()) if status.started_at is not None else None,
        "requests": status.requests if _over(drill) else None,
        "last failure": _told(status.last_failure),
        "last failed sent": _told(status.last_failed_sent),
        "undone": _told(status.undone),
        "longest stall": f"{status.longest_stall_milliseconds:.0f} ms" if _over(drill) else None,
        "struck": "; ".join(drill.spec.struck),
    }


def _over(drill: Drill) -> bool:
    return drill.status.phase in (DrillPhase.PASSED, DrillPhase.FAILED)


def _told(seconds: float | None) -> str | None:
    return None if seconds is None else f"{seconds:.1f} s"


def _fact(drill: Drill) -> dict[str, JsonValue]:
    fact: dict[str, JsonValue] = drill.model_dump(mode="json", by_alias=True)
    return fact
