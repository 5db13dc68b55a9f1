"""Commands on sites."""

from __future__ import annotations

from typing import Annotated

import typer
from pydantic import JsonValue

from quarterdeck.api.documents import dump_json, dump_yaml
from quarterdeck.api.errors import explained
from quarterdeck.api.site import Isolation, LocalSpec, Site
from quarterdeck.app import Drain
from quarterdeck.cli.arguments import Detach, OutputOption, Yes
from quarterdeck.cli.context import Output, enter_lab, err, must_go_inside, out, run
from quarterdeck.cli.opening import go_inside_for_site, opened
from quarterdeck.cli.output import show
from quarterdeck.cli.plan_text import print_forecast
from quarterdeck.cli.work import confirm, detach, follow

app = typer.Typer(help="Places with machines, zones and storage classes.", no_args_is_help=True)

SiteName = Annotated[str, typer.Argument(help="The site's name.", show_default=False)]
MachineName = Annotated[str | None, typer.Argument(help="Which machine; all of the site without one.")]


@app.command("list")
def list_(output: OutputOption = Output.TABLE) -> None:
    """List the sites."""

    async def ask() -> list[dict[str, JsonValue]]:
        async with opened() as quarterdeck:
            planes = await quarterdeck.planes()
            return [
                {
                    "name": name,
                    "driver": site.spec.driver,
                    "isolation": str(site.spec.isolation) if isinstance(site.spec, LocalSpec) else None,
                    "zones": [*site.spec.zones],
                    "machines": site.spec.machines_in(site.spec.zones),
                    "classes": [each.name for each in site.spec.storage_classes],
                    "reattachable": [each.name for each in site.spec.storage_classes if each.reattachable],
                    "planes": [each.metadata.name for each in planes if each.spec.placement.site == name],
                    "cordoned": [each.machine or "all" for each in site.spec.cordons],
                }
                for name, site in (await quarterdeck.sites.list()).items()
            ]

    columns = ("name", "driver", "isolation", "zones", "machines", "classes", "planes", "cordoned")
    show(run(ask()), columns, output, wide=("reattachable",))


@app.command()
def add(
    name: SiteName,
    isolation: Annotated[Isolation, typer.Option(help="What keeps its machines apart.")] = Isolation.LOOPBACK,
    zones: Annotated[str, typer.Option(help="Their names, with commas.")] = "a,b,c",
    machines: Annotated[int, typer.Option(help="Machines per zone.")] = 2,
    edges: Annotated[int, typer.Option(help="Machines for load balancers, each in another zone.")] = 1,
    floating_addresses: Annotated[
        bool, typer.Option("--floating-addresses", help="These take over each other's addresses (isolation netns).")
    ] = False,
) -> None:
    """Add a site on this host. Sites with more to say come from a file: 'apply -f'."""

    async def ask() -> None:
        with explained(f"adding site {name}", Site):
            spec = {
                "isolation": isolation,
                "zones": tuple(zones.split(",")),
                "machinesPerZone": machines,
                "edges": edges,
                "floatingAddresses": floating_addresses,
            }
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
                    "cordoned": each.cordoned or None,
                }
                for each in await quarterdeck.sites.machines(name)
            ]

    show(run(ask()), ("name", "zone", "role", "address", "state", "replicas", "cordoned"), output)


def _inside(name: str) -> None:
    if must_go_inside() and run(_site(name)).spec.network is Isolation.NETNS:
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


@app.command()
def cordon(name: SiteName, machine: MachineName = None) -> None:
    """Have no new replica be put on a machine, or on any of the site. What is there goes on."""

    async def ask() -> bool:
        async with opened() as quarterdeck:
            return await quarterdeck.sites.cordon(name, machine)

    out.print(f"{_what(name, machine)} cordoned{'' if run(ask()) else ' already'}")


@app.command()
def uncordon(name: SiteName, machine: MachineName = None) -> None:
    """Take a cordon back; without a machine all of the site's."""

    async def ask() -> bool:
        async with opened() as quarterdeck:
            return await quarterdeck.sites.uncordon(name, machine)

    out.print(f"{_what(name, machine)} {'cordoned no more' if run(ask()) else 'not cordoned'}")


def _what(name: str, machine: str | None) -> str:
    return f"machine {machine} of site {name} is" if machine else f"all machines of site {name} are"


@app.command()
def drain(name: SiteName, machine: MachineName = None, yes: Yes = False, detached: Detach = False) -> None:
    """Cordon a machine, and have every replica on it, of every plane, exchanged for one elsewhere while all serve."""
    go_inside_for_site(name)
    planned = run(_drain(name, machine))
    planned.require()
    for each in planned.planes:
        err.print(f"plane {each.name}:")
        if each.forecast is not None:
            print_forecast(each.forecast, Output.TABLE)
    planes = ", ".join(each.name for each in planned.planes) or "no plane"
    confirm(f"drain {planned.what}: exchange replicas of {planes}?", yes=yes)
    run(_asked(planned))
    for each in planned.planes:
        if detached:
            detach(each.name)
        else:
            run(follow(each.name))
    if planned.served:
        out.print(f"the load balancers of site {name} go on: clients of {', '.join(planned.served)} may use them")
    still = () if detached else run(_left(name, machine))
    so = f"still there: {', '.join(still)}" if still else "cordoned"
    out.print(f"{planned.what}: {so}")


async def _drain(name: str, machine: str | None) -> Drain:
    async with opened() as quarterdeck:
        return await quarterdeck.plan_drain(name, machine)


async def _asked(planned: Drain) -> None:
    async with opened() as quarterdeck:
        await quarterdeck.drain(planned)


async def _left(name: str, machine: str | None) -> tuple[str, ...]:
    async with opened() as quarterdeck:
        return await quarterdeck.left_to_drain(name, machine)
