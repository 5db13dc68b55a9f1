"""Commands on sets of controllers: list, plan, move, rollback, verify."""

from __future__ import annotations

from typing import Annotated

import typer

from quarterdeck.api.output.controllers import ControllerSetRow
from quarterdeck.api.plane.controllers import ControllerProgram
from quarterdeck.app import Examined, HandBack, HandOver, SetHeld
from quarterdeck.cli.arguments import Detach, Name, NoTrial, OutputOption, UnnamedOption, Yes
from quarterdeck.cli.change_request import change, planned
from quarterdeck.cli.commands.verification import verify
from quarterdeck.cli.context import Output, UnnamedOutput, err, go_inside, look, plain
from quarterdeck.cli.groups import command, group
from quarterdeck.cli.open_home import go_inside_to_drive
from quarterdeck.cli.operation_rows import changed
from quarterdeck.cli.output import Column, done, show
from quarterdeck.cli.plan_text import print_examined


def _holder(row: ControllerSetRow) -> str:
    known = " of ".join(filter(None, (row.manager, row.replica)))
    return known or ("a stranger" if row.identity else "nobody")


_COLUMNS: tuple[Column[ControllerSetRow], ...] = (
    Column("set", lambda row: row.name),
    Column("owner", lambda row: row.owner),
    Column("guarded by", lambda row: row.guarded_by),
    Column("held by", _holder),
    Column("since", lambda row: f"{row.acquired_at:%F %T}Z" if row.acquired_at is not None else None),
    Column("renewed", lambda row: _ago(row.renewed_seconds_ago)),
    Column("transitions", lambda row: row.transitions),
    Column("lock", lambda row: row.lock, wide=True),
    Column("controllers", lambda row: row.controllers, wide=True),
    Column("identity", lambda row: row.identity, wide=True),
)

SetName = Annotated[str, typer.Option("--set", help="The controller set's name.", show_default=False)]
From = Annotated[
    ControllerProgram, typer.Option("--from", help="The manager that runs the set now.", show_default=False)
]
To = Annotated[ControllerProgram, typer.Option("--to", help="The manager that takes the set over.", show_default=False)]
Downtime = Annotated[
    bool,
    typer.Option(
        "--downtime-allowed",
        help="Allow the managers of all replicas to stop at the same time, which takes fewer steps.",
    ),
]

app = group("Move sets of controllers from one manager to another.")


@command(app, "controllers list alpha", name="list")
def list_(name: Name, output: OutputOption = Output.TABLE) -> None:
    """List the controller sets of a plane with their owners, locks and holders.

    Exits 1 if a set is not run by its owner.
    """
    go_inside(name)
    found = look(lambda looks: looks.controllers(name))
    rows = [_row(each) for each in found]
    show(rows, _COLUMNS, output, empty=f"plane {name} declares no sets of controllers")
    for each in found:
        for why in each.why:
            plain(f"set {each.name}: {why}", err)
    if not all(each.well for each in found):
        raise typer.Exit(1)


def _row(found: SetHeld) -> ControllerSetRow:
    return ControllerSetRow(
        name=found.name,
        lock=found.lock,
        owner=found.owner.value,
        guarded_by=found.guarded_by,
        manager=found.manager.value if found.manager is not None else None,
        replica=found.replica or None,
        identity=found.identity or None,
        transitions=found.transitions,
        controllers=found.controllers,
        acquired_at=found.since,
        renewed_seconds_ago=found.renewed_ago,
        held_by_owner=found.well,
        reasons=found.why,
    )


def _ago(seconds: float | None) -> str | None:
    return f"{max(0.0, seconds):.0f}s ago" if seconds is not None else None


@command(app, "controllers plan alpha --set ipam --from kube-controller-manager --to cloud-controller-manager")
def plan(
    name: Name,
    which: SetName,
    source: From,
    target: To,
    downtime_allowed: Downtime = False,
    no_trial: NoTrial = False,
    output: UnnamedOption = UnnamedOutput.TABLE,
) -> None:
    """Show the checks and steps of moving a controller set, and change nothing."""
    examined = _examined(HandOver(name, which, source, target, downtime_allowed), trial=not no_trial)
    if not examined.needed and output.for_people:
        plain(_runs_already(name, which, target))
    else:
        print_examined(examined, output)


@command(app, "controllers move alpha --set ipam --from kube-controller-manager --to cloud-controller-manager")
def move(
    name: Name,
    which: SetName,
    source: From,
    target: To,
    downtime_allowed: Downtime = False,
    yes: Yes = False,
    detached: Detach = False,
    no_trial: NoTrial = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Move a controller set from one manager to another while the plane serves."""
    examined = _examined(HandOver(name, which, source, target, downtime_allowed), trial=not no_trial)
    if not examined.needed:
        done(changed(name, "move", news=False), output, _runs_already(name, which, target))
        return
    question = f"hand set {which} of plane {name} to the {target}?"
    change(examined, "move", question, yes=yes, detached=detached, output=output)


@command(app, "controllers rollback alpha --set ipam")
def rollback(
    name: Name,
    which: SetName,
    downtime_allowed: Downtime = False,
    yes: Yes = False,
    detached: Detach = False,
    no_trial: NoTrial = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Move a controller set back to the manager that ran it before. Safe at any moment."""
    go_inside_to_drive(name)
    examined = planned(HandBack(name, which, downtime_allowed), trial=not no_trial)
    change(examined, "rollback", f"hand set {which} of plane {name} back?", yes=yes, detached=detached, output=output)


def _examined(asked: HandOver, *, trial: bool) -> Examined:
    go_inside_to_drive(asked.name)
    return planned(asked, trial=trial)


def _runs_already(plane: str, which: str, target: ControllerProgram) -> str:
    return f"the {target} runs set {which} of plane {plane} already: nothing to do"


command(app, "controllers verify alpha", "controllers verify alpha --since 2h")(verify)
