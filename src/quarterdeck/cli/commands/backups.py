"""Taking, listing and verifying backups."""

from __future__ import annotations

from typing import Annotated

import typer

from quarterdeck.api.output.backups import BackupKeyResult, BackupResult, BackupRow, BackupVerification
from quarterdeck.app.backup.backups import BackupList, BackupRange
from quarterdeck.backup.verifications import VerifiedMoment
from quarterdeck.cli.arguments import Name, OutputOption, UnnamedOption
from quarterdeck.cli.context import Output, UnnamedOutput, go_inside
from quarterdeck.cli.durations import duration_option
from quarterdeck.cli.groups import command, group
from quarterdeck.cli.open_home import call
from quarterdeck.cli.output import Column, done, show
from quarterdeck.cli.readable import size, when

app = group("Take, list and verify the backups of a plane.")

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

#: The moment of a backup that a command is about.
MomentOption = Annotated[
    str,
    typer.Option(
        "--to",
        metavar="MOMENT",
        help="The moment: 'latest', an etcd revision, or a time with its zone, such as 2026-01-31T12:00:00Z.",
    ),
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
    done(result, output, text)


@command(app, "backup list alpha", name="list")
def list_(name: Name, output: OutputOption = Output.TABLE) -> None:
    """List what can be restored: each revision between the first and the last one of a line."""
    found = call(lambda face: face.backups.list(name))
    show([_row(found, each) for each in found.ranges], _COLUMNS, output, empty=f"there is no backup in {found.store}")


@command(app, "backup verify alpha")
def verify(name: Name, to: MomentOption = "latest", output: UnnamedOption = UnnamedOutput.TABLE) -> None:
    """Restore a backup in a scratch etcd on this machine, and compare revision, keys and hashes."""
    found = call(lambda face: face.backups.verify(name, to=to))
    live = ", one of a member that serves now" if found.live else ""
    text = (
        f"etcd revision {found.revision:,} of plane {name} can be restored: {found.keys:,} keys,"
        f" {size(found.database_bytes)}, {found.hashes} hashes are those that members had{live}"
        f" ({found.duration_seconds:.1f} s)"
    )
    done(_verification(name, found), output, text)


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
