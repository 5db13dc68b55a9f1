"""Commands on the replicas of a plane: list, replace, cordon, uncordon."""

from __future__ import annotations

from typing import Annotated

import typer
from pydantic import JsonValue

from quarterdeck.app import Replace, ReplicaFacts
from quarterdeck.cli.arguments import Detach, Name, OutputOption, Yes
from quarterdeck.cli.change_request import change, planned
from quarterdeck.cli.context import Output, go_inside, look, out
from quarterdeck.cli.groups import command, group
from quarterdeck.cli.open_home import call, go_inside_to_drive
from quarterdeck.cli.output import show
from quarterdeck.cli.plane_text import age

app = group("List, replace and cordon the replicas of a plane.")


@command(app, "replica list alpha", name="list")
def list_(name: Name, output: OutputOption = Output.TABLE) -> None:
    """List the replicas of a plane with their machines, revisions and health."""
    go_inside(name)
    rows = [_row(each, output) for each in look(lambda looks: looks.replicas(name))]
    columns = ("replica", "site", "zone", "machine", "member", "health", "ready", "revision", "current", "age")
    show(rows, columns, output, wide=("volumes",), empty=f"plane {name} has no replicas yet")


def _row(fact: ReplicaFacts, output: Output) -> dict[str, JsonValue]:
    current: JsonValue = fact.current
    if not output.is_document:
        words = {True: "yes", False: "no, to be changed", None: None}
        current = "no, to be replaced" if fact.condemned else words[fact.current]
        current = f"{current or 'unknown'}, cordoned" if fact.cordoned else current
    ready: JsonValue = fact.ready
    if not output.is_document:
        ready = {True: "yes", False: "no", None: "unknown"}[fact.ready]
    row: dict[str, JsonValue] = {
        "replica": fact.name,
        "site": fact.site,
        "zone": fact.zone,
        "machine": fact.machine,
        "member": fact.member,
        "health": fact.health or None,
        "ready": ready,
        "revision": fact.revision or None,
        "current": current,
        "volumes": "reattachable" if fact.reattachable else "local",
    }
    if output.is_document:
        return {**row, "toBeReplaced": fact.condemned, "cordoned": fact.cordoned or None, "since": fact.since}
    return {**row, "age": age(fact.since) if fact.since is not None else None}


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
        out.print(f"{which} of plane {name} is to be replaced already: see 'wait {name}'")
        return
    change(examined, f"replace {which} of plane {name}?", yes=yes, detached=detached, output=output)


WhichReplica = Annotated[str, typer.Argument(help="The replica's name.", show_default=False)]


@command(app, "replica cordon alpha east-1")
def cordon(name: Name, replica: WhichReplica) -> None:
    """Exclude a replica from healing and changes until it is uncordoned."""
    news = call(lambda face: face.cordon(name, replica))
    out.print(f"replica {replica} of plane {name} is cordoned{'' if news else ' already'}")


@command(app, "replica uncordon alpha east-1")
def uncordon(name: Name, replica: WhichReplica) -> None:
    """Remove the cordon of a replica."""
    news = call(lambda face: face.uncordon(name, replica))
    out.print(f"replica {replica} of plane {name} {'is cordoned no more' if news else 'was not cordoned'}")
