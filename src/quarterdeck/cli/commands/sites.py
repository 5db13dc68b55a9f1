"""Commands on sites."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from pydantic import JsonValue

from quarterdeck.api.documents import dump_json, dump_yaml
from quarterdeck.api.errors import explained
from quarterdeck.api.site import Isolation, LocalSpec, Site
from quarterdeck.app import Drain
from quarterdeck.cli.arguments import Detach, OutputOption, SiteName, Yes
from quarterdeck.cli.checks import print_checked, print_odd
from quarterdeck.cli.commands.machines import app as machines_app
from quarterdeck.cli.commands.storage import try_storage
from quarterdeck.cli.context import Output, err, out, run
from quarterdeck.cli.files import text_of
from quarterdeck.cli.opening import go_inside_for_site, opened
from quarterdeck.cli.output import show
from quarterdeck.cli.plan_text import print_forecast
from quarterdeck.cli.work import confirm, detach, follow
from quarterdeck.errors import InvalidInput, PreconditionFailed
from quarterdeck.model.findings import Checked

app = typer.Typer(help="Places with machines, zones and storage classes.", no_args_is_help=True)
app.add_typer(machines_app, name="machines")
app.command("test-storage")(try_storage)


class Driver(StrEnum):
    """What the machines of a site are."""

    LOCAL = "local"
    SSH = "ssh"


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


DriverOption = Annotated[Driver, typer.Option(help="What its machines are: parts of this host, or hosts over ssh.")]
InventoryOption = Annotated[
    Path | None, typer.Option(help="The hosts of a site of driver ssh: YAML; - for standard input.")
]
FetchOnHost = Annotated[
    bool,
    typer.Option("--fetch-on-host", help="Hosts of a site of driver ssh download released programs themselves."),
]
FloatingAddresses = Annotated[
    bool, typer.Option("--floating-addresses", help="These take over each other's addresses (isolation netns).")
]


@app.command()
def add(
    context: typer.Context,
    name: SiteName,
    driver: DriverOption = Driver.LOCAL,
    inventory: InventoryOption = None,
    fetch_on_host: FetchOnHost = False,
    isolation: Annotated[Isolation, typer.Option(help="What keeps its machines apart.")] = Isolation.LOOPBACK,
    zones: Annotated[str, typer.Option(help="Their names, with commas.")] = "a,b,c",
    machines: Annotated[int, typer.Option(help="Machines per zone.")] = 2,
    edges: Annotated[int, typer.Option(help="Machines for load balancers, each in another zone.")] = 1,
    floating_addresses: FloatingAddresses = False,
) -> None:
    """Add a site on this host, or one of hosts over ssh. Sites with more to say come from a file: 'apply -f'.

    A host that planes cannot be on is refused, by what 'site check' says of it.
    """
    doing = f"adding site {name}"
    if driver is Driver.SSH:
        _refuse_given(context, doing, ("isolation", "zones", "machines", "edges", "floating_addresses"), "local")
        site = _of_hosts(doing, name, inventory, fetch_on_host=fetch_on_host)
    else:
        _refuse_given(context, doing, ("inventory", "fetch_on_host"), "ssh")
        spec = {
            "isolation": isolation,
            "zones": tuple(zones.split(",")),
            "machinesPerZone": machines,
            "edges": edges,
            "floatingAddresses": floating_addresses,
        }
        site = _of_this_host(doing, name, spec)

    async def ask() -> Checked:
        async with opened() as quarterdeck:
            return await quarterdeck.sites.add(site)

    print_odd(run(ask()))
    out.print(f"site {name} added")


def _of_this_host(doing: str, name: str, spec: Mapping[str, object]) -> Site:
    with explained(doing, Site):
        return Site.model_validate({"metadata": {"name": name}, "spec": spec})


def _of_hosts(doing: str, name: str, inventory: Path | None, *, fetch_on_host: bool = False) -> Site:
    from quarterdeck.api.sites.inventory import load_inventory, site_of  # few sites are made of hosts

    if inventory is None:
        raise InvalidInput(doing, "a site of driver ssh is made of an inventory", "--inventory hosts.yaml")
    given = load_inventory(text_of(inventory), str(inventory))
    if fetch_on_host:
        given = given.model_copy(update={"fetch_on_host": True})
    return site_of(name, given, str(inventory))


def _refuse_given(context: typer.Context, doing: str, options: Sequence[str], driver: str) -> None:
    """Refuse options that a person gave, and that say nothing of such a site."""
    sources = {each: context.get_parameter_source(each) for each in options}
    given = [each for each, source in sources.items() if source is not None and source.name != "DEFAULT"]
    if given:
        named = ", ".join(f"--{each.replace('_', '-')}" for each in given)
        raise InvalidInput(doing, f"{named}: for sites of driver {driver} only")


@app.command("show")
def show_(name: SiteName, output: OutputOption = Output.YAML) -> None:
    """Print a site as it was declared."""

    site = run(_site(name))
    text = dump_json([site]) if output is Output.JSON else dump_yaml([site])
    out.print(text, end="", highlight=False, markup=False, soft_wrap=True)


async def _site(name: str) -> Site:
    async with opened() as quarterdeck:
        return await quarterdeck.sites.get(name)


@app.command()
def check(
    name: Annotated[str | None, typer.Argument(help="The site's name.", show_default=False)] = None,
    inventory: Annotated[
        Path | None, typer.Option(help="Hosts that are no site yet: YAML; - for standard input.")
    ] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Say everything that stands in the way of planes on hosts, host by host. Nothing is changed there.

    Ends with 5 when anything does.
    """
    doing = "checking a site"
    if (name is None) == (inventory is None):
        raise InvalidInput(doing, "name a site, or an --inventory of hosts that are none yet")

    async def ask() -> Checked:
        async with opened() as quarterdeck:
            if name is not None:
                return await quarterdeck.sites.check(await quarterdeck.sites.get(name))
            return await quarterdeck.sites.check(_of_hosts(doing, "hosts", inventory))

    checked = run(ask())
    print_checked(checked, output)
    if checked.refused:
        raise typer.Exit(PreconditionFailed.exit_code)


@app.command()
def bootstrap(
    host: Annotated[str, typer.Argument(help="What ssh is given: a name or an address.", show_default=False)],
    user: Annotated[str, typer.Option(help="Who quarterdeck is to log in as from now on.")] = "quarterdeck",
    key: Annotated[Path | None, typer.Option(help="The public key that is let in; yours without it.")] = None,
    path: Annotated[
        list[str] | None, typer.Option(help="A folder for volumes besides its own; may be said often.")
    ] = None,
    probe: Annotated[
        bool, typer.Option("--allow-probe", help="Let that user make connections through sshd: see 'probe --from'.")
    ] = False,
    apply: Annotated[bool, typer.Option("--apply", help="Run it there, as a user who may.")] = False,
    login: Annotated[str | None, typer.Option(help="That user, with --apply: root, or one who may run sudo.")] = None,
    port: Annotated[int | None, typer.Option(help="Of the host's sshd.")] = None,
    yes: Yes = False,
) -> None:
    """Print what root has to run on a host, so that a user may do there what quarterdeck does and nothing else."""
    from quarterdeck.api.sites.hosts import SshLogin
    from quarterdeck.app.site.hosts import bootstrap_script, bootstrapped

    doing = f"setting up host {host}"
    with explained(doing, SshLogin):
        SshLogin(user=user)
        way = SshLogin(host=host, user=login, port=port)
    text = bootstrap_script(user=user, keys=[text_of(key or _own_key(doing))], paths=path or (), probe=probe)
    if not apply:
        out.print(text, end="", highlight=False, markup=False, soft_wrap=True)
        return
    confirm(f"on host {host}, make user {user}, who may run quarterdeck's script as root?", yes=yes)
    out.print(f"host {host}: {run(bootstrapped(way, host, text))}", highlight=False, markup=False, soft_wrap=True)


def _own_key(doing: str) -> Path:
    """The public key that ssh would try first."""
    folder = Path.home() / ".ssh"
    found = [folder / f"id_{kind}.pub" for kind in ("ed25519", "ecdsa", "rsa")]
    known = next((each for each in found if each.is_file()), None)
    if known is None:
        raise InvalidInput(doing, f"there is no public key in {folder}", "name one: --key FILE.pub")
    return known


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
def forget(name: SiteName, yes: Yes = False) -> None:
    """Take a site of hosts that are gone for good out of this home, and leave its hosts as they are."""

    async def ask() -> None:
        async with opened() as quarterdeck:
            left = await quarterdeck.sites.require_forgettable(name)
            more = f" ({'; '.join(left)})" if left else ""
            confirm(f"forget site {name}, and all that may be on its hosts{more}?", yes=yes)
            await quarterdeck.sites.forget(name)

    run(ask())
    out.print(f"site {name} forgotten; what is on its hosts is there still")


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
