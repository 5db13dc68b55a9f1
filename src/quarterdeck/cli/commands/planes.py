"""Commands on planes: create, apply, plan, delete, logs, pause, resume."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer

from quarterdeck.api.controlplane import ControlPlane, new_control_plane
from quarterdeck.api.documents import Declared, load
from quarterdeck.api.errors import explained
from quarterdeck.api.operation import Operation, OperationType
from quarterdeck.api.output.operations import ApplyPlan, ChangeResult, SitePlan
from quarterdeck.api.site import Site
from quarterdeck.api.values import DEFAULT_KUBERNETES_VERSION
from quarterdeck.app import Apply, Create, Delete, Examined, Quarterdeck
from quarterdeck.app.logs import Tail
from quarterdeck.cli.arguments import (
    Detach,
    FileOption,
    Name,
    NoTrial,
    OutputOption,
    ReplicaCount,
    UnnamedOption,
    Yes,
    text_of,
)
from quarterdeck.cli.change_request import planned
from quarterdeck.cli.component_names import PROGRAM, named
from quarterdeck.cli.context import Output, UnnamedOutput, go_inside, note_plane, out, plain, read
from quarterdeck.cli.durations import duration_option
from quarterdeck.cli.groups import command, group
from quarterdeck.cli.open_home import call, tidy, wait_inside
from quarterdeck.cli.operation_rows import change_plan, changed, operation_result, steps_plan
from quarterdeck.cli.output import document, done, emit
from quarterdeck.cli.plan_text import print_examined, print_findings, print_forecast, print_odd, print_plan
from quarterdeck.cli.readable import size
from quarterdeck.cli.work import confirm, detach, follow, gone
from quarterdeck.errors import Gone, InvalidInput
from quarterdeck.model.components import Component

app = group()


@command(app, "create alpha", "create alpha --site west --replicas 5")
def create(
    name: Annotated[str, typer.Argument(help="The new plane's name: a DNS label.", show_default=False)],
    site: Annotated[str, typer.Option(help="The site of the plane.")] = "east",
    replicas: ReplicaCount = 3,
    version: Annotated[str, typer.Option(help="The Kubernetes version.")] = DEFAULT_KUBERNETES_VERSION,
    no_trial: NoTrial = False,
    detached: Detach = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Create a control plane without writing a file."""
    with explained(f"creating plane {name}", ControlPlane):
        plane = new_control_plane(name, site=site, replicas=replicas, kubernetes_version=version)
    operation = call(lambda face: face.ask(Create(plane)), trial=not no_trial)
    _work(name, detached=detached, output=output)
    text = "" if detached else f"plane {name} is ready: quarterdeck kubeconfig {name} --output-file {name}.kubeconfig"
    _tell(changed(name, "create"), operation, output, text)


def _work(name: str, *, detached: bool, output: Output = Output.TABLE) -> None:
    note_plane(name)
    if detached:
        detach(name, output)
    elif not wait_inside(name):
        follow(name)


def _tell(result: ChangeResult, operation: Operation | None, output: Output, text: str) -> None:
    """Print what was changed, with the operation as it is stored now."""
    if output.for_people:
        if text:
            done(result, output, text)
        return
    done(_with_operation(result, operation), output, text)


def _with_operation(result: ChangeResult, operation: Operation | None) -> ChangeResult:
    if operation is None:
        return result
    stored = {each.name: each for each in read(lambda records: records.history(operation.spec.plane))}
    now = operation_result(stored.get(operation.name, operation))
    return result.model_copy(update={"operation": now})


@command(app, "apply -f plane.yaml", "apply -f plane.yaml --dry-run")
def apply(
    file: FileOption,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would change, the checks and the steps, and change nothing.")
    ] = False,
    no_trial: NoTrial = False,
    detached: Detach = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Create or change the planes and sites that a file declares."""
    resources = load(text_of(file), str(file))
    if dry_run:
        _dry_run(resources, file, output, trial=not no_trial)
        return

    async def applied(face: Quarterdeck) -> list[tuple[ChangeResult, Operation | None]]:
        """What became of the resources of the file, in its order."""
        return [await _applied(face, each, file, output) for each in resources]

    results = call(applied, trial=not no_trial)
    for result, _ in results:
        if result.resource == "plane":
            _work(result.name, detached=detached or len(resources) > 1, output=output)
    if not output.for_people:
        emit([_with_operation(*each) for each in results], output, lambda: None)


async def _applied(
    face: Quarterdeck, resource: Declared, file: Path, output: Output
) -> tuple[ChangeResult, Operation | None]:
    """Apply one resource, and say what became of it."""
    name = resource.metadata.name
    if isinstance(resource, Site):
        applied = await face.sites.apply(resource)
        became = str(applied.change)
        if output.for_people:
            print_odd(applied.checked)
            out.print(f"site {name} {became}")
        return _result("site", name, became), None
    examined = await face.prepare(Apply(_declared(resource, file)))
    operation = await face.ask(examined)
    became = _became(operation)
    if output.for_people:
        out.print(f"plane {name} {became}")
        print_findings(examined.findings)
    return _result("plane", name, became), operation


def _result(resource: str, name: str, became: str) -> ChangeResult:
    action = "create" if became == "created" else "change"
    return ChangeResult(resource=resource, name=name, action=action, changed=became != "unchanged")


def _declared(resource: Declared, file: Path) -> ControlPlane:
    if not isinstance(resource, ControlPlane):
        raise InvalidInput(f"applying {file}", "operations are not declared", "use the command of that name")
    return resource


def _dry_run(resources: Sequence[Declared], file: Path, output: Output, *, trial: bool) -> None:
    """Show what applying a file comes to. Changes nothing."""
    planes = [_declared(each, file) for each in resources if not isinstance(each, Site)]
    sites = [each for each in resources if isinstance(each, Site)]

    async def supposed(face: Quarterdeck) -> tuple[dict[str, str], list[Examined]]:
        applied = {each.name: str((await face.sites.apply(each, dry_run=True)).change) for each in sites}
        return applied, [await face.plan(Apply(each)) for each in planes]

    def text() -> None:
        for name, became in applied.items():
            out.print(f"site {name} would be {became}")
        for each in examined:
            print_plan(each, wide=output is Output.WIDE)

    if planes and not sites and len(planes) == 1:
        go_inside(planes[0].name)
    applied, examined = call(supposed, trial=trial)
    if output is Output.NAME:
        document(resources, output)
        return
    planned_sites = tuple(SitePlan(name=name, change=became) for name, became in applied.items())
    emit(ApplyPlan(sites=planned_sites, planes=tuple(map(change_plan, examined))), UnnamedOutput(output.value), text)


def _became(operation: Operation | None) -> str:
    if operation is None:
        return "unchanged"
    return "created" if operation.spec.type is OperationType.CREATE else "changed"


@command(app, "plan alpha --to west", "plan alpha -f plane.yaml")
def plan(
    name: Name,
    to: Annotated[str | None, typer.Option("--to", help="Plan a migration to this site.")] = None,
    replicas: Annotated[int | None, typer.Option(help="Plan this number of replicas.")] = None,
    file: Annotated[
        Path | None, typer.Option("-f", "--file", help="Plan the changes in this YAML or JSON file.")
    ] = None,
    no_trial: NoTrial = False,
    output: UnnamedOption = UnnamedOutput.TABLE,
) -> None:
    """Show the steps of a change and the quorum margin at each, and change nothing."""
    if file is not None and (to is not None or replicas is not None):
        raise InvalidInput(f"planning for plane {name}", "-f excludes --to and --replicas", "use one of them")
    go_inside(name)
    if file is not None:
        print_examined(planned(Apply(_of_plane(name, file)), trial=not no_trial), output)
    else:
        forecast = call(lambda face: face.forecast(name, to=to, replicas=replicas))
        wide = output is UnnamedOutput.WIDE
        emit(steps_plan(name, forecast), output, lambda: print_forecast(forecast, wide=wide))


def _of_plane(name: str, file: Path) -> ControlPlane:
    """What a file declares of a plane. Raises InvalidInput when it does not."""
    found = [each for each in load(text_of(file), str(file)) if isinstance(each, ControlPlane)]
    for each in found:
        if each.name == name:
            return each
    there = ", ".join(each.name for each in found) or "none"
    raise InvalidInput(f"planning for plane {name}", f"{file} declares no such plane; planes in it: {there}")


@command(app, "delete alpha", "delete alpha --with-backups")
def delete(
    name: Name,
    with_backups: Annotated[
        bool,
        typer.Option(
            "--with-backups",
            help="Also delete its backups, which stay in their store otherwise. The plane cannot be restored then.",
        ),
    ] = False,
    yes: Yes = False,
    detached: Detach = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Delete a plane and all its data."""
    plane = read(lambda records: records.plane(name))
    backups, what = None, "all its data"
    if with_backups:
        if detached:
            seen = "its backups are deleted once it is gone, and --detach does not wait for that"
            raise InvalidInput(f"deleting plane {name} and its backups", seen, "leave out --detach")
        backups = call(lambda face: face.backups.stored(name))
        what += f", and its backups in {backups.url} ({backups.objects:,} objects, {size(backups.size_bytes)})"
    confirm(f"delete plane {name} and {what}?", yes=yes)
    call(lambda face: face.ask(Delete(name)))
    try:
        _work(name, detached=detached, output=output)
    except (Gone, typer.Exit):
        if not gone(name):  # a manager may have been quicker than this command came to look
            raise
    if not detached:
        tidy()
    if backups is not None:
        call(lambda face: face.backups.delete(backups))
    kept = plane.status.backup is not None and backups is None
    text = f"plane {name} is gone" + ("; its backups are kept, and 'restore --from' brings it back" if kept else "")
    _tell(changed(name, "delete"), None, output, "" if detached else text)


@command(app, "logs alpha", "logs alpha --component kube-apiserver --lines 200")
def logs(
    name: Name,
    replica: Annotated[str | None, typer.Option(help="Only the logs of this replica.")] = None,
    component: Annotated[
        Component | None, typer.Option(parser=named, metavar=PROGRAM, help="Only the logs of this component.")
    ] = None,
    lines: Annotated[int, typer.Option(help="Lines of each program.")] = 50,
) -> None:
    """Print the last log lines of the programs of a plane."""
    go_inside(name)

    async def tails(face: Quarterdeck) -> None:
        async for each in face.logs(name, replica=replica, component=component, lines=lines):
            _print_tail(name, each)

    call(tails)


def _print_tail(plane: str, tail: Tail) -> None:
    if not tail.text.strip():
        out.print(f"{plane}/{tail.replica} {tail.component}: no output", highlight=False, soft_wrap=True)
        return
    out.print(f"[bold]== {tail.replica} {tail.component}[/bold]")
    plain(tail.text)


@command(app, "pause alpha", "pause alpha --for 2h")
def pause(
    name: Name,
    for_: Annotated[float | None, duration_option("--for", "End the pause after this time.")] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Stop changing a plane until 'resume', or for a given time. The plane keeps running."""
    until = datetime.now(UTC) + timedelta(seconds=for_) if for_ is not None else None
    call(lambda face: face.pause(name, until=until))
    text = f"plane {name} is paused{f' until {until:%F %T %Z}' if until is not None else ''}"
    done(changed(name, "pause"), output, text)


@command(app, "resume alpha")
def resume(name: Name, output: OutputOption = Output.TABLE) -> None:
    """End a pause, and wait until the plane is settled."""
    call(lambda face: face.resume(name))
    _work(name, detached=False)
    _tell(changed(name, "resume"), None, output, "")
