"""Commands on the worker nodes of a plane: tokens to join with, the list of nodes, certificates that wait."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from pydantic import JsonValue

from quarterdeck.app import NewToken, NodeFacts, TokenFacts
from quarterdeck.cli.arguments import Name, OutputOption, time_of
from quarterdeck.cli.context import Output, err, go_inside, out, plain
from quarterdeck.cli.groups import group
from quarterdeck.cli.open_home import call
from quarterdeck.cli.output import emit, show
from quarterdeck.cli.plane_text import age
from quarterdeck.errors import InvalidInput
from quarterdeck.files import write_secret

app = group("The worker nodes of a plane.")
_tokens = group(
    "Tokens that nodes join with: 'token NAME' makes one, and prints how a machine joins with it.", default="create"
)
app.add_typer(_tokens, name="token")


@app.command("list")
def list_(name: Name, output: OutputOption = Output.TABLE) -> None:
    """List the nodes that have joined a plane, as it has them now."""
    go_inside(name)
    rows = [_row(each, output) for each in call(lambda face: face.nodes.list(name))]
    empty = f"no node has joined plane {name} yet: see 'node token {name}'"
    show(rows, ("node", "ready", "version", "addresses", "age"), output, empty=empty)


def _row(node: NodeFacts, output: Output) -> dict[str, JsonValue]:
    row: dict[str, JsonValue] = {"node": node.name, "version": node.version, "addresses": list(node.addresses)}
    if output.is_document:
        since = node.since.isoformat() if node.since is not None else None
        return {**row, "ready": node.ready, "schedulable": node.schedulable, "since": since}
    ready = {True: "yes", False: "no", None: "unknown"}[node.ready]
    ready += "" if node.schedulable else ", cordoned"
    return {**row, "ready": ready, "age": age(node.since.timestamp()) if node.since is not None else None}


@app.command()
def approve(name: Name) -> None:
    """Approve certificates that nodes ask for to serve logs and exec with, as 'serve' does by itself."""
    go_inside(name)
    found = call(lambda face: face.nodes.approve(name))
    for each in found:
        said = f"left to you: {each.why}" if each.why else "approved"
        plain(f"{each.request} of {each.node}: {said}")
    if not found:
        out.print(f"no certificate of plane {name} waits")


@_tokens.command()
def create(
    name: Name,
    ttl: Annotated[str, typer.Option(help="For how long it holds: 30m, 24h, 7d.")] = "24h",
    description: Annotated[str, typer.Option(help="What it is for, in words.")] = "",
    print_join_command: Annotated[
        bool, typer.Option("--print-join-command", help="Print the command line alone, for scripts.")
    ] = False,
    kubeconfig: Annotated[
        Path | None,
        typer.Option(help="Write what a kubelet without kubeadm bootstraps itself with, 0600.", show_default=False),
    ] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Make a token, and print how a machine joins the plane with it. Whoever has it can add nodes: keep it secret."""
    go_inside(name)
    lasts = time_of(f"making a token for plane {name}", "--ttl", ttl, such_as="24h")
    made = call(lambda face: face.nodes.make_token(name, ttl=lasts, description=description))
    if kubeconfig is not None:
        write_secret(kubeconfig, made.kubeconfig.encode())

    def text() -> None:
        if kubeconfig is None or print_join_command:
            plain(made.command)
        if not print_join_command:
            said = f"token {made.id} holds until {made.ends:%F %T %Z}: 'node token delete {name} {made.id}' ends it"
            plain(said, err)

    emit(_told(made), output, text)


def _told(made: NewToken) -> dict[str, JsonValue]:
    return {
        "id": made.id,
        "token": made.token,
        "expires": made.ends.isoformat(),
        "server": made.server,
        "caCertHash": made.hash,
        "joinCommand": made.command,
    }


@_tokens.command("list")
def list_tokens(name: Name, output: OutputOption = Output.TABLE) -> None:
    """List the tokens of a plane, without what makes them valid."""
    go_inside(name)
    rows = [_token(each, output) for each in call(lambda face: face.nodes.tokens(name))]
    show(rows, ("token", "until", "uses", "description"), output, empty=f"plane {name} has no tokens")


def _token(token: TokenFacts, output: Output) -> dict[str, JsonValue]:
    row: dict[str, JsonValue] = {"token": token.id, "uses": list(token.uses), "description": token.description}
    if output.is_document:
        return {**row, "expires": token.ends.isoformat() if token.ends is not None else None}
    ended = token.ends is not None and token.ends <= datetime.now(UTC)
    until = f"{token.ends:%F %T}" if token.ends is not None else "for ever"
    return {**row, "until": f"{until}, over" if ended else until}


@_tokens.command()
def delete(
    name: Name, token: Annotated[str, typer.Argument(help="Its id: the six characters before the dot.")]
) -> None:
    """Have a token let nobody in any more. Nodes that have joined with it stay."""
    if "." in token:
        seen = "that is a whole token, which is in the list of processes now"
        raise InvalidInput(f"deleting a token of plane {name}", seen, "give its id alone, the part before the dot")
    go_inside(name)
    call(lambda face: face.nodes.delete_token(name, token))
    out.print(f"token {token} of plane {name} is deleted")
