"""Recovering a plane whose etcd has lost its quorum for good."""

from __future__ import annotations

from collections.abc import Sequence

import typer

from quarterdeck.api.output.planes import RecoveryResult, SurvivorRow
from quarterdeck.app import LostQuorum, Survivor
from quarterdeck.cli.arguments import Detach, EvenIfOthersLive, Name, OutputOption, Yes
from quarterdeck.cli.context import Output, look
from quarterdeck.cli.groups import command, group
from quarterdeck.cli.open_home import call, go_inside_to_drive
from quarterdeck.cli.output import Column, table
from quarterdeck.cli.work import confirm, wait_for

app = group()

_COLUMNS: tuple[Column[SurvivorRow], ...] = (
    Column("replica", lambda row: row.replica),
    Column("machine", lambda row: row.machine),
    Column("term", lambda row: row.term),
    Column("committed", lambda row: row.committed),
    Column("applied", lambda row: row.applied),
    Column("revision", lambda row: row.revision),
    Column("hash", lambda row: row.hash),
    Column("chosen", lambda row: "yes" if row.chosen else "no"),
)


@command(app, "recover alpha")
def recover(
    name: Name,
    even_if_others_live: EvenIfOthersLive = False,
    yes: Yes = False,
    detached: Detach = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Recover a plane that lost its etcd quorum for good from a surviving member. Old data is kept."""
    go_inside_to_drive(name)
    lost = look(lambda looks: looks.lost_quorum(name))
    result = _result(lost)
    if output.for_people:
        table(result.survivors, _COLUMNS)
    for line in _lines(lost):
        typer.echo(line, err=True)
    confirm(f"begin epoch {lost.epoch} of the etcd of plane {name}, and give up what only the others have?", yes=yes)
    call(lambda face: face.recover(lost, even_if_others_live=even_if_others_live))
    text = f"plane {name} is settled again; its old data is kept on its machines: see 'events {name}'"
    wait_for(result, text, detached=detached, output=output)


def _result(lost: LostQuorum) -> RecoveryResult:
    return RecoveryResult(
        name=lost.name,
        epoch=lost.epoch,
        survivors=tuple(map(_row, lost.survivors)),
        dead=lost.dead,
        unreachable=lost.cut_off,
        message=lost.loss,
    )


def _row(found: Survivor) -> SurvivorRow:
    return SurvivorRow(
        replica=found.replica,
        machine=found.machine,
        term=found.term,
        committed=found.committed,
        applied=found.applied,
        revision=found.revision,
        hash=f"{found.hash:08x}" if found.hash is not None else None,
        chosen=found.chosen,
    )


def absent_lines(dead: Sequence[str], cut_off: Sequence[str], *, others_may_live: bool) -> list[str]:
    """The voters that are not there."""
    lines = [f"off, or without their data: {', '.join(dead)}"] if dead else []
    if cut_off:
        lives = ", and may serve others" if others_may_live else ""
        lines.append(f"do not answer{lives}: {', '.join(cut_off)}")
    return lines


def _lines(lost: LostQuorum) -> list[str]:
    """What to know before one consents."""
    lines = absent_lines(lost.dead, lost.cut_off, others_may_live=lost.others_may_live)
    best = next(each.replica for each in lost.survivors if each.chosen)
    lines.append(f"{best} is chosen: it has applied the most of what was committed")
    if lost.differ:
        lines.append(
            f"{', '.join(lost.differ)} has other data than {best} up to the same revision: one of them is wrong"
        )
    if lost.may_return:
        lines.append(
            f"before that the site is asked to have {', '.join(lost.may_return)} elsewhere, with all data: "
            "then nothing is lost, and no epoch begins"
        )
    if lost.instead:
        lines.append(lost.instead)
    return [*lines, f"lost: {lost.loss}"]
