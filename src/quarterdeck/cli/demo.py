"""The main job with embedded defaults: create a control plane, put load on it, move it live, report."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from quarterdeck.api.controlplane import ControlPlane, new_control_plane
from quarterdeck.api.operation import OperationType
from quarterdeck.cli.context import asker, engine, err, opened, out, run, tidy
from quarterdeck.cli.planes import moved_placement
from quarterdeck.cli.watching import probed_drive
from quarterdeck.cli.work import drive
from quarterdeck.engine import operations
from quarterdeck.engine.admission import admit
from quarterdeck.engine.preconditions import require
from quarterdeck.errors import NotFound
from quarterdeck.report.schema import Report
from quarterdeck.upstream.catalog import CONTROL_PLANE, Versions

app = typer.Typer()

SITES = ("east", "west")


@app.command()
def demo(
    name: Annotated[str, typer.Option(help="The plane's name.")] = "demo",
    replicas: Annotated[int, typer.Option(help="1, 3 or 5.")] = 3,
    quiet: Annotated[float, typer.Option(help="Seconds that the clients look at the quiet plane before.")] = 15.0,
    keep: Annotated[bool, typer.Option("--keep", help="Leave the plane running at the end.")] = False,
) -> None:
    """Create a 3-replica control plane, move it live to another site under load, and report what clients saw."""
    since = time.monotonic()
    err.rule("[bold]1. upstream programs")
    run(_fetch())
    err.rule("[bold]2. a highly available control plane at east")
    run(_create(name, replicas))
    err.rule("[bold]3. its live migration, watched by real clients")
    plane = run(_plane(name))
    here = plane.spec.placement.site
    there = next(site for site in SITES if site != here)
    report = run(_move(name, there, quiet))
    err.rule("[bold]4. done")
    out.print(f"all in {time.monotonic() - since:.0f} s; plane {name} is at {there} now")
    if keep:
        out.print(
            f"next: quarterdeck status {name}; quarterdeck kubeconfig {name} -f {name}.kubeconfig; "
            f"quarterdeck migrate {name} --to {here}"
        )
    else:
        run(_delete(name))
        out.print(f"plane {name} is deleted again (keep it with --keep)")
    if not report.holds:
        raise typer.Exit(1)


async def _fetch() -> None:
    async with opened() as home, engine(home) as made:
        await made.upstream.ensure(CONTROL_PLANE, Versions())


async def _create(name: str, replicas: int) -> None:
    async with opened() as home, engine(home) as made:
        try:
            await home.store.get(ControlPlane, name)
        except NotFound:
            plane = new_control_plane(name, site=SITES[0], replicas=replicas)
            await admit(made, plane)
            await operations.create(home, plane, asker())
    await drive(name)


async def _plane(name: str) -> ControlPlane:
    async with opened() as home:
        return await operations.existing(home.store, name)


async def _move(name: str, site: str, quiet: float) -> Report:
    async def ask() -> str:
        async with opened() as home, engine(home) as made:
            current = await operations.existing(home.store, name)
            wanted = operations.moved(current, moved_placement(current, site), None)
            await require(made, current, wanted, allow_distance=False)
            return (await operations.change(home, wanted, OperationType.MIGRATE, asker())).metadata.name

    return await probed_drive(name, quiet=quiet, ask=ask)


async def _delete(name: str) -> None:
    async with opened() as home:
        await operations.delete(home, name, asker())
    await drive(name)
    await tidy()
