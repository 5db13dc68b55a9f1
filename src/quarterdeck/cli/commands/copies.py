"""Restoring a backup as another plane: `restore --as`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

import typer

from quarterdeck.api.output.backups import RestoreResult
from quarterdeck.app.backup.copied_plane import CopyRequest
from quarterdeck.app.backup.copies import CopyPlan, ForeignBackup
from quarterdeck.app.backup.events import EventsPlan
from quarterdeck.backup.proof import Proof
from quarterdeck.cli.context import Output, err, note_plane, out
from quarterdeck.cli.open_home import call, wait_inside
from quarterdeck.cli.output import done, emit
from quarterdeck.cli.readable import size, when
from quarterdeck.cli.work import confirm, detach, follow
from quarterdeck.errors import Conflict

NewName = Annotated[
    str | None,
    typer.Option("--as", metavar="NEWNAME", help="Begin another plane of that name with the data.", show_default=False),
]
NewSite = Annotated[
    str | None, typer.Option("--site", help="The site of the other plane. With --as.", show_default=False)
]
NewEndpoint = Annotated[
    str | None,
    typer.Option(
        "--endpoint",
        metavar="HOST",
        help="The name or address of the other plane, where the spec gives that of this one. With --as.",
        show_default=False,
    ),
]
ExternalControllers = Annotated[
    bool,
    typer.Option(
        "--external-controllers",
        help="Give the other plane the cloud controller manager and controller sets of this one: they act on the same"
        " cloud. With --as.",
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreCall:
    """The options of a restore, in place and as another plane. ``source``: the backup, where it is not the plane's."""

    to: str
    source: ForeignBackup | None
    by_replay: bool
    dry_run: bool
    yes: bool
    detached: bool
    output: Output


def restore_as(name: str, asked: CopyRequest, its: RestoreCall) -> None:
    """Create a plane from a backup of another one, once the user has agreed."""
    to, source, by_replay = its.to, its.source, its.by_replay
    plan = call(lambda face: face.backups.copies.plan(name, asked, to=to, source=source, by_replay=by_replay))
    for line in _lines(plan):
        err.print(line, highlight=False, soft_wrap=True)
    result, new = _result(plan), plan.plane.name
    if its.dry_run:
        call(lambda face: face.backups.copies.discard(plan))
        done(result, its.output, "nothing was changed")
        return
    try:
        confirm(f"create plane {new} with the data of etcd revision {plan.revision:,} of plane {name}?", yes=its.yes)
    except (Conflict, typer.Abort):
        call(lambda face: face.backups.copies.discard(plan))
        raise
    call(lambda face: face.backups.copies.start(plan))
    note_plane(new)
    if its.detached:
        detach(new, its.output)
    elif not wait_inside(new):
        follow(new)
    text = f"plane {new} is ready: quarterdeck kubeconfig {new} --output-file {new}.kubeconfig"
    emit(result, its.output, lambda: None if its.detached else out.print(text, soft_wrap=True))


def built_lines(revision: int, store: str, at: datetime, proof: Proof | None) -> list[str]:
    """What was found and built."""
    lines = [f"etcd revision {revision:,} was backed up to {store} by {when(at)}"]
    if proof is not None:
        lines.append(
            f"it was built and checked: {proof.keys:,} keys, {size(proof.size_bytes)},"
            f" {proof.hashes} hashes are those that the members had"
        )
    return lines


def events_revision(events: EventsPlan | None) -> int | None:
    """The revision of the events' etcd that is restored; None for none."""
    return events.moment.revision if events is not None and events.moment is not None else None


def _lines(plan: CopyPlan) -> list[str]:
    """What to know before one consents."""
    new = plan.plane
    return [
        *built_lines(plan.revision, plan.store, plan.at, plan.proof),
        f"plane {new.name} will be at site {new.spec.placement.site}, and clients reach it at {new.host};"
        f" plane {plan.of} is not touched",
        f"both have the same keys: each accepts the credentials and tokens that {plan.of} has issued",
        *((plan.events.words,) if plan.events is not None else ()),
        *(f"other than {plan.of}: {each}" for each in plan.differences),
    ]


def _result(plan: CopyPlan) -> RestoreResult:
    return RestoreResult(
        name=plan.plane.name,
        epoch=1,
        revision=plan.revision,
        backed_up_at=plan.at,
        lost_revisions=0,
        losses=None,
        store=plan.store,
        events_revision=events_revision(plan.events),
        copy_of=plan.of,
    )
