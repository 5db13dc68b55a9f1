"""Failure drills: something fails for real, and what comes of it is measured."""

from __future__ import annotations

import signal
from typing import Annotated

import typer
from rich.markup import escape

from quarterdeck.api.belongings import Drill, DrillPhase
from quarterdeck.api.output.base import messages
from quarterdeck.api.output.planes import DrillRow
from quarterdeck.app import Quarterdeck, Wish
from quarterdeck.cli.ages import since
from quarterdeck.cli.arguments import Name, OutputOption, Yes
from quarterdeck.cli.component_names import PROGRAM, named
from quarterdeck.cli.context import Output, err, go_inside, look
from quarterdeck.cli.durations import duration_option
from quarterdeck.cli.groups import command, group
from quarterdeck.cli.open_home import call, go_inside_to_drive
from quarterdeck.cli.output import Column, emit, show, table
from quarterdeck.cli.work import confirm, ended_by
from quarterdeck.errors import InvalidInput
from quarterdeck.model.components import Component
from quarterdeck.model.faults import Fail

_FAIL = "The kind of fault; with total-loss nothing fails, and the newest backup is restored beside the plane."
_REPLICA = "The replica to hit (default: a different one each time; for slow-disk the etcd leader)."
_HOLD = "How long the fault lasts at most (default: 30s; 2m for slow-disk, which takes long to detect)."
app = group(
    "Inject a real fault into a plane, measure the impact, and undo it ('drill NAME' is short for 'drill run NAME').",
    default="run",
)


@command(app, "drill alpha --fail machine", "drill run alpha --fail unit --component etcd --hold 1m", name="run")
def run_(
    name: Name,
    fail: Annotated[Fail, typer.Option("--fail", help=_FAIL, show_default=False)],
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
    if hold is not None and fail is Fail.TOTAL_LOSS:
        raise InvalidInput("reading --hold", "nothing fails in a drill of a total loss", "leave it out")
    go_inside_to_drive(name)
    wish = Wish(fail=fail, replica=replica, component=component, zone=zone)
    lasting = _planned(name, wish, hold, dangerous=dangerous)
    if fail is not Fail.TOTAL_LOSS:
        confirm(f"have this fail now, for at most {lasting:g} s?", yes=yes)
    made = _made(name, wish, hold, dangerous=dangerous)
    row = _row(made)
    emit(row, output, lambda: _print(row, output))
    if made.status.phase is not DrillPhase.PASSED:
        raise typer.Exit(1)


@command(app, "drill list alpha", name="list")
def list_(name: Name, output: OutputOption = Output.TABLE) -> None:
    """List the last drills of a plane and their results."""
    go_inside(name)
    rows = [_row(each) for each in look(lambda looks: looks.drills(name))]
    empty = f"plane {name} had no drill yet; make one with 'quarterdeck drill {name} --fail unit'"
    show(rows, _COLUMNS, output, empty=empty)


def _print(made: DrillRow, output: Output) -> None:
    if made.fail == Fail.TOTAL_LOSS:
        table([made], _RESTORE_COLUMNS, wide=output is Output.WIDE)
    else:
        table([made], _COLUMNS, wide=output is Output.WIDE)
    for each in made.failures:
        err.print(f"[yellow]failed[/yellow] {escape(each.message)}", highlight=False, soft_wrap=True)
    for each in (*((made.message,) if made.message else ()), *map(str, made.left)):
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


def _row(drill: Drill) -> DrillRow:
    spec, status = drill.spec, drill.status
    return DrillRow(
        name=drill.name,
        plane=spec.plane,
        fail=spec.fail.value,
        reasons=spec.struck,
        phase=status.phase.value,
        started_at=status.started_at,
        finished_at=status.finished_at,
        hold_seconds=spec.hold,
        dangerous=spec.dangerous,
        scheduled=spec.scheduled,
        requested_by=spec.requested_by,
        detected_seconds=status.detected,
        served_again_seconds=status.served_again,
        last_failure_seconds=status.last_failure,
        last_failed_sent_seconds=status.last_failed_sent,
        undone_seconds=status.undone,
        redundant_seconds=status.redundant,
        requests=status.requests,
        failed=status.failed,
        failures=messages(status.failures),
        longest_stall_seconds=status.longest_stall_milliseconds / 1000,
        acknowledged=status.acknowledged,
        lost=status.lost,
        missed=status.missed,
        recovery_point_seconds=status.lost_seconds,
        recovery_time_seconds=status.restored,
        equal_objects=status.objects if status.restored is not None else None,
        message=status.message or None,
        left=messages(status.left),
    )


def _served(row: DrillRow) -> str | None:
    return "always" if row.served_again_seconds == 0 and _over(row) else _seconds(row.served_again_seconds)


def _over(row: DrillRow) -> bool:
    return row.phase in (DrillPhase.PASSED, DrillPhase.FAILED)


def _seconds(seconds: float | None) -> str | None:
    return None if seconds is None else f"{seconds:.1f} s"


_COLUMNS: tuple[Column[DrillRow], ...] = (
    Column("drill", lambda row: row.name),
    Column("fail", lambda row: row.fail),
    Column("result", lambda row: row.phase.lower()),
    Column("detected", lambda row: _seconds(row.detected_seconds)),
    Column("served again", _served),
    Column("redundant", lambda row: _seconds(row.redundant_seconds)),
    Column("failed", lambda row: row.failed if _over(row) else None),
    Column("lost writes", lambda row: row.lost if _over(row) else None),
    Column("age", lambda row: since(row.started_at)),
    Column("requests", lambda row: row.requests if _over(row) else None, wide=True),
    Column("last failure", lambda row: _seconds(row.last_failure_seconds), wide=True),
    Column("last failed sent", lambda row: _seconds(row.last_failed_sent_seconds), wide=True),
    Column("undone", lambda row: _seconds(row.undone_seconds), wide=True),
    Column(
        "longest stall", lambda row: f"{1000 * row.longest_stall_seconds:.0f} ms" if _over(row) else None, wide=True
    ),
    Column("struck", lambda row: "; ".join(row.reasons), wide=True),
    Column("recovery point", lambda row: _seconds(row.recovery_point_seconds), wide=True),
    Column("recovery time", lambda row: _seconds(row.recovery_time_seconds), wide=True),
)
_RESTORE_COLUMNS: tuple[Column[DrillRow], ...] = (
    Column("drill", lambda row: row.name),
    Column("fail", lambda row: row.fail),
    Column("result", lambda row: row.phase.lower()),
    Column("recovery point", lambda row: _seconds(row.recovery_point_seconds)),
    Column("recovery time", lambda row: _seconds(row.recovery_time_seconds)),
    Column("equal objects", lambda row: row.equal_objects),
)
