"""Cordons: a user names machines that get no new replica, and replicas that are left unchanged."""

from __future__ import annotations

from datetime import datetime

from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.site import Cordon, CordonedReplica, Site, cordon_text
from quarterdeck.engine.workspace import operations, recorded
from quarterdeck.engine.workspace.home import Home
from quarterdeck.engine.workspace.operations import Requester
from quarterdeck.errors import Conflict, InvalidInput, NotFound
from quarterdeck.model.units import Machine, MachineRole
from quarterdeck.stores.port import amend


async def require_host(home: Home, doing: str, site: str, machine: str | None) -> Site:
    """The site, if it has such a machine and replicas can be placed on it. Raises NotFound, InvalidInput."""
    resource = await home.site(site)
    if machine is None:
        return resource
    found = {each.name: each for each in await home.sites.open(resource).machines()}
    if machine not in found:
        hosts = ", ".join(each.name for each in found.values() if each.role is MachineRole.CONTROL)
        raise NotFound(f"{doing} {machine!r}", f"machines of site {site}: {hosts}", f"see 'site machines {site}'")
    if found[machine].role is MachineRole.EDGE:
        raise InvalidInput(f"{doing} {machine}", await _why_not(home, found[machine]), "migrate them")
    if found[machine].role is MachineRole.DNS:
        raise InvalidInput(f"{doing} {machine}", "it runs the DNS server of planes, and never a replica")
    return resource


async def _why_not(home: Home, edge: Machine) -> str:
    """Why the machine of load balancers cannot be cordoned."""
    led = await served_from(home, edge.site)
    owner = (
        f"those of {', '.join(led)} run there until they are served from another site"
        if led
        else "no load balancer runs there"
    )
    return f"it runs the load balancers of site {edge.site}, and never a replica ({owner})"


async def served_from(home: Home, site: str) -> tuple[str, ...]:
    """The planes whose clients may use the load balancer of a site."""
    planes = await home.store.list(ControlPlane)
    memories = {each.metadata.name: each.status.memory for each in planes}
    return tuple(
        name
        for name, memory in sorted(memories.items())
        if site in (memory.served_site, *memory.unsettled, *(each.name for each in memory.held))
    )


async def cordon_site(home: Home, site: str, machine: str | None, requester: Requester) -> bool:
    """Keep new replicas off a machine (None: off all machines of the site). Whether that changed anything.

    Raises NotFound, InvalidInput (the machine of load balancers).
    """
    await require_host(home, "cordoning machine", site, machine)
    made = Cordon(machine=machine, by=requester.name, since=_now(requester))
    before = await home.site(site)
    return await amend(home.store, Site, site, lambda seen: seen.with_cordon(made)) != before


async def uncordon_site(home: Home, site: str, machine: str | None) -> bool:
    """Uncordon a machine; without a machine, all of the site's. Whether there was a cordon.

    Raises NotFound, Conflict for a machine while the site is cordoned as a whole.
    """
    before = await require_host(home, "uncordoning machine", site, machine)

    def uncordoned(seen: Site) -> Site:
        left = tuple(each for each in seen.spec.cordons if machine is not None and each.machine != machine)
        whole = next((each for each in left if each.machine is None), None)
        if whole is not None and left == seen.spec.cordons:
            doing, why = f"uncordoning machine {machine}", f"all machines of site {site} are {cordon_text(whole)}"
            raise Conflict(doing, why, f"'site uncordon {site}', then cordon single machines")
        return seen.with_cordons(left)

    return await amend(home.store, Site, site, uncordoned) != before


async def cordon_replica(home: Home, name: str, replica: str, requester: Requester) -> bool:
    """Exclude a replica from healing and from all changes that can wait. Whether that changed anything.

    Raises Gone, NotFound (the replica), Conflict while the plane moves, or when the replica must be replaced.
    """
    plane = await _with_replica(home, "cordoning", name, replica)
    if replica in plane.spec.cordoned:
        return False
    await operations.require_changeable(home.store, plane)
    made = CordonedReplica(replica=replica, by=requester.name, since=_now(requester))

    def cordoned(seen: ControlPlane) -> ControlPlane:
        if replica in seen.spec.replace_replicas:
            doing = f"cordoning replica {replica} of plane {name}"
            raise Conflict(doing, "its replacement was requested", f"withdraw that with 'abort {name}'")
        return _with_replicas(seen, (*(_others(seen, replica)), made))

    await amend(home.store, ControlPlane, name, cordoned)
    return True


async def uncordon_replica(home: Home, name: str, replica: str) -> bool:
    """Remove the cordon of a replica; whether there was one. Raises Gone, NotFound (the replica)."""
    plane = await recorded.existing(home.store, name)
    if replica not in plane.spec.cordoned:
        await _with_replica(home, "uncordoning", name, replica)
        return False
    await amend(home.store, ControlPlane, name, lambda seen: _with_replicas(seen, _others(seen, replica)))
    return True


async def _with_replica(home: Home, doing: str, name: str, replica: str) -> ControlPlane:
    plane = await recorded.existing(home.store, name)
    operations.require_replica(plane, doing, replica)
    return plane


def _others(plane: ControlPlane, replica: str) -> tuple[CordonedReplica, ...]:
    """The remaining cordons of other replicas."""
    there = {each.name for each in plane.status.memory.replicas}
    found = plane.spec.cordoned_replicas
    return tuple(each for each in found if each.replica != replica and each.replica in there)


def _with_replicas(plane: ControlPlane, cordoned: tuple[CordonedReplica, ...]) -> ControlPlane:
    return plane.with_spec(cordoned_replicas=cordoned)


def _now(requester: Requester) -> datetime:
    return requester.now().replace(microsecond=0)
