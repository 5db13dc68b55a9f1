"""The main job with embedded defaults: create a control plane, put load on it, move it live, report."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Annotated

import typer

from quarterdeck.api.controlplane import ControlPlane, new_control_plane
from quarterdeck.api.operation import Operation
from quarterdeck.app import Create, Delete, Migrate, Programs
from quarterdeck.cli.context import err, out, run
from quarterdeck.cli.fetching import RichProgress
from quarterdeck.cli.opening import opened, tidy
from quarterdeck.cli.watching import probed_drive
from quarterdeck.cli.work import follow, gone

if TYPE_CHECKING:
    from quarterdeck.report.schema import Report

app = typer.Typer()

SITES = ("east", "west")


@app.command()
def demo(
    name: Annotated[str, typer.Option(help="The plane's name.")] = "demo",
    replicas: Annotated[int, typer.Option(help="1, 3, 5 or 7.")] = 3,
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
    with RichProgress(err) as progress:
        await Programs.from_environment(os.environ, progress=progress).fetch()


async def _create(name: str, replicas: int) -> None:
    async with opened() as quarterdeck:
        if name not in {each.metadata.name for each in await quarterdeck.planes()}:
            await quarterdeck.ask(Create(new_control_plane(name, site=SITES[0], replicas=replicas)))
    await follow(name)


async def _plane(name: str) -> ControlPlane:
    async with opened() as quarterdeck:
        return await quarterdeck.plane(name)


async def _move(name: str, site: str, quiet: float) -> Report:
    async def ask() -> Operation:
        async with opened() as quarterdeck:
            operation = await quarterdeck.ask(Migrate(name, site))
        assert operation is not None, "it is elsewhere"
        return operation

    return await probed_drive(name, quiet=quiet, ask=ask)


async def _delete(name: str) -> None:
    async with opened() as quarterdeck:
        await quarterdeck.ask(Delete(name))
    if not await gone(name):
        await follow(name)
    await tidy()
