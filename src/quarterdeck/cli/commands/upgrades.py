"""Commands on the version of Kubernetes of a plane: run and plan an upgrade."""

from __future__ import annotations

from typing import Annotated

import typer

from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.output.base import messages
from quarterdeck.api.output.planes import UpgradeRow
from quarterdeck.app import Examined, Upgrade, UpgradeOption
from quarterdeck.cli.arguments import Detach, Name, OutputOption, Yes
from quarterdeck.cli.change_request import asked, bring_about, nothing_to_do, planned, show_examined
from quarterdeck.cli.context import Output, out, read
from quarterdeck.cli.durations import duration_option
from quarterdeck.cli.groups import command, group
from quarterdeck.cli.open_home import call, go_inside_to_drive
from quarterdeck.cli.output import Column, show
from quarterdeck.cli.work import confirm, follow
from quarterdeck.errors import Conflict, InvalidInput

app = group(
    "Upgrade a plane to another version of Kubernetes, and take that back ('upgrade NAME' is short for 'upgrade run"
    " NAME').",
    default="run",
)

_COLUMNS: tuple[Column[UpgradeRow], ...] = (
    Column("version", lambda row: row.name),
    Column("through", lambda row: ", ".join(row.through) or "-"),
    Column("supported until", lambda row: f"{row.supported_until:%Y-%m-%d}" if row.supported_until else "-"),
    Column("possible", lambda row: "yes" if row.possible else "no"),
    Column("findings", lambda row: "\n".join(each.message for each in row.findings) or "-"),
)


@command(app, "upgrade run alpha --to 1.37.2", "upgrade run alpha --to 1.37.2 --soak 6h --detach")
def run(
    name: Name,
    to: Annotated[
        str | None,
        typer.Option("--to", help="The version of Kubernetes, or without it the next part of an upgrade that soaks."),
    ] = None,
    soak: Annotated[
        float | None,
        duration_option(
            "--soak", "Stay this long in each window, also the last one, before the manager goes on (default: never)."
        ),
    ] = None,
    finish: Annotated[
        bool, typer.Option("--finish", help="Go to the final window. From there, only a restore leads back.")
    ] = False,
    yes: Yes = False,
    detached: Detach = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Upgrade a plane while it serves, one minor version after the other, or take the last one back."""
    if finish and (to is not None or soak is not None):
        raise InvalidInput(f"upgrading plane {name}", "--finish is given with --to or --soak", "use one of them")
    if soak is not None and to is None:
        raise InvalidInput(f"upgrading plane {name}", "--soak is given without --to", "name the version")
    go_inside_to_drive(name)
    examined = planned(Upgrade(name, to, soak, finish))
    if not examined.needed:
        nothing_to_do(examined, "upgrade", f"plane {name} is at {_where(examined.wanted)}: nothing to do", output)
        return
    show_examined(examined, output)
    confirm(f"upgrade plane {name} to {to or _where(examined.wanted)}?", yes=yes)
    _bring_about(examined, detached=detached, output=output)
    if not (detached or finish or soak is not None):
        _go_on(name, output)
    elif not finish and not detached and output.for_people:
        out.print("the manager ('quarterdeck serve') takes it to the next window once it has soaked", soft_wrap=True)


def _go_on(name: str, output: Output) -> None:
    """Take a plane through the minor versions that are left. The manager may be faster: then its part is followed."""
    while (goal := _goal(name)) is not None:
        try:
            examined = planned(Upgrade(name))
            show_examined(examined, output)
            _bring_about(examined, detached=False, output=output)
        except Conflict:
            follow(name)
            if _goal(name) == goal:
                raise


def _bring_about(examined: Examined, *, detached: bool, output: Output) -> None:
    """One part. For programs only the last part of an upgrade has a result."""
    settings = examined.wanted.spec.upgrade
    more = settings is not None and settings.to is not None and settings.soak is None
    if detached or output.for_people or not more:
        bring_about(examined, "upgrade", detached=detached, output=output)
        return
    call(lambda face: asked(face, examined))
    follow(examined.name)


def _goal(name: str) -> tuple[str, str] | None:
    """The version that a plane is at or goes to, and the one at the end of its upgrade; None without such an end."""
    spec = read(lambda records: records.plane(name)).spec
    return (spec.kubernetes_version, spec.upgrade.to) if spec.upgrade is not None and spec.upgrade.to else None


def _where(plane: ControlPlane) -> str:
    settings = plane.spec.upgrade
    return plane.spec.kubernetes_version + (f" ({settings.window})" if settings is not None else "")


@command(app, "upgrade plan alpha")
def plan(name: Name, output: OutputOption = Output.TABLE) -> None:
    """List the versions that a plane can go to, and what stands in the way of each."""
    show([_row(each) for each in call(lambda face: face.upgrade_options(name))], _COLUMNS, output)


def _row(found: UpgradeOption) -> UpgradeRow:
    texts = [f"{each.check}: {'; '.join(filter(None, (each.seen, each.next_step)))}" for each in found.findings]
    return UpgradeRow(
        name=found.version,
        through=found.parts[:-1],
        supported_until=found.supported_until,
        possible=found.possible,
        findings=messages(texts),
    )
