"""Commands on the replicas of a plane: list, replace, cordon, uncordon."""

from __future__ import annotations

from typing import Annotated

import typer
from pydantic import JsonValue

from quarterdeck.app import Replace, ReplicaFacts
from quarterdeck.cli.arguments import Detach, Name, OutputOption, Yes
from quarterdeck.cli.commands.moves import change, planned
from quarterdeck.cli.context import Output, go_inside, out, run
from quarterdeck.cli.opening import go_inside_to_drive, opened
from quarterdeck.cli.output import show
from quarterdeck.cli.plane_text import age

app = typer.Typer(help="The replicas of a plane: each is one machine's share of it.", no_args_is_help=True)


@app.command("list")
def list_(name: Name, output: OutputOption = Output.TABLE) -> None:
    """List a plane's replicas: where each is, what it runs, and how it is."""
    go_inside(name)

    async def ask() -> tuple[ReplicaFacts, ...]:
        async with opened() as quarterdeck:
            return await quarterdeck.replicas(name)

    found = run(ask())
    if not found and output in (Output.TABLE, Output.WIDE):
        out.print(f"plane {name} has no replicas yet")
        return
    columns = ("replica", "site", "zone", "machine", "member", "health", "ready", "revision", "current", "age")
    show([_row(each, output) for each in found], columns, output, wide=("volumes",))


def _row(fact: ReplicaFacts, output: Output) -> dict[str, JsonValue]:
    documents = output in (Output.JSON, Output.YAML)
    current: JsonValue = fact.current
    if not documents:
        words = {True: "yes", False: "no, to be changed", None: None}
        current = "no, to be replaced" if fact.condemned else words[fact.current]
        current = f"{current or 'unknown'}, cordoned" if fact.cordoned else current
    ready: JsonValue = fact.ready
    if not documents:
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
    if documents:
        return {**row, "toBeReplaced": fact.condemned, "cordoned": fact.cordoned or None, "since": fact.since}
    return {**row, "age": age(fact.since) if fact.since is not None else None}


@app.command()
def replace(
    name: Name,
    replica: Annotated[
        str | None, typer.Argument(help="Which; all of them without one, one after the other.", show_default=False)
    ] = None,
    yes: Yes = False,
    detached: Detach = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Exchange a replica for a new one, also one that is well: plan, question, progress, report."""
    go_inside_to_drive(name)
    examined = run(planned(Replace(name, replica)))
    which = f"replica {replica}" if replica is not None else "all replicas"
    if not examined.needed:
        out.print(f"{which} of plane {name} is to be replaced already: see 'wait {name}'")
        return
    change(examined, f"replace {which} of plane {name}?", yes=yes, detached=detached, output=output)


WhichReplica = Annotated[str, typer.Argument(help="Which replica.", show_default=False)]


@app.command()
def cordon(name: Name, replica: WhichReplica) -> None:
    """Have a replica left as it is: healing does not touch it, nor does any change, until it is uncordoned."""

    async def ask() -> bool:
        async with opened() as quarterdeck:
            return await quarterdeck.cordon(name, replica)

    out.print(f"replica {replica} of plane {name} is cordoned{'' if run(ask()) else ' already'}")


@app.command()
def uncordon(name: Name, replica: WhichReplica) -> None:
    """Take a replica's cordon back."""

    async def ask() -> bool:
        async with opened() as quarterdeck:
            return await quarterdeck.uncordon(name, replica)

    out.print(f"replica {replica} of plane {name} {'is cordoned no more' if run(ask()) else 'was not cordoned'}")
