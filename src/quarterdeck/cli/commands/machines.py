"""Commands on the machines of sites."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from pydantic import JsonValue

from quarterdeck.api.site import Isolation
from quarterdeck.cli.arguments import OutputOption, SiteName, Yes, text_of
from quarterdeck.cli.context import Output, enter_lab, must_go_inside, out
from quarterdeck.cli.groups import group
from quarterdeck.cli.open_home import call
from quarterdeck.cli.output import show
from quarterdeck.cli.plan_text import print_odd
from quarterdeck.cli.work import confirm
from quarterdeck.errors import InvalidInput

app = group("A site's machines: 'machines SITE' lists them.", default="list")

HostName = Annotated[str, typer.Argument(help="The host's name, see 'site show'.", show_default=False)]


@app.command("list")
def list_(name: SiteName, output: OutputOption = Output.TABLE) -> None:
    """List a site's machines, their state, and what is on them."""
    if must_go_inside() and call(lambda face: face.sites.get(name)).spec.network is Isolation.NETNS:
        enter_lab()
    rows: list[dict[str, JsonValue]] = [
        {
            "name": each.machine.name,
            "zone": each.machine.zone,
            "role": str(each.machine.role),
            "address": each.machine.address,
            "state": str(each.machine.state),
            "why": each.machine.why or None,
            "replicas": each.replica,
            "cordoned": each.cordoned or None,
        }
        for each in call(lambda face: face.sites.machines(name))
    ]
    show(rows, ("name", "zone", "role", "address", "state", "replicas", "cordoned", "why"), output)


@app.command()
def add(
    name: SiteName,
    inventory: Annotated[Path, typer.Option(help="The hosts that come: YAML; - for standard input.")],
) -> None:
    """Add hosts to a site of driver ssh. One that planes cannot be on is refused, by what 'site check' says of it."""
    from quarterdeck.api.inventory import load_inventory

    given = load_inventory(text_of(inventory), str(inventory), whole=False)
    for field, written in (("storage_classes", "storageClasses"), ("fetch_on_host", "fetchOnHost"), ("edge", "edge")):
        if field in given.model_fields_set:
            seen = f"{written}: that of a site that exists is changed by 'apply -f'"
            raise InvalidInput(f"reading {inventory}", seen, "leave it out")
    print_odd(call(lambda face: face.sites.add_hosts(name, given.declared)))
    out.print(f"site {name} has {', '.join(each.name for each in given.declared)}")


@app.command()
def remove(
    name: SiteName,
    host: HostName,
    forget: Annotated[bool, typer.Option("--forget", help="It is gone for good: leave what is on it.")] = False,
    yes: Yes = False,
) -> None:
    """Take a host of which no plane has anything out of a site. What quarterdeck has there is removed."""
    call(lambda face: face.sites.require_spare(name, host))
    how = "leave what is on it" if forget else "remove what quarterdeck has there"
    confirm(f"take host {host} out of site {name}, and {how}?", yes=yes)
    call(lambda face: face.sites.remove_host(name, host, forget=forget))
    out.print(f"host {host} is of site {name} no more")


@app.command()
def replace(
    name: SiteName,
    host: HostName,
    address: Annotated[str | None, typer.Option(help="Where clients and the other hosts reach it.")] = None,
    target: Annotated[str | None, typer.Option("--host", help="What ssh is given, if that is not the address.")] = None,
    port: Annotated[int | None, typer.Option(help="Of its sshd.")] = None,
    user: Annotated[str | None, typer.Option(help="Who logs in.")] = None,
    identity_file: Annotated[str | None, typer.Option(help="That one's key.")] = None,
) -> None:
    """Have a host of a site be reached elsewhere, or otherwise: one that was installed anew in the place of it.

    It has to answer so. One that has its address still needs no change: see that its new host key is in known_hosts.
    """
    from quarterdeck.api.errors import explained
    from quarterdeck.api.hosts import SshLogin

    doing = f"replacing host {host} of site {name}"
    given = {"host": target, "port": port, "user": user, "identityFile": identity_file}
    said = {key: value for key, value in given.items() if value is not None}
    if address is None and not said:
        raise InvalidInput(doing, "nothing of it is said", "--address, --host, --port, --user, --identity-file")
    with explained(doing, SshLogin):
        login = SshLogin.model_validate(said)
    checked = call(lambda face: face.sites.replace_host(name, host, address=address, login=login))
    print_odd(checked)
    news = "was reached so already" if checked is None else "is reached as you say"
    out.print(f"host {host} of site {name} {news}")
