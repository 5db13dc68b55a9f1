"""Commands on the machines of sites."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from quarterdeck.api.output.operations import ChangeResult
from quarterdeck.api.output.sites import MachineRow
from quarterdeck.api.site import Isolation
from quarterdeck.cli.arguments import OutputOption, SiteName, Yes, text_of
from quarterdeck.cli.context import Output, enter_lab, must_go_inside, out
from quarterdeck.cli.groups import command, group
from quarterdeck.cli.open_home import call
from quarterdeck.cli.output import Column, done, emit, show
from quarterdeck.cli.plan_text import print_odd
from quarterdeck.cli.work import confirm
from quarterdeck.errors import InvalidInput

app = group(
    "List and change the machines of a site ('machines SITE' is short for 'machines list SITE').", default="list"
)

HostName = Annotated[str, typer.Argument(help="The host's name; 'site show' lists them.", show_default=False)]


_COLUMNS: tuple[Column[MachineRow], ...] = (
    Column("name", lambda row: row.name),
    Column("zone", lambda row: row.zone),
    Column("role", lambda row: row.role),
    Column("address", lambda row: row.address),
    Column("state", lambda row: row.state),
    Column("replicas", lambda row: row.replicas),
    Column("cordoned", lambda row: row.reason),
    Column("why", lambda row: row.message),
)


@command(app, "site machines rack", name="list")
def list_(name: SiteName, output: OutputOption = Output.TABLE) -> None:
    """List the machines of a site with their state and replicas."""
    if must_go_inside() and call(lambda face: face.sites.get(name)).spec.network is Isolation.NETNS:
        enter_lab()
    rows = [
        MachineRow(
            name=each.machine.name,
            site=name,
            zone=each.machine.zone,
            role=str(each.machine.role),
            address=each.machine.address,
            state=str(each.machine.state),
            message=each.machine.why or None,
            replicas=each.replica,
            cordoned=bool(each.cordoned),
            reason=each.cordoned or None,
        )
        for each in call(lambda face: face.sites.machines(name))
    ]
    show(rows, _COLUMNS, output)


def _changed(site: str, host: str, action: str, *, news: bool = True) -> ChangeResult:
    return ChangeResult(resource="machine", name=host, site=site, action=action, changed=news)


@command(app, "site machines add rack --inventory more-hosts.yaml")
def add(
    name: SiteName,
    inventory: Annotated[Path, typer.Option(help="YAML file with the new hosts; - for standard input.")],
    output: OutputOption = Output.TABLE,
) -> None:
    """Add hosts to a site of driver ssh.

    A host that fails 'site check' is refused.
    """
    from quarterdeck.api.inventory import load_inventory

    given = load_inventory(text_of(inventory), str(inventory), whole=False)
    for field, written in (("storage_classes", "storageClasses"), ("fetch_on_host", "fetchOnHost"), ("edge", "edge")):
        if field in given.model_fields_set:
            seen = f"{written}: that of a site that exists is changed by 'apply -f'"
            raise InvalidInput(f"reading {inventory}", seen, "leave it out")
    checked = call(lambda face: face.sites.add_hosts(name, given.declared))
    if output.for_people:
        print_odd(checked)
    text = f"site {name} has {', '.join(each.name for each in given.declared)}"
    emit([_changed(name, each.name, "add") for each in given.declared], output, lambda: out.print(text))


@command(app, "site machines remove rack cp-2", "site machines remove rack cp-2 --forget")
def remove(
    name: SiteName,
    host: HostName,
    forget: Annotated[bool, typer.Option("--forget", help="The host is gone for good: do not clean it up.")] = False,
    yes: Yes = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Remove an unused host from a site, and delete everything that quarterdeck put on it."""
    call(lambda face: face.sites.require_spare(name, host))
    how = "leave what is on it" if forget else "remove what quarterdeck has there"
    confirm(f"take host {host} out of site {name}, and {how}?", yes=yes)
    call(lambda face: face.sites.remove_host(name, host, forget=forget))
    done(_changed(name, host, "remove"), output, f"host {host} is of site {name} no more")


@command(app, "site machines replace rack cp-2 --address 10.0.0.12")
def replace(
    name: SiteName,
    host: HostName,
    address: Annotated[
        str | None, typer.Option(help="The address at which clients and other hosts reach the host.")
    ] = None,
    target: Annotated[
        str | None, typer.Option("--host", help="The name that ssh connects to (default: the address).")
    ] = None,
    port: Annotated[int | None, typer.Option(help="The port of its sshd.")] = None,
    user: Annotated[str | None, typer.Option(help="The user that logs in.")] = None,
    identity_file: Annotated[str | None, typer.Option(help="The private key of that user.")] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Change how a host is reached, for example after a new installation.

    The host must answer at once. A host with the same address needs no change, only its new key in known_hosts.
    """
    from quarterdeck.api.errors import explained
    from quarterdeck.api.hosts import SshLogin

    doing = f"replacing host {host} of site {name}"
    given = {"host": target, "port": port, "user": user, "identityFile": identity_file}
    settings = {key: value for key, value in given.items() if value is not None}
    if address is None and not settings:
        next_step = "give --address, --host, --port, --user or --identity-file"
        raise InvalidInput(doing, "no change of the host was given", next_step)
    with explained(doing, SshLogin):
        login = SshLogin.model_validate(settings)
    checked = call(lambda face: face.sites.replace_host(name, host, address=address, login=login))
    if output.for_people:
        print_odd(checked)
    news = "was reached so already" if checked is None else "is reached as you say"
    done(_changed(name, host, "replace", news=checked is not None), output, f"host {host} of site {name} {news}")
