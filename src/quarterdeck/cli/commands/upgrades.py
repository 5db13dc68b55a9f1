"""Commands on the versions of Kubernetes and etcd of a plane: run and plan an upgrade."""

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
    "Upgrade a plane to another version of Kubernetes or etcd, and take that back ('upgrade NAME' is short for 'upgrade"
    " run NAME').",
    default="run",
)

_COLUMNS: tuple[Column[UpgradeRow], ...] = (
    Column("program", lambda row: row.program),
    Column("version", lambda row: row.name),
    Column("through", lambda row: ", ".join(row.through) or "-"),
    Column("supported until", lambda row: f"{row.supported_until:%Y-%m-%d}" if row.supported_until else "-"),
    Column("possible", lambda row: "yes" if row.possible else "no"),
    Column("findings", lambda row: "\n".join(each.message for each in row.findings) or "-"),
)


Soak = Annotated[
    float | None,
    duration_option(
        "--soak",
        "Stay this long in each window, also the last one, or with one member of the former version of etcd, before"
        " the manager goes on (default: never).",
    ),
]
Finish = Annotated[
    bool,
    typer.Option(
        "--finish",
        help="Upgrade the member that keeps the former version of etcd; or else go to the final window, from where"
        " only a restore leads back.",
    ),
]


@command(
    app,
    "upgrade run alpha --to 1.37.2 --soak 6h --detach",
    "upgrade run alpha --etcd 3.7.3",
)
def run(
    name: Name,
    to: Annotated[
        str | None,
        typer.Option("--to", help="The version of Kubernetes, or without any the next part of an upgrade that soaks."),
    ] = None,
    etcd: Annotated[str | None, typer.Option("--etcd", help="The version of etcd.")] = None,
    soak: Soak = None,
    finish: Finish = False,
    yes: Yes = False,
    detached: Detach = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Upgrade a plane while it serves, one minor version after the other, or take the last one back."""
    _require_one(name, to, etcd, soak, finish=finish)
    go_inside_to_drive(name)
    examined = planned(Upgrade(name, to, soak, finish, etcd))
    if not examined.needed:
        nothing_to_do(examined, "upgrade", f"plane {name} is at {_where(examined.wanted)}: nothing to do", output)
        return
    show_examined(examined, output)
    goal = f"etcd {etcd}" if etcd is not None else to or _where(examined.wanted)
    confirm(f"upgrade plane {name} to {goal}?", yes=yes)
    _bring_about(examined, detached=detached, output=output)
    if not (detached or finish or soak is not None):
        _go_on(name, output)
    elif not finish and not detached and output.for_people:
        out.print("the manager ('quarterdeck serve') continues the upgrade once it has soaked", soft_wrap=True)


def _require_one(name: str, to: str | None, etcd: str | None, soak: float | None, *, finish: bool) -> None:
    doing = f"upgrading plane {name}"
    if to is not None and etcd is not None:
        raise InvalidInput(doing, "--to and --etcd are given", "upgrade one after the other")
    if finish and (to is not None or etcd is not None or soak is not None):
        raise InvalidInput(doing, "--finish is given with --to, --etcd or --soak", "use one of them")
    if soak is not None and to is None and etcd is None:
        raise InvalidInput(doing, "--soak is given without --to or --etcd", "name the version")


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
    spec = examined.wanted.spec
    more = any(
        each is not None and each.to is not None and each.soak is None for each in (spec.upgrade, spec.etcd.upgrade)
    )
    if detached or output.for_people or not more:
        bring_about(examined, "upgrade", detached=detached, output=output)
        return
    call(lambda face: asked(face, examined))
    follow(examined.name)


def _goal(name: str) -> tuple[str, str] | None:
    """The version that a plane is at or goes to, and the one at the end of its upgrade; None without such an end."""
    spec = read(lambda records: records.plane(name)).spec
    if spec.etcd.upgrade is not None and spec.etcd.upgrade.to:
        return spec.etcd.version, spec.etcd.upgrade.to
    return (spec.kubernetes_version, spec.upgrade.to) if spec.upgrade is not None and spec.upgrade.to else None


def _where(plane: ControlPlane) -> str:
    settings = plane.spec.upgrade
    window = f" ({settings.window})" if settings is not None else ""
    return f"{plane.spec.kubernetes_version}{window} and etcd {plane.spec.etcd.version}"


@command(app, "upgrade plan alpha")
def plan(name: Name, output: OutputOption = Output.TABLE) -> None:
    """List the versions that a plane can go to, and what stands in the way of each."""
    show([_row(each) for each in call(lambda face: face.upgrade_options(name))], _COLUMNS, output)


def _row(found: UpgradeOption) -> UpgradeRow:
    texts = [f"{each.check}: {'; '.join(filter(None, (each.seen, each.next_step)))}" for each in found.findings]
    return UpgradeRow(
        program=found.program,
        name=found.version,
        through=found.parts[:-1],
        supported_until=found.supported_until,
        possible=found.possible,
        findings=messages(texts),
    )
