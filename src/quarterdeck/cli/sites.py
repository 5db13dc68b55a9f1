"""Commands on sites."""

from __future__ import annotations

from typing import Annotated

import typer
from pydantic import JsonValue

from quarterdeck.api.documents import dump_json, dump_yaml
from quarterdeck.api.errors import explained
from quarterdeck.api.site import Isolation, Site
from quarterdeck.cli.arguments import OutputOption, Yes
from quarterdeck.cli.context import Output, enter_lab, must_go_inside, out, run
from quarterdeck.cli.opening import opened
from quarterdeck.cli.output import show
from quarterdeck.cli.work import confirm

app = typer.Typer(help="Places with machines, zones and storage classes.", no_args_is_help=True)

SiteName = Annotated[str, typer.Argument(help="The site's name.", show_default=False)]


@app.command("list")
def list_(output: OutputOption = Output.TABLE) -> None:
    """List the sites."""

    async def ask() -> list[dict[str, JsonValue]]:
        async with opened() as quarterdeck:
            planes = await quarterdeck.planes()
            return [
                {
                    "name": name,
                    "isolation": str(site.spec.isolation),
                    "zones": [*site.spec.zones],
                    "machines": len(site.spec.zones) * site.spec.machines_per_zone,
                    "classes": [each.name for each in site.spec.storage_classes],
                    "planes": [each.metadata.name for each in planes if each.spec.placement.site == name],
                }
                for name, site in (await quarterdeck.sites.list()).items()
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
        async with opened() as quarterdeck:
            await quarterdeck.sites.add(site)

    run(ask())
    out.print(f"site {name} added")


@app.command("show")
def show_(name: SiteName, output: OutputOption = Output.YAML) -> None:
    """Print a site as it was declared."""

    site = run(_site(name))
    text = dump_json([site]) if output is Output.JSON else dump_yaml([site])
    out.print(text, end="", highlight=False, markup=False, soft_wrap=True)


@app.command()
def machines(name: SiteName, output: OutputOption = Output.TABLE) -> None:
    """List a site's machines, their state, and what is on them."""
    _inside(name)

    async def ask() -> list[dict[str, JsonValue]]:
        async with opened() as quarterdeck:
            return [
                {
                    "name": each.machine.name,
                    "zone": each.machine.zone,
                    "role": str(each.machine.role),
                    "address": each.machine.address,
                    "state": str(each.machine.state),
                    "replicas": each.replica,
                }
                for each in await quarterdeck.sites.machines(name)
            ]

    show(run(ask()), ("name", "zone", "role", "address", "state", "replicas"), output)


def _inside(name: str) -> None:
    if must_go_inside() and run(_site(name)).spec.isolation is Isolation.NETNS:
        enter_lab()


async def _site(name: str) -> Site:
    async with opened() as quarterdeck:
        return await quarterdeck.sites.get(name)


@app.command()
def remove(name: SiteName, yes: Yes = False) -> None:
    """Remove a site that no plane uses."""

    async def ask() -> None:
        async with opened() as quarterdeck:
            await quarterdeck.sites.require_unused(name)
            confirm(f"remove site {name} and its machines?", yes=yes)
            await quarterdeck.sites.remove(name)

    run(ask())
    out.print(f"site {name} removed")
