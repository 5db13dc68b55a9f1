"""Commands on sets of controllers: list, plan, move, rollback, verify."""

from __future__ import annotations

from typing import Annotated

import typer
from pydantic import JsonValue

from quarterdeck.api.plane.controllers import ControllerProgram
from quarterdeck.app import Examined, HandBack, HandOver, SetHeld
from quarterdeck.cli.arguments import Detach, Name, NoTrial, OutputOption, Yes
from quarterdeck.cli.change_request import change, planned
from quarterdeck.cli.commands.verification import verify
from quarterdeck.cli.context import Output, err, go_inside, look, out, plain
from quarterdeck.cli.groups import command, group
from quarterdeck.cli.open_home import go_inside_to_drive
from quarterdeck.cli.output import show
from quarterdeck.cli.plan_text import print_examined

_COLUMNS = ("set", "owner", "guarded by", "held by", "since", "renewed", "transitions")
_WIDE = ("lock", "controllers", "identity")

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
    rows = [_row(each, output) for each in found]
    show(rows, _COLUMNS, output, wide=_WIDE, empty=f"plane {name} declares no sets of controllers")
    for each in found:
        for why in each.why:
            plain(f"set {each.name}: {why}", err)
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
    if output.is_document:
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


@command(app, "controllers plan alpha --set ipam --from kube-controller-manager --to cloud-controller-manager")
def plan(
    name: Name,
    which: SetName,
    source: From,
    target: To,
    downtime_allowed: Downtime = False,
    no_trial: NoTrial = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show the checks and steps of moving a controller set, and change nothing."""
    if examined := _examined(HandOver(name, which, source, target, downtime_allowed), trial=not no_trial):
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
    if examined := _examined(HandOver(name, which, source, target, downtime_allowed), trial=not no_trial):
        question = f"hand set {which} of plane {name} to the {target}?"
        change(examined, question, yes=yes, detached=detached, output=output)


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
    change(examined, f"hand set {which} of plane {name} back?", yes=yes, detached=detached, output=output)


def _examined(asked: HandOver, *, trial: bool) -> Examined | None:
    """What it comes to; None, and that is said, where nothing is to be done."""
    go_inside_to_drive(asked.name)
    examined = planned(asked, trial=trial)
    if examined.needed:
        return examined
    out.print(f"the {asked.target} runs set {asked.controller_set} of plane {asked.name} already: nothing to do")
    return None


command(app, "controllers verify alpha", "controllers verify alpha --since 2h")(verify)
