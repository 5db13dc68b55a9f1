"""Commands on the replicas of a plane: list, replace, cordon, uncordon."""

from __future__ import annotations

from typing import Annotated

import typer

from quarterdeck.api.base import instant
from quarterdeck.api.output.operations import ChangeResult
from quarterdeck.api.output.planes import ReplicaRow
from quarterdeck.app import Replace, ReplicaFacts
from quarterdeck.cli.ages import since
from quarterdeck.cli.arguments import Detach, Name, OutputOption, Yes
from quarterdeck.cli.change_request import change, nothing_to_do, planned
from quarterdeck.cli.context import Output, go_inside, look
from quarterdeck.cli.groups import command, group
from quarterdeck.cli.open_home import call, go_inside_to_drive
from quarterdeck.cli.output import Column, done, known, show

app = group("List, replace and cordon the replicas of a plane.")


def _current(row: ReplicaRow) -> str:
    words = {True: "yes", False: "no, to be changed", None: "unknown"}
    current = "no, to be replaced" if row.to_be_replaced else words[row.current]
    return f"{current}, cordoned" if row.cordoned else current


_COLUMNS: tuple[Column[ReplicaRow], ...] = (
    Column("replica", lambda row: row.name),
    Column("site", lambda row: row.site),
    Column("zone", lambda row: row.zone),
    Column("machine", lambda row: row.machine),
    Column("member", lambda row: row.member),
    Column("health", lambda row: row.health),
    Column("ready", lambda row: known(row.ready)),
    Column("revision", lambda row: row.revision),
    Column("current", _current),
    Column("age", lambda row: since(row.created_at)),
    Column("volumes", lambda row: "reattachable" if row.reattachable else "local", wide=True),
)


@command(app, "replica list alpha", name="list")
def list_(name: Name, output: OutputOption = Output.TABLE) -> None:
    """List the replicas of a plane with their machines, revisions and health."""
    go_inside(name)
    rows = [_row(each) for each in look(lambda looks: looks.replicas(name))]
    show(rows, _COLUMNS, output, empty=f"plane {name} has no replicas yet")


def _row(fact: ReplicaFacts) -> ReplicaRow:
    return ReplicaRow(
        name=fact.name,
        site=fact.site,
        zone=fact.zone,
        machine=fact.machine,
        member=fact.member,
        health=fact.health or None,
        ready=fact.ready,
        revision=fact.revision or None,
        current=fact.current,
        to_be_replaced=fact.condemned,
        cordoned=bool(fact.cordoned),
        reason=fact.cordoned or None,
        reattachable=fact.reattachable,
        created_at=instant(fact.since) if fact.since is not None else None,
    )


@command(app, "replica replace alpha east-1", "replica replace alpha --detach")
def replace(
    name: Name,
    replica: Annotated[
        str | None, typer.Argument(help="The replica (default: all replicas, one after another).", show_default=False)
    ] = None,
    yes: Yes = False,
    detached: Detach = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Replace a replica with a new one, even a healthy one."""
    go_inside_to_drive(name)
    examined = planned(Replace(name, replica))
    which = f"replica {replica}" if replica is not None else "all replicas"
    if not examined.needed:
        text = f"{which} of plane {name} is to be replaced already: see 'wait {name}'"
        nothing_to_do(examined, "replace", text, output)
        return
    change(examined, "replace", f"replace {which} of plane {name}?", yes=yes, detached=detached, output=output)


WhichReplica = Annotated[str, typer.Argument(help="The replica's name.", show_default=False)]


@command(app, "replica cordon alpha east-1")
def cordon(name: Name, replica: WhichReplica, output: OutputOption = Output.TABLE) -> None:
    """Exclude a replica from healing and changes until it is uncordoned."""
    news = call(lambda face: face.cordon(name, replica))
    text = f"replica {replica} of plane {name} is cordoned{'' if news else ' already'}"
    done(_changed(name, replica, "cordon", news=news), output, text)


@command(app, "replica uncordon alpha east-1")
def uncordon(name: Name, replica: WhichReplica, output: OutputOption = Output.TABLE) -> None:
    """Remove the cordon of a replica."""
    news = call(lambda face: face.uncordon(name, replica))
    text = f"replica {replica} of plane {name} {'is cordoned no more' if news else 'was not cordoned'}"
    done(_changed(name, replica, "uncordon", news=news), output, text)


def _changed(plane: str, replica: str, action: str, *, news: bool) -> ChangeResult:
    return ChangeResult(resource="replica", name=replica, plane=plane, action=action, changed=news)
