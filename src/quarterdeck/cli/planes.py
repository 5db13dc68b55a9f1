"""Commands on planes: create, apply, get, status, plan, delete, kubeconfig, logs, events, pause, resume."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from pydantic import JsonValue

from quarterdeck.api.apply import applied_plane, applied_site
from quarterdeck.api.controlplane import ControlPlane, Placement, new_control_plane
from quarterdeck.api.documents import dump_json, dump_yaml, load
from quarterdeck.api.errors import explained
from quarterdeck.api.operation import OperationType
from quarterdeck.api.site import Site
from quarterdeck.api.values import DEFAULT_KUBERNETES_VERSION
from quarterdeck.cli.arguments import Detach, FileOption, MaybeName, Name, OutputOption, Yes
from quarterdeck.cli.context import Output, asker, engine, go_inside, opened, out, run, tidy, wait_inside
from quarterdeck.cli.output import show, show_one
from quarterdeck.cli.plane_text import age, print_forecast, print_status, row
from quarterdeck.cli.work import confirm, detach, drive
from quarterdeck.components.settings import unit_name
from quarterdeck.engine import operations
from quarterdeck.engine.access import admin_kubeconfig
from quarterdeck.engine.admission import admit
from quarterdeck.engine.drive import Engine
from quarterdeck.engine.facts import forecast, look, summary
from quarterdeck.engine.home import Home
from quarterdeck.engine.site_use import require_safe_change
from quarterdeck.errors import InvalidInput, NotFound
from quarterdeck.files import write_secret
from quarterdeck.model.world import Component
from quarterdeck.planner.dry_run import DryRun
from quarterdeck.stores.amend import amend

app = typer.Typer()


@app.command()
def create(
    name: Annotated[str, typer.Argument(help="The new plane's name: a DNS label.", show_default=False)],
    site: Annotated[str, typer.Option(help="Where it is to be.")] = "east",
    replicas: Annotated[int, typer.Option(help="1, 3 or 5.")] = 3,
    version: Annotated[str, typer.Option(help="The Kubernetes version.")] = DEFAULT_KUBERNETES_VERSION,
    detached: Detach = False,
) -> None:
    """Create a highly available control plane, without writing a file."""
    with explained(f"creating plane {name}", ControlPlane):
        plane = new_control_plane(name, site=site, replicas=replicas, kubernetes_version=version)

    async def ask() -> None:
        async with opened() as home, engine(home) as made:
            await admit(made, plane)
            await operations.create(home, plane, asker())

    run(ask())
    _work(name, detached=detached)
    if not detached:
        out.print(f"plane {name} is ready: quarterdeck kubeconfig {name} -f {name}.kubeconfig")


def _work(name: str, *, detached: bool) -> None:
    if detached:
        detach(name)
    elif not wait_inside(name):
        run(drive(name))


@app.command()
def apply(file: FileOption, detached: Detach = False) -> None:
    """Create or change what a file declares: planes and sites."""
    resources = load(_text(file), str(file))

    async def ask() -> list[str]:
        changed: list[str] = []
        async with opened() as home, engine(home) as made:
            for resource in resources:
                if isinstance(resource, Site):
                    await _apply_site(home, resource)
                elif not isinstance(resource, ControlPlane):
                    raise InvalidInput(
                        f"applying {file}", "operations are not declared", "use the command of that name"
                    )
                elif await _apply_plane(home, made, resource):
                    changed.append(resource.metadata.name)
        return changed

    for name in run(ask()):
        if len(resources) == 1:
            _work(name, detached=detached)
        else:
            detach(name)


def _text(file: Path) -> str:
    """What a file says, or standard input for ``-``. Raises InvalidInput for what is no text."""
    doing = f"reading {file}"
    try:
        content = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    except OSError as error:
        raise InvalidInput(doing, str(error.strerror), "name a file that can be read") from error
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        seen = f"it is no text: byte {error.start + 1} is not UTF-8"
        raise InvalidInput(doing, seen, "name a file with YAML or JSON") from error


async def _apply_site(home: Home, wanted: Site) -> None:
    try:
        current = await home.store.get(Site, wanted.metadata.name)
    except NotFound:
        await home.store.create(wanted)
        out.print(f"site {wanted.metadata.name} created")
        return
    changed = applied_site(current, wanted)
    if changed != current:
        require_safe_change(current, changed, await home.store.list(ControlPlane))
        await home.store.update(changed)
        out.print(f"site {wanted.metadata.name} changed")
    else:
        out.print(f"site {wanted.metadata.name} unchanged")


async def _apply_plane(home: Home, made: Engine, wanted: ControlPlane) -> bool:
    name = wanted.metadata.name
    try:
        current = await home.store.get(ControlPlane, name)
    except NotFound:
        await admit(made, wanted)
        await operations.create(home, wanted, asker())
        out.print(f"plane {name} created")
        return True
    changed = applied_plane(current, wanted)
    await admit(made, changed, current=current)
    if changed.spec == current.spec:
        out.print(f"plane {name} unchanged")
    else:
        await operations.change(home, changed, OperationType.APPLY, asker())
        out.print(f"plane {name} changed")
    return True


@app.command("get")
def get(name: MaybeName = None, output: OutputOption = Output.TABLE) -> None:
    """List planes, or print one as it was declared."""

    async def ask() -> list[ControlPlane]:
        async with opened() as home:
            if name is not None:
                return [await operations.existing(home.store, name)]
            return list(await home.store.list(ControlPlane))

    found = run(ask())
    if output is Output.YAML:
        out.print(dump_yaml(found), end="", highlight=False, markup=False, soft_wrap=True)
    elif output is Output.JSON:
        out.print(dump_json(found), highlight=False, markup=False, soft_wrap=True)
    elif not found and name is None:
        out.print("no planes; create one with 'quarterdeck create NAME'")
    else:
        show(
            [row(each) for each in found],
            ("name", "site", "replicas", "version", "ready", "age"),
            output,
            wide=("endpoint", "etcd"),
        )


@app.command()
def status(name: Name, output: OutputOption = Output.TABLE) -> None:
    """Look at a plane now: members, leaders, load balancers, what is under way. Exit code 1 if it is not well."""
    go_inside(name)

    async def ask() -> dict[str, JsonValue]:
        async with opened() as home, engine(home) as made:
            return summary(await look(made, name))

    fact = run(ask())
    if output in (Output.JSON, Output.YAML):
        show_one(fact, output)
    else:
        print_status(fact, output)
    if not fact["healthy"]:
        raise typer.Exit(1)


@app.command()
def plan(
    name: Name,
    to: Annotated[str | None, typer.Option("--to", help="What would a migration to this site do?")] = None,
    replicas: Annotated[int | None, typer.Option(help="And with this many replicas?")] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show what would be done, step by step, with the quorum margin at each. Changes nothing."""
    go_inside(name)

    async def ask() -> DryRun:
        async with opened() as home, engine(home) as made:
            current = await operations.existing(home.store, name)
            wanted = current
            if to is not None or replicas is not None:
                placement = current.spec.placement if to is None else moved_placement(current, to)
                wanted = operations.moved(current, placement, replicas)
            await home.site(wanted.spec.placement.site)
            return await forecast(made, wanted)

    print_forecast(run(ask()), output)


def moved_placement(plane: ControlPlane, site: str) -> Placement:
    """The placement at another site: zones and storage class are that site's own, unless they have the same names."""
    return plane.spec.placement.model_copy(update={"site": site, "zones": None, "storage_class": None})


@app.command()
def delete(name: Name, yes: Yes = False, detached: Detach = False) -> None:
    """Delete a plane and all its data."""

    async def ask() -> None:
        async with opened() as home:
            await operations.existing(home.store, name)
        confirm(f"delete plane {name} and all its data?", yes=yes)
        async with opened() as home:
            await operations.delete(home, name, asker())

    run(ask())
    _work(name, detached=detached)
    if not detached:
        run(tidy())
        out.print(f"plane {name} is gone")


@app.command()
def kubeconfig(
    name: Name, file: Annotated[Path | None, typer.Option("-f", "--file", help="Write it there, 0600.")] = None
) -> None:
    """Print a kubeconfig for plain kubectl. It stays right before, during and after a migration."""

    async def ask() -> str:
        async with opened() as home:
            return await admin_kubeconfig(home, await operations.existing(home.store, name))

    text = run(ask())
    if file is None:
        sys.stdout.write(text)
    else:
        write_secret(file, text.encode())


@app.command()
def logs(
    name: Name,
    replica: Annotated[str | None, typer.Option(help="Of this replica only.")] = None,
    component: Annotated[Component | None, typer.Option(help="Of this component only.")] = None,
    lines: Annotated[int, typer.Option(help="How many of each.")] = 50,
) -> None:
    """Print the last lines that a plane's programs wrote."""
    go_inside(name)

    async def ask() -> None:
        async with opened() as home:
            resource = await operations.existing(home.store, name)
            records = [each for each in resource.status.memory.replicas if replica in (None, each.name)]
            if not records:
                known = ", ".join(each.name for each in resource.status.memory.replicas) or "none"
                raise NotFound(f"reading logs of plane {name}", f"no replica {replica}", f"replicas: {known}")
            for record in records:
                site = home.local_site(await home.site(record.slot.site))
                for each in Component if component is None else (component,):
                    unit = unit_name(name, record.name, each)
                    text = await site.logs(record.machine, unit, lines=lines)
                    out.print(f"[bold]== {record.name} {each}[/bold]")
                    out.print(text, highlight=False, markup=False, soft_wrap=True)

    run(ask())


@app.command()
def events(name: MaybeName = None, output: OutputOption = Output.TABLE) -> None:
    """Print what is so of planes, said once however often it was seen."""

    async def ask() -> list[dict[str, JsonValue]]:
        async with opened() as home:
            if name is not None:
                await operations.existing(home.store, name)
            return [
                {
                    "last seen": age(each.last),
                    "plane": each.plane,
                    "type": str(each.type),
                    "reason": each.reason,
                    "count": each.count,
                    "message": each.message,
                }
                for each in await home.store.events(name)
            ]

    show(run(ask()), ("last seen", "plane", "type", "reason", "count", "message"), output)


@app.command()
def pause(name: Name) -> None:
    """Have nothing changed by quarterdeck until 'resume'. What runs goes on running."""
    run(_set_paused(name, paused=True))
    out.print(f"plane {name} is paused")


@app.command()
def resume(name: Name) -> None:
    """End a pause, and bring the plane to what is wanted."""
    run(_set_paused(name, paused=False))
    _work(name, detached=False)


async def _set_paused(name: str, *, paused: bool) -> None:
    async with opened() as home:
        await operations.existing(home.store, name)
        await amend(
            home.store,
            ControlPlane,
            name,
            lambda seen: seen.model_copy(update={"spec": seen.spec.model_copy(update={"paused": paused})}),
        )
