"""Taking, listing and verifying backups, and looking into them."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from quarterdeck.api.output.backups import BackupKeyResult, BackupResult, BackupRow, BackupVerification
from quarterdeck.app.backup.backups import BackupList, BackupRange
from quarterdeck.app.backup.objects import BackedUpObject
from quarterdeck.backup.verifications import VerifiedMoment
from quarterdeck.cli.arguments import Name, OutputOption, UnnamedOption, Yes
from quarterdeck.cli.bring_back_text import bring_back_lines, bring_back_result
from quarterdeck.cli.context import ObjectOutput, Output, UnnamedOutput, err, go_inside, out, plain
from quarterdeck.cli.durations import duration_option
from quarterdeck.cli.groups import command, group
from quarterdeck.cli.object_text import COLUMNS as OBJECT_COLUMNS
from quarterdeck.cli.object_text import difference_lines, difference_result, sort_out
from quarterdeck.cli.open_home import call, go_inside_to_drive
from quarterdeck.cli.output import Column, done, show
from quarterdeck.cli.readable import size, when
from quarterdeck.cli.work import confirm
from quarterdeck.yaml_text import dumped

app = group("Take, list, verify and look into the backups of a plane.")

_COLUMNS: tuple[Column[BackupRow], ...] = (
    Column("cluster", lambda row: row.cluster),
    Column("epoch", lambda row: row.epoch),
    Column("first revision", lambda row: row.first_revision),
    Column("last revision", lambda row: row.last_revision),
    Column("from", lambda row: when(row.first_at)),
    Column("to", lambda row: when(row.last_at)),
    Column("fulls", lambda row: row.fulls),
    Column("size", lambda row: size(row.size_bytes)),
    Column("restores", lambda row: "whole plane" if row.whole_plane else "data"),
    Column("verified", lambda row: _verified(row.verification)),
)

_MOMENT = "'latest', an etcd revision, or a time with its zone, such as 2026-01-31T12:00:00Z."
#: The moment of a backup that a command is about.
MomentOption = Annotated[str, typer.Option("--to", metavar="MOMENT", help=f"The moment: {_MOMENT}")]
ReplayOption = Annotated[
    bool,
    typer.Option(
        "--replay", help="Have an etcd write each change again, if it refuses the database otherwise. It is slow."
    ),
]
AtOption = Annotated[str, typer.Option("--at", metavar="MOMENT", help=f"The moment: {_MOMENT}", show_default=False)]
AndOption = Annotated[str, typer.Option("--and", metavar="MOMENT", help="The moment to compare it with.")]
AllOption = Annotated[bool, typer.Option("--all", help="Also list events, leases and other records of programs.")]

TypeArgument = Annotated[
    str,
    typer.Argument(
        metavar="TYPE",
        help="The resource type as kubectl takes it: plural, singular or short name, or PLURAL.GROUP.",
        show_default=False,
    ),
]
ObjectArgument = Annotated[
    str,
    typer.Argument(
        metavar="[NAMESPACE/]NAME", help="The object. Its namespace is 'default' if none is given.", show_default=False
    ),
]
ApplyOption = Annotated[bool, typer.Option("--apply", help="Bring it back into the plane, after confirmation.")]
FormatOption = Annotated[
    ObjectOutput | None,
    typer.Option("-o", "--output", help="Output format (default: yaml; with --apply, a sentence)."),
]


@command(app, "backup create alpha")
def create(
    name: Name,
    timeout: Annotated[float, duration_option("--timeout", "Give up after this time.")] = 600.0,
    output: OutputOption = Output.TABLE,
) -> None:
    """Return once everything that was written before can be restored from the backup store."""
    go_inside(name)
    taken = call(lambda face: face.backups.create(name, timeout=timeout))
    result = BackupResult(
        name=f"main-{taken.full.epoch}-{taken.revision}",
        plane=name,
        store=taken.store,
        revision=taken.revision,
        full_revision=taken.full.revision,
        full_hash=f"{taken.full.hash.value:08x}" if taken.full.hash is not None else None,
        size_bytes=taken.size_bytes,
        whole_plane=taken.whole_plane,
    )
    text = f"etcd revision {taken.revision:,} of plane {name} is in {taken.store} ({size(taken.size_bytes)})"
    if not taken.whole_plane:
        text += "; its keys are not, so only its data can be restored: see 'backup list' and 'events'"
    done(result, output, text)


@command(app, "backup list alpha", name="list")
def list_(name: Name, output: OutputOption = Output.TABLE) -> None:
    """List what can be restored: each revision between the first and the last one of a line."""
    found = call(lambda face: face.backups.list(name))
    if found.overdue and output.for_people:
        counted = f"{len(found.overdue):,} objects ({size(sum(found.overdue))}) that are no part of a backup any more"
        held = f"{counted} are still in {found.store}: a lock or a retention policy of the store may hold them"
        err.print(held, highlight=False, soft_wrap=True)
    show([_row(found, each) for each in found.ranges], _COLUMNS, output, empty=f"there is no backup in {found.store}")


@command(app, "backup verify alpha")
def verify(
    name: Name,
    to: MomentOption = "latest",
    replay: ReplayOption = False,
    output: UnnamedOption = UnnamedOutput.TABLE,
) -> None:
    """Restore a backup in a scratch etcd on this machine, and compare revision, keys and hashes."""
    found = call(lambda face: face.backups.verify(name, to=to, by_replay=replay))
    live = ", one of a member that serves now" if found.live else ""
    text = (
        f"etcd revision {found.revision:,} of plane {name} can be restored: {found.keys:,} keys,"
        f" {size(found.database_bytes)}, {found.hashes} hashes are those that members had{live}"
        f" ({found.duration_seconds:.1f} s)"
    )
    done(_verification(name, found), output, text)


@command(app, "backup diff alpha --at 2026-01-31T12:00:00Z")
def diff(
    name: Name,
    at: AtOption,
    to: AndOption = "latest",
    everything: AllOption = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """List the objects that were added, removed or changed between two moments."""
    found = call(lambda face: face.backups.objects.diff(name, at=at, to=to))
    chosen = sort_out(found.changes, everything=everything)
    result = difference_result(name, found, chosen)
    if output.for_people:
        for line in difference_lines(found, chosen):
            err.print(line, highlight=False, soft_wrap=True)
    if output.for_people or output is Output.NAME:
        show(result.objects, OBJECT_COLUMNS, output, empty="no object differs")
    else:
        done(result, UnnamedOutput(output.value), "")


@command(
    app,
    "backup get alpha configmap default/settings --at 2026-01-31T12:00:00Z",
    "backup get alpha configmap default/settings --at 2026-01-31T12:00:00Z --apply",
)
def get(
    name: Name,
    kind: TypeArgument,
    object_: ObjectArgument,
    at: AtOption,
    apply: ApplyOption = False,
    yes: Yes = False,
    output: FormatOption = None,
) -> None:
    """Print an object as it was at a moment, without its managedFields, or bring it back into the plane.

    An apiserver on a copy of the data decodes it, on this host; the plane is not touched. With --apply, an object that
    is gone is created, without its uid and status. One that exists is changed by server-side apply: fields that were
    added since stay.
    """
    if apply:
        go_inside_to_drive(name)
    found = call(lambda face: face.backups.objects.get(name, kind, object_, at=at))
    if apply:
        _bring_back(found, yes=yes, output=output)
    elif output is ObjectOutput.JSON:
        out.print_json(json.dumps({**found.document}))
    else:
        plain(dumped({**found.document}, sort_keys=False), end="")


def _bring_back(found: BackedUpObject, *, yes: bool, output: ObjectOutput | None) -> None:
    plan = call(lambda face: face.backups.objects.plan(found))
    for line in bring_back_lines(plan):
        plain(line, err)
    action = "created" if not plan.uid else "unchanged" if plan.changes_nothing else "changed"
    if not plan.changes_nothing:
        asked = f"change {found.called} of plane" if plan.uid else f"create {found.called} in plane"
        confirm(f"{asked} {found.plane}?", yes=yes)
        call(lambda face: face.backups.objects.bring_back(plan))
    text = f"{found.called} is {action}: it has what it had at revision {found.moment.revision:,}"
    done(
        bring_back_result(plan, action),
        UnnamedOutput(output.value if output is not None else UnnamedOutput.TABLE),
        text,
    )


@command(app, "backup key")
def key(output: UnnamedOption = UnnamedOutput.TABLE) -> None:
    """Print the file with the key that opens the backups. Without a copy of it, a lost home cannot be restored."""
    path, public = call(lambda face: face.backups.key())
    text = f"{path}\npublic key: {public}\nkeep a copy of that file in a safe place: without it the backups are useless"
    result = BackupKeyResult(file=str(path), public_key=public)
    done(result, output, text)


def _row(found: BackupList, each: BackupRange) -> BackupRow:
    return BackupRow(
        name=f"{each.cluster}-{each.epoch}-{each.first}",
        plane=found.plane,
        cluster=each.cluster,
        epoch=each.epoch,
        first_revision=each.first,
        last_revision=each.last,
        first_at=each.first_at,
        last_at=each.last_at,
        fulls=each.fulls,
        size_bytes=each.size_bytes,
        whole_plane=each.whole_plane,
        verification=_verification(found.plane, each.verification) if each.verification is not None else None,
    )


def _verification(plane: str, found: VerifiedMoment) -> BackupVerification:
    return BackupVerification(
        plane=plane,
        revision=found.revision,
        verified_at=found.at,
        keys=found.keys,
        database_bytes=found.database_bytes,
        hashes_compared=found.hashes,
        live_hash_compared=found.live,
        duration_seconds=found.duration_seconds,
    )


def _verified(found: BackupVerification | None) -> str:
    return "-" if found is None else f"{when(found.verified_at)} (revision {found.revision:,})"
