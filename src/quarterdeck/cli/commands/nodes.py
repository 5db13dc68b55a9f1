"""Commands on the worker nodes of a plane: tokens to join with, the list of nodes, certificates that wait."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer

from quarterdeck.api.output.operations import ChangeResult
from quarterdeck.api.output.planes import ApprovalRow, NewTokenResult, NodeRow, TokenRow
from quarterdeck.app import NewToken, NodeFacts
from quarterdeck.cli.ages import since
from quarterdeck.cli.arguments import Name, OutputOption
from quarterdeck.cli.context import Output, err, go_inside, plain
from quarterdeck.cli.durations import duration_option
from quarterdeck.cli.groups import command, group
from quarterdeck.cli.open_home import call
from quarterdeck.cli.output import Column, done, emit, known, show
from quarterdeck.errors import InvalidInput
from quarterdeck.files import write_secret

app = group("List worker nodes, make join tokens, approve certificates.")
_tokens = group(
    "Create, list and delete join tokens ('token NAME' is short for 'token create NAME').", default="create"
)
app.add_typer(_tokens, name="token")


_NODE_COLUMNS: tuple[Column[NodeRow], ...] = (
    Column("node", lambda row: row.name),
    Column("ready", lambda row: known(row.ready) + ("" if row.schedulable else ", cordoned")),
    Column("version", lambda row: row.version),
    Column("addresses", lambda row: row.addresses),
    Column("age", lambda row: since(row.created_at)),
)


@command(app, "node list alpha", name="list")
def list_(name: Name, output: OutputOption = Output.TABLE) -> None:
    """List the nodes that have joined a plane."""
    go_inside(name)
    rows = [_row(each) for each in call(lambda face: face.nodes.list(name))]
    empty = f"no node has joined plane {name} yet: see 'node token {name}'"
    show(rows, _NODE_COLUMNS, output, empty=empty)


def _row(node: NodeFacts) -> NodeRow:
    return NodeRow(
        name=node.name,
        ready=node.ready,
        schedulable=node.schedulable,
        version=node.version,
        addresses=node.addresses,
        created_at=node.since,
    )


@command(app, "node approve alpha")
def approve(name: Name, output: OutputOption = Output.TABLE) -> None:
    """Approve the serving certificates that nodes ask for, as 'serve' does by itself."""
    go_inside(name)
    rows = [
        ApprovalRow(name=each.request, node=each.node, approved=not each.why, message=each.why or None)
        for each in call(lambda face: face.nodes.approve(name))
    ]

    def text() -> None:
        for each in rows:
            plain(f"{each.name} of {each.node}: {'approved' if each.approved else f'left to you: {each.message}'}")
        if not rows:
            plain(f"no certificate of plane {name} waits")

    emit(rows, output, text)


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
            message = f"token {made.id} holds until {made.ends:%F %T %Z}: 'node token delete {name} {made.id}' ends it"
            plain(message, err)

    emit(_result(made), output, text)


def _result(made: NewToken) -> NewTokenResult:
    return NewTokenResult(
        name=made.id,
        token=made.token,
        expires_at=made.ends,
        server=made.server,
        ca_cert_hash=made.hash,
        join_command=made.command,
    )


_TOKEN_COLUMNS: tuple[Column[TokenRow], ...] = (
    Column("token", lambda row: row.name),
    Column("until", lambda row: _until(row.expires_at)),
    Column("uses", lambda row: row.uses),
    Column("description", lambda row: row.message),
)


@command(_tokens, "node token list alpha", name="list")
def list_tokens(name: Name, output: OutputOption = Output.TABLE) -> None:
    """List the join tokens of a plane without their secrets."""
    go_inside(name)
    rows = [
        TokenRow(name=each.id, expires_at=each.ends, uses=each.uses, message=each.description)
        for each in call(lambda face: face.nodes.tokens(name))
    ]
    show(rows, _TOKEN_COLUMNS, output, empty=f"plane {name} has no tokens")


def _until(moment: datetime | None) -> str:
    if moment is None:
        return "for ever"
    return f"{moment:%F %T}, over" if moment <= datetime.now(UTC) else f"{moment:%F %T}"


@command(_tokens, "node token delete alpha abcdef")
def delete(
    name: Name,
    token: Annotated[str, typer.Argument(help="The token's id: the six characters before the dot.")],
    output: OutputOption = Output.TABLE,
) -> None:
    """Revoke a join token. Nodes that have joined with it stay."""
    if "." in token:
        seen = "that is a whole token, which is in the list of processes now"
        raise InvalidInput(f"deleting a token of plane {name}", seen, "give its id alone, the part before the dot")
    go_inside(name)
    call(lambda face: face.nodes.delete_token(name, token))
    result = ChangeResult(resource="token", name=token, plane=name, action="delete", changed=True)
    done(result, output, f"token {token} of plane {name} is deleted")
