"""Recovering a plane whose etcd has lost its quorum for good."""

from __future__ import annotations

from typing import Annotated

import typer
from pydantic import JsonValue

from quarterdeck.app import LostQuorum, Survivor
from quarterdeck.cli.arguments import Detach, Name, OutputOption, Yes
from quarterdeck.cli.context import Output, look, out
from quarterdeck.cli.groups import command, group
from quarterdeck.cli.open_home import call, go_inside_to_drive
from quarterdeck.cli.output import show
from quarterdeck.cli.work import confirm, detach, follow

app = group()

_COLUMNS = ("replica", "machine", "term", "committed", "applied", "revision", "hash", "chosen")


@command(app, "recover alpha")
def recover(
    name: Name,
    even_if_others_live: Annotated[
        bool,
        typer.Option(
            "--even-if-others-live",
            help="Go on although members that do not answer may still serve others. You are sure that they are gone.",
        ),
    ] = False,
    yes: Yes = False,
    detached: Detach = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Recover a plane that lost its etcd quorum for good from a surviving member. Old data is kept."""
    go_inside_to_drive(name)
    lost = look(lambda looks: looks.lost_quorum(name))
    show([_row(each, output) for each in lost.survivors], _COLUMNS, output)
    for line in _lines(lost):
        typer.echo(line, err=True)
    confirm(f"begin epoch {lost.epoch} of the etcd of plane {name}, and give up what only the others have?", yes=yes)
    call(lambda face: face.recover(lost, even_if_others_live=even_if_others_live))
    if detached:
        detach(name)
        return
    follow(name)
    out.print(f"plane {name} is settled again; its old data is kept on its machines: see 'events {name}'")


def _row(found: Survivor, output: Output) -> dict[str, JsonValue]:
    return {
        "replica": found.replica,
        "machine": found.machine,
        "term": found.term,
        "committed": found.committed,
        "applied": found.applied,
        "revision": found.revision,
        "hash": f"{found.hash:08x}" if found.hash is not None else None,
        "chosen": found.chosen if output.is_document else "yes" if found.chosen else "no",
    }


def _lines(lost: LostQuorum) -> list[str]:
    """What to know before one consents."""
    said = [f"off, or without their data: {', '.join(lost.dead)}"] if lost.dead else []
    if lost.cut_off:
        lives = ", and may serve others" if lost.others_may_live else ""
        said.append(f"do not answer{lives}: {', '.join(lost.cut_off)}")
    best = next(each.replica for each in lost.survivors if each.chosen)
    said.append(f"{best} is chosen: it has applied the most of what was committed")
    if lost.differ:
        said.append(
            f"{', '.join(lost.differ)} has other data than {best} up to the same revision: one of them is wrong"
        )
    if lost.may_return:
        said.append(
            f"before that the site is asked to have {', '.join(lost.may_return)} elsewhere, with all data: "
            "then nothing is lost, and no epoch begins"
        )
    return [*said, f"lost: {lost.loss}"]
