"""Commands on the worker nodes of a plane: tokens to join with, the list of nodes, certificates that wait."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer
from pydantic import JsonValue

from quarterdeck.app import NewToken, NodeFacts, TokenFacts
from quarterdeck.cli.arguments import Name, OutputOption
from quarterdeck.cli.context import Output, err, go_inside, out, plain
from quarterdeck.cli.durations import duration_option
from quarterdeck.cli.groups import command, group
from quarterdeck.cli.open_home import call
from quarterdeck.cli.output import emit, show
from quarterdeck.cli.plane_text import age
from quarterdeck.errors import InvalidInput
from quarterdeck.files import write_secret

app = group("List worker nodes, make join tokens, approve certificates.")
_tokens = group(
    "Create, list and delete join tokens ('token NAME' is short for 'token create NAME').", default="create"
)
app.add_typer(_tokens, name="token")


@command(app, "node list alpha", name="list")
def list_(name: Name, output: OutputOption = Output.TABLE) -> None:
    """List the nodes that have joined a plane."""
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


@command(app, "node approve alpha")
def approve(name: Name) -> None:
    """Approve the serving certificates that nodes ask for, as 'serve' does by itself."""
    go_inside(name)
    found = call(lambda face: face.nodes.approve(name))
    for each in found:
        said = f"left to you: {each.why}" if each.why else "approved"
        plain(f"{each.request} of {each.node}: {said}")
    if not found:
        out.print(f"no certificate of plane {name} waits")


@command(_tokens, "node token alpha", "node token create alpha --ttl 2h --print-join-command")
def create(
    name: Name,
    ttl: Annotated[float, duration_option("--ttl", "How long the token is valid (default: 24h).")] = 24 * 3600.0,
    description: Annotated[str, typer.Option(help="A description for 'token list'.")] = "",
    print_join_command: Annotated[
        bool, typer.Option("--print-join-command", help="Print only the join command, for scripts.")
    ] = False,
    kubeconfig: Annotated[
        Path | None,
        typer.Option(
            help="Write a bootstrap kubeconfig for a kubelet without kubeadm to this file, mode 0600.",
            show_default=False,
        ),
    ] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Create a join token, and print the command that joins a node with it.

    Everyone with the token can add nodes: keep it secret.
    """
    go_inside(name)
    made = call(lambda face: face.nodes.make_token(name, ttl=timedelta(seconds=ttl), description=description))
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


@command(_tokens, "node token list alpha", name="list")
def list_tokens(name: Name, output: OutputOption = Output.TABLE) -> None:
    """List the join tokens of a plane without their secrets."""
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


@command(_tokens, "node token delete alpha abcdef")
def delete(
    name: Name, token: Annotated[str, typer.Argument(help="The token's id: the six characters before the dot.")]
) -> None:
    """Revoke a join token. Nodes that have joined with it stay."""
    if "." in token:
        seen = "that is a whole token, which is in the list of processes now"
        raise InvalidInput(f"deleting a token of plane {name}", seen, "give its id alone, the part before the dot")
    go_inside(name)
    call(lambda face: face.nodes.delete_token(name, token))
    out.print(f"token {token} of plane {name} is deleted")
