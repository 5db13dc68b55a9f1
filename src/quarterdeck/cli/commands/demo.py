"""The main job with embedded defaults: create a control plane, put load on it, move it live, report."""

from __future__ import annotations

import os
import time
from typing import Annotated

import typer

from quarterdeck.api.controlplane import new_control_plane
from quarterdeck.api.operation import Operation
from quarterdeck.app import Create, Delete, Migrate, Programs, Quarterdeck
from quarterdeck.cli.arguments import ReplicaCount
from quarterdeck.cli.context import err, out, read, run
from quarterdeck.cli.durations import duration_option
from quarterdeck.cli.fetch_progress import RichProgress
from quarterdeck.cli.groups import command, group
from quarterdeck.cli.open_home import call, tidy
from quarterdeck.cli.work import follow, gone, probed_drive

app = group()

SITES = ("east", "west")


@command(app, "demo", "demo --replicas 5 --keep")
def demo(
    name: Annotated[str, typer.Option(help="The plane's name.")] = "demo",
    replicas: ReplicaCount = 3,
    baseline: Annotated[
        float, duration_option("--baseline", "How long the clients measure before the migration (default: 15s).")
    ] = 15.0,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the plane at the end.")] = False,
) -> None:
    """Create a plane, migrate it live under load, and report what clients saw."""
    since = time.monotonic()
    err.rule("[bold]1. upstream programs")
    with RichProgress(err) as progress:
        run(Programs.from_environment(os.environ, progress=progress).fetch())
    err.rule("[bold]2. a highly available control plane at east")
    call(lambda face: _create(face, name, replicas))
    follow(name)
    err.rule("[bold]3. its live migration, watched by real clients")
    here = read(lambda records: records.plane(name)).spec.placement.site
    there = next(site for site in SITES if site != here)
    report = probed_drive(name, baseline=baseline, ask=lambda face: _move(face, name, there))
    err.rule("[bold]4. done")
    out.print(f"all in {time.monotonic() - since:.0f} s; plane {name} is at {there} now")
    if keep:
        out.print(
            f"next: quarterdeck status {name}; quarterdeck kubeconfig {name} --output-file {name}.kubeconfig; "
            f"quarterdeck migrate {name} --to {here}"
        )
    else:
        call(lambda face: face.ask(Delete(name)))
        if not gone(name):
            follow(name)
        tidy()
        out.print(f"plane {name} is deleted again (keep it with --keep)")
    if not report.holds:
        raise typer.Exit(1)


async def _create(face: Quarterdeck, name: str, replicas: int) -> None:
    if name not in {each.metadata.name for each in await face.planes()}:
        await face.ask(Create(new_control_plane(name, site=SITES[0], replicas=replicas)))


async def _move(face: Quarterdeck, name: str, site: str) -> Operation:
    operation = await face.ask(Migrate(name, site))
    assert operation is not None, "it is elsewhere"
    return operation
