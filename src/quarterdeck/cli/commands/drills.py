"""Failure drills: something fails for real, and what comes of it is measured."""

from __future__ import annotations

import signal
from typing import Annotated

import typer
from pydantic import JsonValue
from rich.markup import escape

from quarterdeck.api.belongings import Drill, DrillPhase
from quarterdeck.api.values import seconds_in
from quarterdeck.app import Quarterdeck, Wish
from quarterdeck.app.words import named
from quarterdeck.cli.arguments import PROGRAM, Name, OutputOption, Yes
from quarterdeck.cli.context import Output, err, go_inside, look
from quarterdeck.cli.groups import group
from quarterdeck.cli.open_home import call, go_inside_to_drive
from quarterdeck.cli.output import emit, show
from quarterdeck.cli.plane_text import age
from quarterdeck.cli.work import confirm, ended_by
from quarterdeck.errors import InvalidInput
from quarterdeck.model.components import Component
from quarterdeck.model.faults import Fail

_WHOSE = "Whose; without it another one each time, and for slow-disk that of who leads its etcd."
app = group(
    "Failure drills: 'drill NAME --fail machine' has something fail for real, measures what comes of it, and makes"
    " it well again.",
    default="run",
)


@app.command("run")
def run_(
    name: Name,
    fail: Annotated[Fail, typer.Option("--fail", help="What is to fail.", show_default=False)],
    replica: Annotated[str, typer.Option(help=_WHOSE, show_default=False)] = "",
    component: Annotated[
        Component, typer.Option(parser=named, metavar=PROGRAM, help="Which program (unit, hang).")
    ] = Component.APISERVER,
    zone: Annotated[str, typer.Option(help="Which zone (zone).", show_default=False)] = "",
    hold: Annotated[
        str,
        typer.Option(
            help="For how long it fails at most; without it 30s, and 2m for slow-disk, which takes long to be found.",
            show_default=False,
        ),
    ] = "",
    dangerous: Annotated[
        bool, typer.Option("--dangerous", help="Also what the plane would not survive, or may not.")
    ] = False,
    yes: Yes = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Have something of a plane fail, and say what came of it. Exit code 1 if it is not passed."""
    seconds = _seconds(hold) if hold else None
    go_inside_to_drive(name)
    wish = Wish(fail=fail, replica=replica, component=component, zone=zone)
    lasting = _planned(name, wish, seconds, dangerous=dangerous)
    confirm(f"have this fail now, for at most {lasting:g} s?", yes=yes)
    made = _made(name, wish, seconds, dangerous=dangerous)
    emit(_fact(made), output, lambda: _print(made, output))
    if made.status.phase is not DrillPhase.PASSED:
        raise typer.Exit(1)


@app.command("list")
def list_(name: Name, output: OutputOption = Output.TABLE) -> None:
    """List a plane's last drills, and what came of each."""
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


def _seconds(text: str) -> float:
    try:
        seconds = seconds_in(text)
    except ValueError as error:
        raise InvalidInput("reading --hold", str(error)) from error
    if not 0 < seconds <= 3600:
        raise InvalidInput("reading --hold", f"{text} is no time for something to fail", "give up to an hour")
    return seconds


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
