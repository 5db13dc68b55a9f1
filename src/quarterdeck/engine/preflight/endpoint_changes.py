"""What stands in the way of another endpoint mode for a plane that clients use."""

from __future__ import annotations

from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.plane.memory import memory_from_status
from quarterdeck.api.site import AddressSpace, Site
from quarterdeck.engine.workspace.home import Home
from quarterdeck.engine.workspace.settings import endpoint_port, leads_to_apiservers
from quarterdeck.errors import PreconditionFailed
from quarterdeck.model.seats import PortName


async def admit_change(home: Home, wanted: ControlPlane, current: ControlPlane, site: Site) -> None:
    """Refuse a change of the endpoint that clients would notice.

    Raises PreconditionFailed, and what asking the DNS servers of both raises.
    """
    _is_led_as_it_was(wanted, current)
    _has_the_ports(wanted, current, site)
    _listens_where_clients_come(wanted, current)
    await _is_answered_alike(home, wanted, current, site)


def _is_led_as_it_was(wanted: ControlPlane, current: ControlPlane) -> None:
    """Whether an address is promoted decides where apiservers listen, and that one belongs to a site."""
    before, after = current.spec.endpoint, wanted.spec.endpoint
    if not (current.spec.endpoint.promoted or wanted.spec.endpoint.promoted):
        return
    if (before.leads_to, before.address, before.mode) != (after.leads_to, after.address, after.mode):
        raise PreconditionFailed(
            f"changing the endpoint of plane {wanted.name}",
            "whether its address is promoted, and which one, is decided when it is created",
            "make another plane",
        )


def _has_the_ports(wanted: ControlPlane, current: ControlPlane, site: Site) -> None:
    """On hosts apiservers have the port that clients come to only where these are led to them."""
    if site.spec.space is AddressSpace.HOSTS and leads_to_apiservers(wanted) != leads_to_apiservers(current):
        raise PreconditionFailed(
            f"changing the endpoint of plane {wanted.name}",
            "on hosts apiservers have another port where clients are led to them: that is decided when it is created",
            "make another plane",
        )


def _listens_where_clients_come(wanted: ControlPlane, current: ControlPlane) -> None:
    """Where clients are to come to apiservers themselves, they come to the port that they have always come to."""
    if not leads_to_apiservers(wanted) or leads_to_apiservers(current):
        return
    port = endpoint_port(wanted)
    seats = {each.name: each.seat for each in memory_from_status(current.status.memory).replicas}
    found = {name: seat.advertised(PortName.APISERVER).port for name, seat in seats.items() if seat is not None}
    others = [f"{name} at {other}" for name, other in found.items() if other != port]
    if others:
        raise PreconditionFailed(
            f"leading clients of plane {wanted.name} to its apiservers",
            f"they come to port {port}, and these listen elsewhere: {', '.join(others)}",
            f"have them exchanged ('replica replace {wanted.name}') where that port is free",
        )


async def _is_answered_alike(home: Home, wanted: ControlPlane, current: ControlPlane, site: Site) -> None:
    """Who is to keep the name from now on has it as it is already: no client notices, and no record is left behind that
    leads elsewhere one day.
    """
    if wanted.spec.endpoint.mode is current.spec.endpoint.mode:
        return
    doing, host = f"changing who keeps the name of plane {wanted.name}", wanted.host
    keepers = [await home.dns(each, site.spec.space, None) for each in (current, wanted)]
    await keepers[1].check(host)
    now, then = [await each.look(host) for each in keepers]
    for seen in (now, then):
        if seen.torn:
            raise PreconditionFailed(doing, seen.torn, "see that all DNS servers of the zone answer the same")
    has, gets = (" ".join(each.record.addresses) if each.record is not None else "nothing" for each in (now, then))
    if has != gets:
        seen_there = f"{host} leads to {has}, and to {gets} where it is to be kept"
        raise PreconditionFailed(doing, seen_there, "have the same record made there first")
