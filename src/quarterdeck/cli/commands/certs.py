"""Commands on the certificates of a plane: list, renew, rotate the authorities."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.text import Text

from quarterdeck.api.output.planes import CertificateRow
from quarterdeck.api.plane.certificates import Signer
from quarterdeck.app import Certificate, RenewCertificates, RotateAuthorities, RotationStage
from quarterdeck.cli.arguments import Detach, Name, OutputOption, Yes
from quarterdeck.cli.change_request import change, nothing_to_do, planned
from quarterdeck.cli.context import Output, out
from quarterdeck.cli.groups import command, group
from quarterdeck.cli.open_home import call, go_inside_to_drive
from quarterdeck.cli.output import Column, show
from quarterdeck.errors import InvalidInput

app = group("List and renew the certificates of a plane, and rotate its certificate authorities.")


Finish = Annotated[bool, typer.Option("--finish", help="Accept the former one no longer.")]
Back = Annotated[bool, typer.Option("--back", help="Return to the former one.")]


def stage_of(doing: str, *, finish: bool, back: bool) -> RotationStage:
    """The part of a rotation that is asked for. Raises InvalidInput for two at once."""
    if finish and back:
        raise InvalidInput(doing, "--finish and --back are given", "use one of them")
    return RotationStage.FINISH if finish else RotationStage.BACK if back else RotationStage.BEGIN


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


@command(app, "certs rotate-ca alpha", "certs rotate-ca alpha --ca kubernetes --finish")
def rotate_ca(
    name: Name,
    ca: Annotated[
        list[Signer] | None, typer.Option("--ca", help="The authority; repeat it for several (default: all).")
    ] = None,
    finish: Finish = False,
    back: Back = False,
    yes: Yes = False,
    detached: Detach = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Replace certificate authorities while clients go on: a new one issues all certificates, and the former one stays
    trusted until --finish.
    """
    stage = stage_of(f"rotating authorities of plane {name}", finish=finish, back=back)
    go_inside_to_drive(name)
    signers = tuple(dict.fromkeys(ca or Signer))
    examined = planned(RotateAuthorities(name, signers, stage))
    if not examined.needed:
        nothing_to_do(examined, "rotate", f"plane {name} has no rotation under way: nothing to do", output)
        return
    change(examined, "rotate", _question(name, stage), yes=yes, detached=detached, output=output)
    if stage is RotationStage.BEGIN and output.for_people and not detached:
        out.print(f"when clients have new kubeconfigs: 'certs rotate-ca {name} --finish'", soft_wrap=True)


def _question(name: str, stage: RotationStage) -> str:
    match stage:
        case RotationStage.BEGIN:
            return f"replace certificate authorities of plane {name}?"
        case RotationStage.FINISH:
            return f"trust the former certificate authorities of plane {name} no longer?"
        case RotationStage.BACK:
            return f"return to the former certificate authorities of plane {name}?"
