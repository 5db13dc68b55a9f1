"""Access for people and probes: the door, kubeconfigs, probe targets."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from urllib.parse import quote

from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.plane.endpoint import EndpointMode
from quarterdeck.api.site import AddressSpace
from quarterdeck.components.credentials import MASTERS
from quarterdeck.components.kubeconfig import Server, kubeconfig
from quarterdeck.components.settings import url
from quarterdeck.drivers.endpoints import name_servers
from quarterdeck.endpoint.door_guests import add_guest, guests_file
from quarterdeck.engine.workspace.home import Home
from quarterdeck.engine.workspace.secrets_in_use import secrets_in_use
from quarterdeck.engine.workspace.settings import endpoint_port
from quarterdeck.errors import TimedOut
from quarterdeck.files import file_errors
from quarterdeck.model.units import MachineRole, UnitSpec
from quarterdeck.package import SOURCE
from quarterdeck.pki.users import PROBE, UserAccess, issue_user
from quarterdeck.pki.validity import expiry

if TYPE_CHECKING:
    from quarterdeck.probe.target import ProbeTarget

#: The doors' ports on the hub's address, by the address space that they lead to.
_DOOR_PORTS = {AddressSpace.LOOPBACK: 8118, AddressSpace.NETNS: 8119, AddressSpace.HOSTS: 8120}
#: Seconds for it to listen, also on a busy host.
_OPENING = 15.0


async def open_door(home: Home, plane: ControlPlane, space: AddressSpace) -> str:
    """Start the door to an address space, on this host's loopback; returns the proxy's URL with the plane's
    credential, which allows connections to this plane's name and port.

    Plain kubectl resolves names like the host, which does not use the planes' own DNS server, nor reaches the network
    namespaces. Through the door it uses both.
    """
    name, guests = plane.metadata.name, guests_file(home.folder, space)
    uid = plane.metadata.uid or ""
    with file_errors(f"writing {guests}"):
        guest = await asyncio.to_thread(add_guest, guests, name, uid=uid, host=plane.host, port=endpoint_port(plane))
    hub = await home.hub(AddressSpace.LOOPBACK)
    machine = next(each for each in await hub.machines() if each.role is MachineRole.CONTROL)
    servers = await name_servers(await home.hub(space), space)
    listen = f"{machine.address}:{_DOOR_PORTS[space]}"
    argv = [sys.executable, "-m", "quarterdeck.endpoint.door", "--listen", listen]
    argv += [word for each in servers for word in ("--dns", f"{each.ip}:{each.port}")]
    argv += ["--guests", str(guests)]
    if space is AddressSpace.NETNS:
        argv += ["--lab", str(home.folder)]
    spec = UnitSpec(name=f"door-{space}", argv=tuple(argv), env=(("PYTHONPATH", str(SOURCE)),), stop_timeout=2.0)
    await hub.start_unit(machine.name, spec)
    await _until_open(machine.address, _DOOR_PORTS[space], f"see the log of unit {spec.name} in {home.folder}/sites")
    return f"http://{quote(name)}:{quote(guest.secret)}@{listen}"


async def _until_open(address: str, port: int, next_step: str) -> None:
    """Return once the door listens: a kubeconfig must work from the first moment."""
    try:
        async with asyncio.timeout(_OPENING):
            while True:
                try:
                    _, writer = await asyncio.open_connection(address, port)
                except OSError:
                    await asyncio.sleep(0.02)
                else:
                    writer.close()
                    return
    except TimeoutError:
        raise TimedOut("opening the door", f"nothing listens at {address}:{port} yet", next_step) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuedKubeconfig:
    """A kubeconfig for a person. ``text`` (YAML) has the private key. ``ends``: when its certificate expires (aware).
    ``bound``: False as long as quarterdeck has not bound the administrators' group, which this one depends on.
    """

    access: UserAccess
    text: str = field(repr=False)
    ends: datetime
    bound: bool = True


async def user_kubeconfig(home: Home, plane: ControlPlane, access: UserAccess) -> IssuedKubeconfig:
    """A kubeconfig for a person; works unchanged before, during and after a migration. Raises PreconditionFailed when
    the plane's authority has expired.
    """
    secrets = await secrets_in_use(home.store, plane)
    client = issue_user(secrets, access, datetime.now(UTC))
    site = await home.site(plane.spec.placement.site)
    space = site.spec.space
    # Names in the user's own DNS need no door, unless the network itself does.
    own = plane.spec.endpoint.mode is EndpointMode.HOSTS or space is AddressSpace.NETNS
    server = Server(
        url=url(plane.host, endpoint_port(plane)),
        ca=secrets.kubernetes_ca.bundle,
        proxy_url=await open_door(home, plane, space) if own else "",
    )
    name, status = plane.metadata.name, plane.status
    return IssuedKubeconfig(
        access=access,
        text=kubeconfig(name, f"{name}-{access.user}", server, client),
        ends=expiry(client.certificate),
        bound=not access.administers or status.administrators_epoch == status.memory.epoch,
    )


async def _asked_by_clients(home: Home, plane: ControlPlane, space: AddressSpace) -> tuple[tuple[str, int], ...]:
    """The DNS servers that know the plane's name; none where this host's resolver does."""
    endpoint = plane.spec.endpoint
    if endpoint.mode is EndpointMode.HOSTS:
        return tuple((each.ip, each.port) for each in await name_servers(await home.hub(space), space))
    return tuple((each.address, each.port) for each in endpoint.resolvers)


async def probe_target(home: Home, plane: ControlPlane) -> ProbeTarget:
    """The target of a probe of this plane, with its own client certificate."""
    from quarterdeck.probe.target import ProbeTarget  # few programs probe

    secrets = await secrets_in_use(home.store, plane)
    # A probe also measures planes whose RBAC a person has changed.
    access = UserAccess(user=PROBE, groups=(MASTERS,))
    client = issue_user(secrets, access, datetime.now(UTC))
    mode = plane.spec.endpoint.mode
    space = (await home.site(plane.spec.placement.site)).spec.space
    return ProbeTarget(
        host=plane.host,
        port=endpoint_port(plane),
        ca_pem=secrets.kubernetes_ca.bundle.decode(),
        client_cert_pem=client.certificate.decode(),
        client_key_pem=client.key.decode(),
        dns_servers=await _asked_by_clients(home, plane, space),
        address=plane.spec.endpoint.address if mode is EndpointMode.ADDRESS else None,
    )
