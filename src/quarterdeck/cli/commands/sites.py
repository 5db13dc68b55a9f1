"""Commands on sites, and on their storage classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from quarterdeck.api.errors import explained
from quarterdeck.api.output.operations import ChangeResult
from quarterdeck.api.output.sites import DrainResult, SiteRow, StoragePromise
from quarterdeck.api.site import Isolation, LocalSpec, Site
from quarterdeck.app import Drain, Quarterdeck
from quarterdeck.cli.arguments import Detach, OutputOption, SiteName, UnnamedOption, Yes, text_of
from quarterdeck.cli.commands.machines import app as machines_app
from quarterdeck.cli.context import Output, UnnamedOutput, err, out, plain, run
from quarterdeck.cli.groups import command, group
from quarterdeck.cli.open_home import call, go_inside_for_site
from quarterdeck.cli.output import Column, document, done, emit, show
from quarterdeck.cli.plan_text import print_checked, print_forecast, print_odd
from quarterdeck.cli.work import confirm, detach, follow
from quarterdeck.errors import InvalidInput, PreconditionFailed
from quarterdeck.model.findings import Checked

app = group("Add, check, drain and remove sites and their machines.")
app.add_typer(machines_app, name="machines")


class DriverName(StrEnum):
    """What the machines of a site are."""

    LOCAL = "local"
    SSH = "ssh"


MachineName = Annotated[str | None, typer.Argument(help="The machine (default: the whole site).")]

ClassName = Annotated[str, typer.Argument(metavar="CLASS", help="The storage class.", show_default=False)]
Machines = Annotated[
    list[str] | None, typer.Option("--machine", help="A machine to test on; give two (default: any two that answer).")
]


@command(app, "site test-storage rack fast", name="test-storage")
def try_storage(
    name: SiteName,
    storage_class: ClassName,
    machine: Machines = None,
    output: UnnamedOption = UnnamedOutput.TABLE,
) -> None:
    """Test the commands of a storage class with a volume made for the test."""

    async def tried(face: Quarterdeck) -> list[StoragePromise]:
        found = []
        async for each in face.sites.test_storage(name, storage_class, tuple(machine or ())):
            found.append(StoragePromise(message=each.words, kept=each.kept, reason=each.seen or None))
            if output.for_people:
                plain(f"kept    {each.words}" if each.kept else f"BROKEN  {each.words}: {each.seen}")
        return found

    promises = call(tried)
    emit(promises, output, lambda: None)
    if broken := sum(not each.kept for each in promises):
        words = "1 promise is" if broken == 1 else f"{broken} promises are"
        raise PreconditionFailed(
            f"trying storage class {storage_class}", f"{words} not kept", "see docs/how-to/storage.md"
        )
    err.print("not tried: detach while a host does not answer", highlight=False)


_COLUMNS: tuple[Column[SiteRow], ...] = (
    Column("name", lambda row: row.name),
    Column("driver", lambda row: row.driver),
    Column("isolation", lambda row: row.isolation),
    Column("zones", lambda row: row.zones),
    Column("machines", lambda row: row.machines),
    Column("classes", lambda row: row.storage_classes),
    Column("planes", lambda row: row.planes),
    Column("cordoned", lambda row: row.cordoned),
    Column("reattachable", lambda row: row.reattachable, wide=True),
)


@command(app, "site list", name="list")
def list_(output: OutputOption = Output.TABLE) -> None:
    """List the sites."""

    async def rows(face: Quarterdeck) -> list[SiteRow]:
        planes = await face.planes()
        return [
            SiteRow(
                name=name,
                driver=site.spec.driver,
                isolation=str(site.spec.isolation) if isinstance(site.spec, LocalSpec) else None,
                zones=site.spec.zones,
                machines=site.spec.machines_in(site.spec.zones),
                storage_classes=tuple(each.name for each in site.spec.storage_classes),
                reattachable=tuple(each.name for each in site.spec.storage_classes if each.reattachable),
                planes=tuple(each.name for each in planes if each.spec.placement.site == name),
                cordoned=tuple(each.machine or "all" for each in site.spec.cordons),
            )
            for name, site in (await face.sites.list()).items()
        ]

    show(call(rows), _COLUMNS, output)


def _changed(name: str, action: str, machine: str | None = None, *, news: bool = True) -> ChangeResult:
    if machine is not None:
        return ChangeResult(resource="machine", name=machine, site=name, action=action, changed=news)
    return ChangeResult(resource="site", name=name, action=action, changed=news)


DriverOption = Annotated[
    DriverName, typer.Option(help="The kind of machines: parts of this host, or hosts reached by ssh.")
]
InventoryOption = Annotated[
    Path | None, typer.Option(help="YAML file with the hosts of a site of driver ssh; - for standard input.")
]
FetchOnHost = Annotated[
    bool,
    typer.Option(
        "--fetch-on-host", help="Let the hosts of a site of driver ssh download released programs themselves."
    ),
]
FloatingAddresses = Annotated[
    bool,
    typer.Option("--floating-addresses", help="Let load balancers take over each other's addresses (isolation netns)."),
]


@command(app, "site add north --zones a,b,c --machines 2", "site add rack --driver ssh --inventory hosts.yaml")
def add(
    context: typer.Context,
    name: SiteName,
    driver: DriverOption = DriverName.LOCAL,
    inventory: InventoryOption = None,
    fetch_on_host: FetchOnHost = False,
    isolation: Annotated[Isolation, typer.Option(help="How the machines are kept apart.")] = Isolation.LOOPBACK,
    zones: Annotated[str, typer.Option(help="The names of the zones, separated by commas.")] = "a,b,c",
    machines: Annotated[int, typer.Option(help="Machines per zone.")] = 2,
    edges: Annotated[int, typer.Option(help="Machines for load balancers, each in a different zone.")] = 1,
    floating_addresses: FloatingAddresses = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Add a site on this host, or of hosts reached by ssh.

    A host that fails 'site check' is refused. For storage classes and more use a file: 'apply -f'.
    """
    doing = f"adding site {name}"
    if driver is DriverName.SSH:
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

    checked = call(lambda face: face.sites.add(site))
    if output.for_people:
        print_odd(checked)
    done(_changed(name, "add"), output, f"site {name} added")


def _of_this_host(doing: str, name: str, spec: Mapping[str, object]) -> Site:
    with explained(doing, Site):
        return Site.model_validate({"metadata": {"name": name}, "spec": spec})


def _of_hosts(doing: str, name: str, inventory: Path | None, *, fetch_on_host: bool = False) -> Site:
    from quarterdeck.api.inventory import load_inventory, site_of  # few sites are made of hosts

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


@command(app, "site show rack", name="show")
def show_(name: SiteName, output: OutputOption = Output.YAML) -> None:
    """Print the spec of a site."""
    site = call(lambda face: face.sites.get(name))
    document([site], Output.YAML if output.for_people else output)


@command(app, "site check rack", "site check --inventory hosts.yaml")
def check(
    name: Annotated[str | None, typer.Argument(help="The site's name.", show_default=False)] = None,
    inventory: Annotated[
        Path | None, typer.Option(help="YAML file with hosts that are not in a site yet; - for standard input.")
    ] = None,
    output: UnnamedOption = UnnamedOutput.TABLE,
) -> None:
    """Check hosts for everything that would prevent planes from running, and change nothing.

    Exits 5 if anything would.
    """
    doing = "checking a site"
    if (name is None) == (inventory is None):
        raise InvalidInput(doing, "name a site, or an --inventory of hosts that are none yet")

    async def check_hosts(face: Quarterdeck) -> Checked:
        site = await face.sites.get(name) if name is not None else _of_hosts(doing, "hosts", inventory)
        return await face.sites.check(site)

    checked = call(check_hosts)
    print_checked(checked, output)
    if checked.refused:
        raise typer.Exit(PreconditionFailed.exit_code)


@command(app, "site bootstrap cp-1", "site bootstrap cp-1 --apply --login root")
def bootstrap(
    host: Annotated[str, typer.Argument(help="The host as ssh knows it: a name or an address.", show_default=False)],
    user: Annotated[str, typer.Option(help="The user that quarterdeck logs in as.")] = "quarterdeck",
    key: Annotated[Path | None, typer.Option(help="The public key of quarterdeck (default: yours).")] = None,
    path: Annotated[list[str] | None, typer.Option(help="One more folder for volumes; can be repeated.")] = None,
    probe: Annotated[
        bool, typer.Option("--allow-probe", help="Let that user forward connections through sshd, for 'probe --from'.")
    ] = False,
    apply: Annotated[bool, typer.Option("--apply", help="Run the script on the host.")] = False,
    login: Annotated[
        str | None, typer.Option(help="The user that runs it with --apply: root, or a user with sudo.")
    ] = None,
    port: Annotated[int | None, typer.Option(help="The port of the host's sshd.")] = None,
    yes: Yes = False,
) -> None:
    """Print the setup script of a host, which gives a user the rights that quarterdeck needs and no others."""
    from quarterdeck.api.hosts import SshLogin
    from quarterdeck.app.site.hosts import bootstrap_script, bootstrapped

    doing = f"setting up host {host}"
    with explained(doing, SshLogin):
        SshLogin(user=user)
        way = SshLogin(host=host, user=login, port=port)
    text = bootstrap_script(user=user, keys=[text_of(key or _own_key(doing))], paths=path or (), probe=probe)
    if not apply:
        plain(text, end="")
        return
    confirm(f"on host {host}, make user {user}, who may run quarterdeck's script as root?", yes=yes)
    plain(f"host {host}: {run(bootstrapped(way, host, text))}")


def _own_key(doing: str) -> Path:
    """The public key that ssh would try first."""
    folder = Path.home() / ".ssh"
    found = [folder / f"id_{kind}.pub" for kind in ("ed25519", "ecdsa", "rsa")]
    known = next((each for each in found if each.is_file()), None)
    if known is None:
        raise InvalidInput(doing, f"there is no public key in {folder}", "name one: --key FILE.pub")
    return known


@command(app, "site remove north")
def remove(name: SiteName, yes: Yes = False, output: OutputOption = Output.TABLE) -> None:
    """Remove a site that no plane uses."""
    call(lambda face: face.sites.require_unused(name))
    confirm(f"remove site {name} and its machines?", yes=yes)
    call(lambda face: face.sites.remove(name))
    done(_changed(name, "remove"), output, f"site {name} removed")


@command(app, "site forget rack")
def forget(name: SiteName, yes: Yes = False, output: OutputOption = Output.TABLE) -> None:
    """Remove a site whose hosts are gone for good, and leave the hosts as they are."""
    left = call(lambda face: face.sites.require_forgettable(name))
    more = f" ({'; '.join(left)})" if left else ""
    confirm(f"forget site {name}, and all that may be on its hosts{more}?", yes=yes)
    call(lambda face: face.sites.forget(name))
    done(_changed(name, "forget"), output, f"site {name} forgotten; what is on its hosts is there still")


@command(app, "site cordon rack cp-2", "site cordon rack")
def cordon(name: SiteName, machine: MachineName = None, output: OutputOption = Output.TABLE) -> None:
    """Keep new replicas off a machine or off a whole site. Existing replicas stay."""
    news = call(lambda face: face.sites.cordon(name, machine))
    text = f"{_what(name, machine)} cordoned{'' if news else ' already'}"
    done(_changed(name, "cordon", machine, news=news), output, text)


@command(app, "site uncordon rack cp-2")
def uncordon(name: SiteName, machine: MachineName = None, output: OutputOption = Output.TABLE) -> None:
    """Remove the cordon of a machine, or all cordons of a site."""
    news = call(lambda face: face.sites.uncordon(name, machine))
    text = f"{_what(name, machine)} {'cordoned no more' if news else 'not cordoned'}"
    done(_changed(name, "uncordon", machine, news=news), output, text)


def _what(name: str, machine: str | None) -> str:
    return f"machine {machine} of site {name} is" if machine else f"all machines of site {name} are"


@command(app, "site drain rack cp-2", "site drain rack --detach")
def drain(
    name: SiteName,
    machine: MachineName = None,
    yes: Yes = False,
    detached: Detach = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Cordon a machine or site, and replace all replicas on it elsewhere while the planes serve."""
    go_inside_for_site(name)
    planned = call(lambda face: face.plan_drain(name, machine))
    planned.require()
    for each in planned.planes if output.for_people else ():
        err.print(f"plane {each.name}:")
        if each.forecast is not None:
            print_forecast(each.forecast)
    names = tuple(each.name for each in planned.planes)
    confirm(f"drain {planned.what}: exchange replicas of {', '.join(names) or 'no plane'}?", yes=yes)
    call(lambda face: face.drain(planned))
    for plane in names:
        if detached:
            detach(plane, output)
        else:
            follow(plane)
    still = () if detached else call(lambda face: face.left_to_drain(name, machine))
    result = DrainResult(**dict(_changed(name, "drain", machine)), planes=names, remaining=tuple(still))
    emit(result, output, lambda: _tell_drained(planned, result))


def _tell_drained(planned: Drain, result: DrainResult) -> None:
    if planned.served:
        served = ", ".join(planned.served)
        out.print(f"the load balancers of site {planned.site} go on: clients of {served} may use them")
    state = f"still there: {', '.join(result.remaining)}" if result.remaining else "cordoned"
    out.print(f"{planned.what}: {state}")
