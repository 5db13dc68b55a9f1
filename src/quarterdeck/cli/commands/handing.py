"""Commands that hand sets of controllers from one manager to another: plan, move, rollback."""

from __future__ import annotations

from typing import Annotated

import typer

from quarterdeck.api.plane.controllers import Manager
from quarterdeck.app import Examined, HandBack, HandOver
from quarterdeck.cli.arguments import Detach, Name, NoTrial, OutputOption, Yes
from quarterdeck.cli.commands.moves import change, planned
from quarterdeck.cli.context import Output, out, run
from quarterdeck.cli.opening import go_inside_to_drive
from quarterdeck.cli.plan_text import print_examined

SetName = Annotated[str, typer.Option("--set", help="The set's name.", show_default=False)]
From = Annotated[Manager, typer.Option("--from", help="The manager that runs it.", show_default=False)]
To = Annotated[Manager, typer.Option("--to", help="The manager that is to run it.", show_default=False)]
Downtime = Annotated[
    bool,
    typer.Option("--downtime-allowed", help="The managers of all replicas may stop at once: the shorter way."),
]


def plan(
    name: Name,
    which: SetName,
    source: From,
    target: To,
    downtime_allowed: Downtime = False,
    no_trial: NoTrial = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show what handing a set over comes to: every check, and every step. Changes nothing."""
    if examined := _examined(HandOver(name, which, source, target, downtime_allowed), trial=not no_trial):
        print_examined(examined, output)


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
    """Hand a set from one manager to another, while the plane serves: plan, question, progress, report."""
    if examined := _examined(HandOver(name, which, source, target, downtime_allowed), trial=not no_trial):
        question = f"hand set {which} of plane {name} to the {target}?"
        change(examined, question, yes=yes, detached=detached, output=output)


def rollback(
    name: Name,
    which: SetName,
    downtime_allowed: Downtime = False,
    yes: Yes = False,
    detached: Detach = False,
    no_trial: NoTrial = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Hand a set back to the manager that had it before. Possible at any moment."""
    go_inside_to_drive(name)
    examined = run(planned(HandBack(name, which, downtime_allowed), trial=not no_trial))
    change(examined, f"hand set {which} of plane {name} back?", yes=yes, detached=detached, output=output)


def _examined(asked: HandOver, *, trial: bool) -> Examined | None:
    """What it comes to; None, and that is said, where nothing is to be done."""
    go_inside_to_drive(asked.name)
    examined = run(planned(asked, trial=trial))
    if examined.needed:
        return examined
    out.print(f"the {asked.target} runs set {asked.controller_set} of plane {asked.name}, as wanted: nothing to do")
    return None
