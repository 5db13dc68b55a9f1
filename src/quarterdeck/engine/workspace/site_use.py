"""The planes that use a site, and the parts of a used site that must not change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.hosts import Edge, login_text
from quarterdeck.api.plane.endpoint import EndpointMode
from quarterdeck.api.site import AddressSpace, LocalSpec, Site, SiteSpec, SshSpec, cordon_text
from quarterdeck.api.storage import AnyStorageClass, HostStorageClass
from quarterdeck.errors import Conflict
from quarterdeck.model.units import MachineRole
from quarterdeck.model.world import MachineFact
from quarterdeck.stores.port import Store

_ELSEWHERE = "migrate or delete them first, or add another site"


def sites_of(plane: ControlPlane) -> frozenset[str]:
    """The sites where a plane is, will be, or may have leftovers."""
    memory = plane.status.memory
    named = {plane.spec.placement.site, *memory.unsettled, *(each.name for each in memory.held)}
    named |= {each.slot.site for each in memory.replicas}
    named |= {plane.spec.standby.site} if plane.spec.standby is not None else set()
    named |= {each.site for each in memory.kept} | {each.site for each in memory.left}
    return frozenset(named | ({memory.served_site} if memory.served_site else set()))


def users_of(site: str, planes: Iterable[ControlPlane]) -> tuple[str, ...]:
    """The planes that use a site, by name."""
    return tuple(sorted(each.metadata.name for each in planes if site in sites_of(each)))


def require_unused(site: str, planes: Iterable[ControlPlane]) -> None:
    """Raise Conflict with the planes that use a site, before it is removed."""
    users = users_of(site, planes)
    if users:
        raise Conflict(f"removing site {site}", f"in use by {', '.join(users)}", "migrate or delete them first")


def require_safe_change(
    current: Site,
    wanted: Site,
    planes: Iterable[ControlPlane],
    *,
    next_step: str = _ELSEWHERE,
    spare_edge: str | None = None,
) -> None:
    """Raise Conflict for a change with which planes of the site would lose machines, addresses or data.

    It may grow: zones after the existing ones, machines, edges (on this host not where addresses float), storage
    classes, limits. An unused host may be removed, and the logins of hosts may change. ``spare_edge``: a host whose
    load balancers no plane needs.
    """
    planes = [*planes]
    users = users_of(current.metadata.name, planes)
    problems = _problems(current, wanted, planes, spare_edge) if users else ()
    if problems:
        raise Conflict(
            f"changing site {current.metadata.name}",
            f"{'; '.join(problems)}; in use by {', '.join(users)}",
            next_step,
        )


def _problems(current: Site, wanted: Site, planes: Sequence[ControlPlane], spare_edge: str | None) -> list[str]:
    before, after = current.spec, wanted.spec
    if before.driver != after.driver:
        return ["spec.driver: cannot be changed"]
    problems: list[str] = []
    if isinstance(before, LocalSpec) and isinstance(after, LocalSpec):
        problems.extend(_machine_problems(before, after))
    if isinstance(before, SshSpec) and isinstance(after, SshSpec):
        problems.extend(_host_problems(current.metadata.name, before, after, planes, spare_edge))
        problems.extend(_edge_problems(before.edge, after.edge))
    if after.zones[: len(before.zones)] != before.zones:
        problems.append(f"spec.zones: {', '.join(before.zones)} must stay, in this order; new ones may follow them")
    problems.extend(_class_problems(before.storage_classes, after.storage_classes))
    return problems


def _machine_problems(before: LocalSpec, after: LocalSpec) -> Iterator[str]:
    if after.isolation is not before.isolation:
        yield "spec.isolation: cannot be changed"
    if after.machines_per_zone < before.machines_per_zone:
        yield f"spec.machinesPerZone: must not be less than {before.machines_per_zone}"
    if after.floating_addresses is not before.floating_addresses:
        yield "spec.floatingAddresses: cannot be changed"
    if after.edges < before.edges:
        yield f"spec.edges: must not be less than {before.edges}"
    if after.edges > before.edges and before.floating_addresses:
        yield f"spec.edges: must stay {before.edges}, between which addresses float"


def _host_problems(
    site: str, before: SshSpec, after: SshSpec, planes: Sequence[ControlPlane], spare_edge: str | None
) -> Iterator[str]:
    """Forbidden changes of hosts. A host with another address is another host for clients and members."""
    used = used_machines(site, planes)
    for each in before.hosts:
        now = after.host(each.name)
        for role, machine in each.machines.items():
            why = used.get(machine, "") if role is MachineRole.CONTROL else _SERVES.get(role, "")
            if role is MachineRole.EDGE and now is None and each.name == spare_edge and before.edge.floating_addresses:
                why = ""  # another edge has its address
            if now is None or role not in now.roles:
                change = "must stay" if now is None else f"must keep the role {role}"
            elif now.machines[role] != machine:
                change = f"must have as many roles as before: its machine {machine} would have another name"
            elif now.address != each.address:
                change = f"must keep its address {each.address}"
            elif role is MachineRole.CONTROL and now.zone != each.zone:
                change = f"must stay in zone {each.zone}"
            else:
                continue
            if why:
                yield f"spec.hosts: {each.name} {change}: {why}"


def _edge_problems(before: Edge, after: Edge) -> Iterator[str]:
    """The addresses of edges must stay: clients and names may hold them."""
    if before.floating_addresses != after.floating_addresses:
        yield f"spec.edge.floatingAddresses: must stay {', '.join(before.floating_addresses) or 'empty'}"
    if gone := [each for each in before.promoted_addresses if each not in after.promoted_addresses]:
        yield f"spec.edge.promotedAddresses: must still have {', '.join(gone)}"
    outside, now = before.external, after.external
    if (outside.addresses if outside else None) != (now.addresses if now else None):
        stay = f"its addresses must stay {', '.join(outside.addresses)}" if outside else "must stay unset"
        yield f"spec.edge.external: {stay}"


#: Why a host of that role must not change while any plane uses its site.
_SERVES = {MachineRole.EDGE: "clients may hold its address"}


def require_distinct(wanted: Site, sites: Iterable[Site]) -> None:
    """Raise Conflict for a host of another site: the sites would not know each other's units there."""
    for _, seen in declared_elsewhere(wanted, sites):
        raise Conflict(f"adding hosts to site {wanted.metadata.name}", seen, "a host belongs to one site only")


def declared_elsewhere(wanted: Site, sites: Iterable[Site]) -> Iterator[tuple[str, str]]:
    """The hosts of a site that another site also has, by name, each with a description."""
    if not isinstance(wanted.spec, SshSpec):
        return
    for other in sites:
        if other.metadata.name == wanted.metadata.name or not isinstance(other.spec, SshSpec):
            continue
        there = {each.address: each.name for each in other.spec.hosts}
        there |= {login_text(each.login): each.name for each in other.spec.hosts}
        for each in wanted.spec.hosts:
            known = there.get(each.address) or there.get(login_text(each.login))
            if known is not None:
                yield each.name, f"host {each.name} ({each.address}) is host {known} of site {other.metadata.name}"


def require_names_kept(current: Site, wanted: Site, sites: Iterable[Site], planes: Iterable[ControlPlane]) -> None:
    """Raise Conflict for a change after which no present DNS server would have the names of planes. Planes share the
    DNS servers of all connected sites.
    """
    before, after = dns_servers(current), dns_servers(wanted)
    others = [each for each in sites if each.metadata.name != current.metadata.name]
    if before <= after or before & after or any(map(dns_servers, others)):
        return
    spaces = {each.metadata.name: each.spec.space for each in (*others, current)}
    named = [
        plane.metadata.name
        for plane in planes
        if plane.spec.endpoint.mode is EndpointMode.HOSTS
        and spaces.get(plane.spec.placement.site) is AddressSpace.HOSTS
    ]
    if named:
        raise Conflict(
            f"changing site {current.metadata.name}",
            f"no remaining DNS server would have the names of {', '.join(sorted(named))}",
            "give another host the role dns first",
        )


def dns_servers(site: Site) -> frozenset[str]:
    """The addresses of a site's hosts of role ``dns``."""
    hosts = site.spec.hosts if isinstance(site.spec, SshSpec) else ()
    return frozenset(each.address for each in hosts if MachineRole.DNS in each.roles)


def used_machines(site: str, planes: Iterable[ControlPlane]) -> Mapping[str, str]:
    """The machines of a site that planes use, by name, with the use in words."""
    found: dict[str, list[str]] = {}
    for plane in sorted(planes, key=lambda each: each.metadata.name):
        memory, name = plane.status.memory, plane.metadata.name
        for replica in memory.replicas:
            if replica.slot.site == site:
                found.setdefault(replica.machine, []).append(f"replica {name}/{replica.name} runs there")
        for what, machine in (
            *((f"data of {name}/{each.replica}", each.machine) for each in memory.kept if each.site == site),
            *((f"units of {name}/{each.replica}", each.machine) for each in memory.left if each.site == site),
        ):
            found.setdefault(machine, []).append(f"{what} are left there")
    return {machine: ", ".join(dict.fromkeys(words)) for machine, words in found.items()}


def _class_problems(before: Sequence[AnyStorageClass], after: Sequence[AnyStorageClass]) -> Iterator[str]:
    if after[0].name != before[0].name:
        yield f"spec.storageClasses: {before[0].name} must stay the first, which is the default"
    paths, kinds = ({each.name: each.path for each in after}, {each.name: each.reattachable for each in after})
    for each in before:
        if each.name not in paths:
            yield f"spec.storageClasses: {each.name} must stay"
        elif paths[each.name] != each.path:
            yield f"spec.storageClasses: the path of {each.name} must stay"
        elif isinstance(each, HostStorageClass) and kinds[each.name] != each.reattachable:
            yield f"spec.storageClasses: {each.name} must stay {'re-attachable' if each.reattachable else 'local'}"


# Cordoned machines, from the present sites.


async def declared(store: Store) -> Mapping[str, SiteSpec]:
    """The present sites, by name. They are read in each observation, so that cordons count at once."""
    return {each.metadata.name: each.spec for each in await store.list(Site)}


def marked(machines: Iterable[MachineFact], sites: Mapping[str, SiteSpec]) -> tuple[MachineFact, ...]:
    """The machines, with their cordons."""
    return tuple(
        replace(each, cordoned=each.site in sites and sites[each.site].cordon_of(each.name) is not None)
        for each in machines
    )


async def of_plane(store: Store, plane: ControlPlane) -> tuple[str, ...]:
    """The cordons of a plane, and of the sites that it uses, in words: by whom, and since when."""
    sites = await declared(store)
    machines = (
        f"{f'machine {each.machine}' if each.machine else f'all machines of site {name}'}: {cordon_text(each)}"
        for name in sorted(sites_of(plane) & sites.keys())
        for each in sites[name].cordons
    )
    return (*(f"replica {each.replica}: {cordon_text(each)}" for each in plane.spec.cordoned_replicas), *machines)
