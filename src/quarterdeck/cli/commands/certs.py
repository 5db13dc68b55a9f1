"""Commands on the certificates of a plane: list, renew."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.text import Text

from quarterdeck.api.output.planes import CertificateRow
from quarterdeck.app import Certificate, RenewCertificates
from quarterdeck.cli.arguments import Detach, Name, OutputOption, Yes
from quarterdeck.cli.change_request import change, planned
from quarterdeck.cli.context import Output
from quarterdeck.cli.groups import command, group
from quarterdeck.cli.open_home import call, go_inside_to_drive
from quarterdeck.cli.output import Column, show

app = group("List and renew the certificates of a plane.")


def _days_left(row: CertificateRow) -> Text:
    style = "red" if row.remaining_seconds <= 0 else "yellow" if row.due else ""
    return Text(f"{row.remaining_seconds // 86_400:.0f}", style)


_COLUMNS: tuple[Column[CertificateRow], ...] = (
    Column("whose", lambda row: row.replica or "the plane"),
    Column("for", lambda row: row.message),
    Column("until", lambda row: f"{row.not_after:%Y-%m-%d}"),
    Column("days left", _days_left),
    Column("certificate", lambda row: row.name, wide=True),
)


@command(app, "certs list alpha", name="list")
def list_(name: Name, output: OutputOption = Output.TABLE) -> None:
    """List the certificates of a plane with their owners, purposes and expiry dates."""
    now = datetime.now(UTC)
    show([_row(each, now) for each in call(lambda face: face.certificates(name))], _COLUMNS, output)


def _row(found: Certificate, now: datetime) -> CertificateRow:
    return CertificateRow(
        name=found.name,
        replica=found.replica or None,
        message=found.purpose,
        not_before=found.begins,
        not_after=found.ends,
        remaining_seconds=(found.ends - now).total_seconds(),
        due=found.due(now),
    )


@command(app, "certs renew alpha", "certs renew alpha --offline")
def renew(
    name: Name,
    offline: Annotated[
        bool,
        typer.Option(
            "--offline",
            help="Where certificates have expired, and no quorum answers: restart all replicas without one.",
        ),
    ] = False,
    yes: Yes = False,
    detached: Detach = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Renew all certificates except those of the authorities, and restart one replica after another with them."""
    go_inside_to_drive(name)
    examined = planned(RenewCertificates(name, offline=offline))
    how = ", and restart all of its programs without a quorum" if offline else ""
    question = f"renew the certificates of plane {name}{how}?"
    change(examined, "renew", question, yes=yes, detached=detached, output=output)
