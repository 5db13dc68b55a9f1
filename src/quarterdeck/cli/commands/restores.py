"""Restoring a plane from a backup."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from quarterdeck.api.output.backups import RestoreResult
from quarterdeck.app.backup.copied_plane import CopyRequest
from quarterdeck.app.backup.copies import ForeignBackup
from quarterdeck.app.backup.restores import RestorePlan
from quarterdeck.backup.kubernetes.object_changes import MomentDifference
from quarterdeck.cli.arguments import Detach, EvenIfOthersLive, Name, OutputOption, Yes
from quarterdeck.cli.commands.backups import MomentOption, ReplayOption
from quarterdeck.cli.commands.copies import (
    ExternalControllers,
    NewEndpoint,
    NewName,
    NewSite,
    RestoreCall,
    built_lines,
    events_revision,
    restore_as,
)
from quarterdeck.cli.context import Output, err
from quarterdeck.cli.groups import command, group
from quarterdeck.cli.object_text import losses_lines, losses_result
from quarterdeck.cli.open_home import call, go_inside_to_drive
from quarterdeck.cli.output import done
from quarterdeck.cli.work import confirm, wait_for
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


@command(
    app,
    "restore alpha --from s3://backups/home --key backup.key",
    "restore alpha --as beta --to 2026-01-31T12:00:00Z",
)
def restore(
    name: Name,
    to: MomentOption = "latest",
    source: Source = None,
    key: KeyFile = None,
    options: OptionsFile = None,
    even_if_others_live: EvenIfOthersLive = False,
    new_name: NewName = None,
    site: NewSite = None,
    endpoint: NewEndpoint = None,
    external_controllers: ExternalControllers = False,
    replay: ReplayOption = False,
    dry_run: DryRunOption = False,
    yes: Yes = False,
    detached: Detach = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Restore the etcd of a plane to an earlier moment. The present data is kept on its machines.

    The data is built and checked first. Then all programs of the plane stop, and start again with it. With --as,
    another plane begins with it instead, and this one is not touched.
    """
    its = RestoreCall(
        to=to,
        source=_foreign(source, key, options),
        by_replay=replay,
        dry_run=dry_run,
        yes=yes,
        detached=detached,
        output=output,
    )
    if new_name is not None:
        _require_untouched(name, even_if_others_live=even_if_others_live)
        asked = CopyRequest(name=new_name, site=site, endpoint=endpoint, external_controllers=external_controllers)
        restore_as(name, asked, its)
    else:
        _require_as(site, endpoint, external_controllers=external_controllers)
        _restore_in_place(name, its, even_if_others_live=even_if_others_live)


def _restore_in_place(name: str, its: RestoreCall, *, even_if_others_live: bool) -> None:
    _adopt(name, its.source)
    go_inside_to_drive(name)
    plan = call(lambda face: face.backups.restores.plan(name, to=its.to, by_replay=its.by_replay))
    for line in _lines(plan):
        err.print(line, highlight=False, soft_wrap=True)
    if its.dry_run:
        done(_result(plan), its.output, "nothing was changed" if its.source is None else _paused(name))
        return
    confirm(f"stop plane {name}, and start it again with the data of etcd revision {plan.revision:,}?", yes=its.yes)
    call(lambda face: face.backups.restores.start(plan, even_if_others_live=even_if_others_live))
    text = f"plane {name} is settled again; its former data is kept on its machines: see 'events {name}'"
    wait_for(_result(plan), text, detached=its.detached, output=its.output)


def _paused(name: str) -> str:
    return f"plane {name} stays paused: 'quarterdeck restore {name}' restores its data"


def _adopt(name: str, lost: ForeignBackup | None) -> None:
    """Bring a plane back whose home was lost."""
    if lost is None:
        return
    call(lambda face: face.backups.restores.adopt(name, lost.url, key=lost.key, options=lost.options))
    text = f"plane {name} is in this home again, paused until its data is restored"
    err.print(text, highlight=False, soft_wrap=True)


def _foreign(source: str | None, key: Path | None, options: Path | None) -> ForeignBackup | None:
    """The backup of a plane that this home need not have; None: no option names one. Raises InvalidInput."""
    doing = "restoring a plane"
    if source is not None and key is None:
        raise InvalidInput(doing, "--from is given without --key", "give the file with the key that opens the backups")
    if source is None and (key is not None or options is not None):
        given = "--key" if key is not None else "--options-file"
        raise InvalidInput(
            doing, f"{given} is given without --from", "give the URL of the backup store, or leave it out"
        )
    return ForeignBackup(source, key, options) if source is not None and key is not None else None


def _require_as(site: str | None, endpoint: str | None, *, external_controllers: bool) -> None:
    given = (("--site", site), ("--endpoint", endpoint), ("--external-controllers", external_controllers))
    for option, value in given:
        if value:
            raise InvalidInput("restoring a plane", f"{option} is given without --as", "leave it out, or give --as")


def _require_untouched(name: str, *, even_if_others_live: bool) -> None:
    if even_if_others_live:
        seen = f"--even-if-others-live is given with --as, and plane {name} is not touched"
        raise InvalidInput("restoring a plane", seen, "leave it out")


def _lines(plan: RestorePlan) -> list[str]:
    """What to know before one consents."""
    lines = built_lines(plan.revision, plan.store, plan.at, plan.proof)
    if plan.lost is None:
        lines.append(
            f"lost: everything since epoch {plan.from_epoch} of its etcd ended; the present epoch is {plan.epoch - 1}"
        )
    elif plan.lost:
        first, last = plan.revision + 1, plan.seen
        lines.append(f"lost: etcd revisions {first:,} to {last:,}, and what was written later")
    else:
        lines.append("lost: nothing that was ever observed, except for writes after the backup")
    if isinstance(plan.losses, QuarterdeckError):
        lines.append(f"which objects are lost is not known: {plan.losses}")
    else:
        lines.extend(losses_lines(plan.losses))
    if plan.events is not None:
        lines.append(plan.events.words)
    return lines


def _result(plan: RestorePlan) -> RestoreResult:
    return RestoreResult(
        name=plan.plane,
        epoch=plan.epoch,
        revision=plan.revision,
        backed_up_at=plan.at,
        lost_revisions=plan.lost,
        losses=losses_result(plan.losses) if isinstance(plan.losses, MomentDifference) else None,
        store=plan.store,
        events_revision=events_revision(plan.events),
        copy_of=None,
    )
