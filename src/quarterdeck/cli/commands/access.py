"""The command that gives people access to a plane: kubeconfig."""

from __future__ import annotations

import sys
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer

from quarterdeck.app import IssuedKubeconfig, requested_access
from quarterdeck.cli.arguments import Name
from quarterdeck.cli.context import err, plain
from quarterdeck.cli.durations import duration_option
from quarterdeck.cli.groups import command, group
from quarterdeck.cli.open_home import call
from quarterdeck.files import write_secret

app = group()


@command(
    app,
    "kubeconfig alpha --output-file alpha.kubeconfig",
    "kubeconfig alpha --user ada@example.com --group developers --for 8h",
)
def kubeconfig(
    name: Name,
    user: Annotated[str | None, typer.Option(help="For this user, in place of an administrator.")] = None,
    group: Annotated[list[str] | None, typer.Option(help="A group of the user; can be repeated.")] = None,
    for_: Annotated[
        float | None, duration_option("--for", "How long it is valid (default: 30d; with --break-glass 1h).")
    ] = None,
    break_glass: Annotated[
        bool,
        typer.Option(
            "--break-glass",
            help="In the group system:masters: all permissions, whatever RBAC says. An event records it.",
        ),
    ] = False,
    file: Annotated[Path | None, typer.Option("--output-file", help="Write it to this file, mode 0600.")] = None,
) -> None:
    """Print a kubeconfig for kubectl. It stays valid during and after a migration."""
    wanted = requested_access(
        user=user,
        groups=tuple(group or ()),
        lifetime=timedelta(seconds=for_) if for_ is not None else None,
        without_rbac=break_glass,
    )
    made = call(lambda face: face.kubeconfig(name, wanted))
    _explain(name, made)
    if file is None:
        sys.stdout.write(made.text)
    else:
        write_secret(file, made.text.encode())


def _explain(plane: str, made: IssuedKubeconfig) -> None:
    """Whose it is, until when, and what there is to know about its permissions: on stderr, beside the kubeconfig."""
    groups = f" in {', '.join(made.access.groups)}" if made.access.groups else ""
    plain(f"for {made.access.user}{groups}, until {made.ends:%F %T %Z}", err)
    if made.access.break_glass:
        plain("warning: nothing can revoke this kubeconfig before it expires; keep it from others", err)
    if not made.bound:
        plain(
            f"warning: the plane does not have the ClusterRoleBinding quarterdeck:cluster-admins yet, without which"
            f" this kubeconfig has no permissions; 'wait {plane}' makes it",
            err,
        )
