"""Commands on the certificates of a plane: list, renew."""

from __future__ import annotations

from datetime import UTC, datetime

from pydantic import JsonValue

from quarterdeck.app import Certificate, RenewCertificates
from quarterdeck.cli.arguments import Detach, Name, OutputOption, Yes
from quarterdeck.cli.change_request import change, planned
from quarterdeck.cli.context import Output
from quarterdeck.cli.groups import command, group
from quarterdeck.cli.open_home import call, go_inside_to_drive
from quarterdeck.cli.output import show

app = group("List and renew the certificates of a plane.")


@command(app, "certs list alpha", name="list")
def list_(name: Name, output: OutputOption = Output.TABLE) -> None:
    """List the certificates of a plane with their owners, purposes and expiry dates."""
    now = datetime.now(UTC)
    rows = [_row(each, now, output) for each in call(lambda face: face.certificates(name))]
    show(rows, ("whose", "for", "until", "days left"), output, wide=("certificate",))


def _row(found: Certificate, now: datetime, output: Output) -> dict[str, JsonValue]:
    days = found.days_left(now)
    if output.is_document:
        return {
            "replica": found.replica or None,
            "certificate": found.name,
            "for": found.purpose,
            "from": found.begins.isoformat(),
            "until": found.ends.isoformat(),
            "daysLeft": days,
            "due": found.due(now),
        }
    color = "red" if found.ends <= now else "yellow" if found.due(now) else ""
    return {
        "whose": found.replica or "the plane",
        "certificate": found.name,
        "for": found.purpose,
        "until": f"{found.ends:%Y-%m-%d}",
        "days left": f"[{color}]{days}[/{color}]" if color else str(days),
    }


@command(app, "certs renew alpha")
def renew(name: Name, yes: Yes = False, detached: Detach = False, output: OutputOption = Output.TABLE) -> None:
    """Renew all certificates except those of the authorities, and restart one replica after another with them."""
    go_inside_to_drive(name)
    examined = planned(RenewCertificates(name))
    change(examined, f"renew the certificates of plane {name}?", yes=yes, detached=detached, output=output)
