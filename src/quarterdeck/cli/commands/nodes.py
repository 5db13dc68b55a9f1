"""Commands on the worker nodes of a plane: tokens to join with, the list of nodes, certificates that wait."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import JsonValue
from typer.core import TyperGroup
from typing_extensions import override

from quarterdeck.api.values import seconds_in
from quarterdeck.app import NewToken, NodeFacts, TokenFacts
from quarterdeck.cli.arguments import Name, OutputOption
from quarterdeck.cli.context import Output, err, go_inside, out, run
from quarterdeck.cli.opening import opened
from quarterdeck.cli.output import show, show_one
from quarterdeck.cli.plane_text import age
from quarterdeck.errors import InvalidInput
from quarterdeck.files import write_secret

_CREATE = "create"


class _Tokens(TyperGroup):
    """``token NAME`` makes one, as ``token create NAME`` does."""

    @override
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Have words that name no command, and ask for no help, be those of the first one."""
        if args and args[0] not in self.commands and args[0] not in ("--help", "-h"):
            args = [_CREATE, *args]
        return super().parse_args(ctx, args)


app = typer.Typer(help="The worker nodes of a plane.", no_args_is_help=True)
_tokens = typer.Typer(
    cls=_Tokens,
    help="Tokens that nodes join with: 'token NAME' makes one, and prints how a machine joins with it.",
    no_args_is_help=True,
)
app.add_typer(_tokens, name="token")


@app.command("list")
def list_(name: Name, output: OutputOption = Output.TABLE) -> None:
    """List the nodes that have joined a plane, as it has them now."""
    go_inside(name)

    async def ask() -> tuple[NodeFacts, ...]:
        async with opened() as quarterdeck:
            return await quarterdeck.nodes.list(name)

    found = run(ask())
    if not found and output in (Output.TABLE, Output.WIDE):
        out.print(f"no node has joined plane {name} yet: see 'node token {name}'")
        return
    show([_row(each, output) for each in found], ("node", "ready", "version", "addresses", "age"), output)


def _row(node: NodeFacts, output: Output) -> dict[str, JsonValue]:
    row: dict[str, JsonValue] = {"node": node.name, "version": node.version, "addresses": list(node.addresses)}
    if output in (Output.JSON, Output.YAML):
        since = node.since.isoformat() if node.since is not None else None
        return {**row, "ready": node.ready, "schedulable": node.schedulable, "since": since}
    ready = {True: "yes", False: "no", None: "unknown"}[node.ready]
    ready += "" if node.schedulable else ", cordoned"
    return {**row, "ready": ready, "age": age(node.since.timestamp()) if node.since is not None else None}


@app.command()
def approve(name: Name) -> None:
    """Approve certificates that nodes ask for to serve logs and exec with, as 'serve' does by itself."""
    go_inside(name)

    async def ask() -> list[tuple[str, str, str]]:
        async with opened() as quarterdeck:
            return [(each.request, each.node, each.why) for each in await quarterdeck.nodes.approve(name)]

    found = run(ask())
    for request, node, why in found:
        said = f"left to you: {why}" if why else "approved"
        out.print(f"{request} of {node}: {said}", highlight=False, markup=False, soft_wrap=True)
    if not found:
        out.print(f"no certificate of plane {name} waits")


@_tokens.command(_CREATE)
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
    try:
        lasts = timedelta(seconds=seconds_in(ttl))
    except (ValueError, OverflowError) as error:
        raise InvalidInput(f"making a token for plane {name}", f"--ttl: {error}", "give a time such as 24h") from None

    async def ask() -> NewToken:
        async with opened() as quarterdeck:
            return await quarterdeck.nodes.make_token(name, ttl=lasts, description=description)

    made = run(ask())
    if kubeconfig is not None:
        write_secret(kubeconfig, made.kubeconfig.encode())
    if output in (Output.JSON, Output.YAML):
        show_one(_told(made), output)
        return
    if kubeconfig is None or print_join_command:
        out.print(made.command, highlight=False, markup=False, soft_wrap=True)
    if not print_join_command:
        said = f"token {made.id} holds until {made.ends:%F %T %Z}: 'node token delete {name} {made.id}' ends it"
        err.print(said, highlight=False, markup=False, soft_wrap=True)


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

    async def ask() -> tuple[TokenFacts, ...]:
        async with opened() as quarterdeck:
            return await quarterdeck.nodes.tokens(name)

    found = run(ask())
    if not found and output in (Output.TABLE, Output.WIDE):
        out.print(f"plane {name} has no tokens")
        return
    show([_token(each, output) for each in found], ("token", "until", "uses", "description"), output)


def _token(token: TokenFacts, output: Output) -> dict[str, JsonValue]:
    row: dict[str, JsonValue] = {"token": token.id, "uses": list(token.uses), "description": token.description}
    if output in (Output.JSON, Output.YAML):
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

    async def ask() -> None:
        async with opened() as quarterdeck:
            await quarterdeck.nodes.delete_token(name, token)

    run(ask())
    out.print(f"token {token} of plane {name} is deleted")
