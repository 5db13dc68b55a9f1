"""Failover of a plane that has lost its site to its standby."""

from __future__ import annotations

from typing import Annotated

import typer

from quarterdeck.api.output.planes import FailoverResult
from quarterdeck.app import LostSite
from quarterdeck.cli.arguments import Detach, EvenIfOthersLive, Name, OutputOption, Yes
from quarterdeck.cli.commands.recovery import absent_lines
from quarterdeck.cli.context import Output, look
from quarterdeck.cli.groups import command, group
from quarterdeck.cli.open_home import call, go_inside_to_drive
from quarterdeck.cli.work import confirm, wait_for

app = group()

To = Annotated[str, typer.Option("--to", help="The site of the standby.")]
StandbyBack = Annotated[
    bool,
    typer.Option("--standby-back", help="Give the plane a standby at its former site, for when that is back."),
]


@command(app, "failover alpha --to west")
def failover(
    name: Name,
    to: To,
    even_if_others_live: EvenIfOthersLive = False,
    standby_back: StandbyBack = False,
    yes: Yes = False,
    detached: Detach = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Continue a plane that lost its site from its standby, at the site of that. Old data is kept.

    What comes back of the former site is stopped, and stays off.
    """
    go_inside_to_drive(name)
    lost = look(lambda looks: looks.lost_site(name, to))
    for line in _lines(lost):
        typer.echo(line, err=True)
    confirm(f"begin epoch {lost.epoch} of the etcd of plane {name} at site {to}, from {lost.replica}?", yes=yes)
    call(lambda face: face.etcd.fail_over(lost, even_if_others_live=even_if_others_live, standby_back=standby_back))
    text = f"plane {name} is at site {to}; its old data is kept on its machines: see 'events {name}'"
    wait_for(_result(lost), text, detached=detached, output=output)


def _result(lost: LostSite) -> FailoverResult:
    return FailoverResult(
        name=lost.name,
        epoch=lost.epoch,
        site=lost.to,
        standby=lost.replica,
        revision=lost.revision,
        last_seen_revision=lost.seen,
        dead=lost.dead,
        unreachable=lost.cut_off,
        message=lost.loss,
    )


def _lines(lost: LostSite) -> list[str]:
    """What to know before one consents."""
    return [*absent_lines(lost.dead, lost.cut_off, others_may_live=lost.others_may_live), f"lost: {lost.loss}"]
