"""Commands on sites."""

from __future__ import annotations

from typing import Annotated

import typer
from pydantic import JsonValue

from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.documents import dump_json, dump_yaml
from quarterdeck.api.errors import explained
from quarterdeck.api.site import Isolation, Site
from quarterdeck.cli.arguments import OutputOption, Yes
from quarterdeck.cli.context import Output, go_inside_lab, here, opened, out, run
from quarterdeck.cli.output import show
from quarterdeck.cli.work import confirm
from quarterdeck.engine.site_use import require_unused
from quarterdeck.sites.netns.lab import Lab

app = typer.Typer(help="Places with machines, zones and storage classes.", no_args_is_help=True)

SiteName = Annotated[str, typer.Argument(help="The site's name.", show_default=False)]


@app.command("list")
def list_(output: OutputOption = Output.TABLE) -> None:
    """List the sites."""

    async def ask() -> list[dict[str, JsonValue]]:
        async with opened() as home:
            planes = await home.store.list(ControlPlane)
            return [
                {
                    "name": site.metadata.name,
                    "isolation": str(site.spec.isolation),
                    "zones": [*site.spec.zones],
                    "machines": len(site.spec.zones) * site.spec.machines_per_zone,
                    "classes": [each.name for each in site.spec.storage_classes],
                    "planes": [each.metadata.name for each in planes if each.spec.placement.site == site.metadata.name],
                }
                for site in await home.store.list(Site)
            ]

    show(run(ask()), ("name", "isolation", "zones", "machines", "classes", "planes"), output)


@app.command()
def add(
    name: SiteName,
    isolation: Annotated[Isolation, typer.Option(help="What keeps its machines apart.")] = Isolation.LOOPBACK,
    zones: Annotated[str, typer.Option(help="Their names, with commas.")] = "a,b,c",
    machines: Annotated[int, typer.Option(help="Machines per zone.")] = 2,
) -> None:
    """Add a site on this host. Sites with more to say come from a file: 'apply -f'."""

    async def ask() -> None:
        with explained(f"adding site {name}", Site):
            spec = {"isolation": isolation, "zones": tuple(zones.split(",")), "machinesPerZone": machines}
            site = Site.model_validate({"metadata": {"name": name}, "spec": spec})
        if isolation is Isolation.NETNS:
            await Lab.open(here())  # says so if the host does not allow it
        async with opened() as home:
            await home.store.create(site)

    run(ask())
    out.print(f"site {name} added")


@app.command("show")
def show_(name: SiteName, output: OutputOption = Output.YAML) -> None:
    """Print a site as it was declared."""

    async def ask() -> Site:
        async with opened() as home:
            return await home.site(name)

    site = run(ask())
    text = dump_json([site]) if output is Output.JSON else dump_yaml([site])
    out.print(text, end="", highlight=False, markup=False, soft_wrap=True)


@app.command()
def machines(name: SiteName, output: OutputOption = Output.TABLE) -> None:
    """List a site's machines, their state, and what is on them."""
    _inside(name)

    async def ask() -> list[dict[str, JsonValue]]:
        async with opened() as home:
            driver = home.local_site(await home.site(name))
            replicas = {
                (each.slot.site, each.machine): f"{plane.metadata.name}/{each.name}"
                for plane in await home.store.list(ControlPlane)
                for each in plane.status.memory.replicas
            }
            return [
                {
                    "name": each.name,
                    "zone": each.zone,
                    "role": str(each.role),
                    "address": each.address,
                    "state": str(each.state),
                    "replicas": replicas.get((name, each.name)),
                }
                for each in await driver.machines()
            ]

    show(run(ask()), ("name", "zone", "role", "address", "state", "replicas"), output)


def _inside(name: str) -> None:
    async def kind() -> Isolation:
        async with opened() as home:
            return (await home.site(name)).spec.isolation

    if run(kind()) is Isolation.NETNS:
        go_inside_lab()


@app.command()
def remove(name: SiteName, yes: Yes = False) -> None:
    """Remove a site that no plane uses."""

    async def ask() -> None:
        async with opened() as home:
            site = await home.site(name)
            require_unused(name, await home.store.list(ControlPlane))
            confirm(f"remove site {name} and its machines?", yes=yes)
            await home.local_site(site).destroy()
            await home.store.delete(Site, name)

    run(ask())
    out.print(f"site {name} removed")
