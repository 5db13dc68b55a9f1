"""Restoring a plane from a backup."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from quarterdeck.api.output.backups import RestoreResult
from quarterdeck.app.backup.restores import RestorePlan
from quarterdeck.backup.kubernetes.object_changes import MomentDifference
from quarterdeck.cli.arguments import Detach, EvenIfOthersLive, Name, OutputOption, Yes
from quarterdeck.cli.commands.backups import MomentOption
from quarterdeck.cli.context import Output, err, out
from quarterdeck.cli.groups import command, group
from quarterdeck.cli.object_text import losses_lines, losses_result
from quarterdeck.cli.open_home import call, go_inside_to_drive
from quarterdeck.cli.output import done, emit
from quarterdeck.cli.readable import size, when
from quarterdeck.cli.work import confirm, detach, follow
from quarterdeck.errors import InvalidInput, QuarterdeckError

app = group()


Source = Annotated[
    str | None,
    typer.Option("--from", metavar="URL", help="The backup store of a plane whose home was lost.", show_default=False),
]
KeyFile = Annotated[
    Path | None,
    typer.Option("--key", help="The file with the private key of the backups. With --from.", show_default=False),
]
OptionsFile = Annotated[
    Path | None, typer.Option("--options-file", help="See spec.backup.optionsFile. With --from.", show_default=False)
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Build and check the data, and change nothing.")]


@command(app, "restore alpha --to 2026-01-31T12:00:00Z", "restore alpha --from s3://backups/home --key backup.key")
def restore(
    name: Name,
    to: MomentOption = "latest",
    source: Source = None,
    key: KeyFile = None,
    options: OptionsFile = None,
    even_if_others_live: EvenIfOthersLive = False,
    dry_run: DryRunOption = False,
    yes: Yes = False,
    detached: Detach = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Restore the etcd of a plane to an earlier moment. The present data is kept on its machines.

    The data is built and checked first. Then all programs of the plane stop, and start again with it.
    """
    _require_pair(source, key, options)
    if source is not None and key is not None:
        _adopt(name, source, key, options)
    go_inside_to_drive(name)
    plan = call(lambda face: face.backups.restores.plan(name, to=to))
    for line in _lines(plan):
        err.print(line, highlight=False, soft_wrap=True)
    result = _result(plan)
    if dry_run:
        left = f"plane {name} stays paused: 'quarterdeck restore {name}' restores its data"
        done(result, output, "nothing was changed" if source is None else left)
        return
    confirm(f"stop plane {name}, and start it again with the data of etcd revision {plan.revision:,}?", yes=yes)
    call(lambda face: face.backups.restores.start(plan, even_if_others_live=even_if_others_live))
    if detached:
        detach(name, output)
    else:
        follow(name)
    text = f"plane {name} is settled again; its former data is kept on its machines: see 'events {name}'"
    emit(result, output, lambda: None if detached else out.print(text, soft_wrap=True))


def _adopt(name: str, source: str, key: Path, options: Path | None) -> None:
    call(lambda face: face.backups.restores.adopt(name, source, key=key, options=options))
    text = f"plane {name} is in this home again, paused until its data is restored"
    err.print(text, highlight=False, soft_wrap=True)


def _require_pair(source: str | None, key: Path | None, options: Path | None) -> None:
    doing = "restoring a plane"
    if source is not None and key is None:
        raise InvalidInput(doing, "--from is given without --key", "give the file with the key that opens the backups")
    if source is None and (key is not None or options is not None):
        given = "--key" if key is not None else "--options-file"
        raise InvalidInput(
            doing, f"{given} is given without --from", "give the URL of the backup store, or leave it out"
        )


def _lines(plan: RestorePlan) -> list[str]:
    """What to know before one consents."""
    said = [f"etcd revision {plan.revision:,} was backed up to {plan.store} by {when(plan.at)}"]
    if plan.proof is not None:
        said.append(
            f"it was built and checked: {plan.proof.keys:,} keys, {size(plan.proof.size_bytes)},"
            f" {plan.proof.hashes} hashes are those that the members had"
        )
    if plan.lost is None:
        said.append(
            f"lost: everything since epoch {plan.from_epoch} of its etcd ended; the present epoch is {plan.epoch - 1}"
        )
    elif plan.lost:
        first, last = plan.revision + 1, plan.seen
        said.append(f"lost: etcd revisions {first:,} to {last:,}, and what was written later")
    else:
        said.append("lost: nothing that was ever observed, except for writes after the backup")
    if isinstance(plan.losses, QuarterdeckError):
        said.append(f"which objects are lost is not known: {plan.losses}")
    else:
        said.extend(losses_lines(plan.losses))
    return said


def _result(plan: RestorePlan) -> RestoreResult:
    return RestoreResult(
        name=plan.plane,
        epoch=plan.epoch,
        revision=plan.revision,
        backed_up_at=plan.at,
        lost_revisions=plan.lost,
        losses=losses_result(plan.losses) if isinstance(plan.losses, MomentDifference) else None,
        store=plan.store,
    )
