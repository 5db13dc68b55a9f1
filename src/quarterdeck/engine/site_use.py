"""Which planes use a site, and what of it may not change as long as one does."""

from __future__ import annotations

from collections.abc import Iterable

from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.site import Site
from quarterdeck.errors import Conflict


def sites_of(plane: ControlPlane) -> frozenset[str]:
    """The sites that a plane is at, is to be at, or may have something at."""
    memory = plane.status.memory
    named = {plane.spec.placement.site, *memory.unsettled, *(each.name for each in memory.held)}
    named |= {each.slot.site for each in memory.replicas}
    named |= {each.site for each in memory.kept} | {each.site for each in memory.left}
    return frozenset(named | ({memory.served_site} if memory.served_site else set()))


def users_of(site: str, planes: Iterable[ControlPlane]) -> tuple[str, ...]:
    """The planes that use a site, by name."""
    return tuple(sorted(each.metadata.name for each in planes if site in sites_of(each)))


def require_unused(site: str, planes: Iterable[ControlPlane]) -> None:
    """Raise Conflict that names the planes which use a site that is to go."""
    users = users_of(site, planes)
    if users:
        raise Conflict(f"removing site {site}", f"in use by {', '.join(users)}", "migrate or delete them first")


def require_safe_change(current: Site, wanted: Site, planes: Iterable[ControlPlane]) -> None:
    """Raise Conflict for a change under which planes of the site would lose machines, addresses or data.

    It may grow: zones behind those that it has, machines, edges (unless addresses float between those that there are),
    storage classes, limits.
    """
    problems = _problems(current, wanted)
    users = users_of(current.metadata.name, planes) if problems else ()
    if users:
        raise Conflict(
            f"changing site {current.metadata.name}",
            f"{'; '.join(problems)}; in use by {', '.join(users)}",
            "migrate or delete them first, or add another site",
        )


def _problems(current: Site, wanted: Site) -> list[str]:
    before, after = current.spec, wanted.spec
    problems: list[str] = []
    if after.isolation is not before.isolation:
        problems.append("spec.isolation: cannot be changed")
    if after.zones[: len(before.zones)] != before.zones:
        problems.append(f"spec.zones: {', '.join(before.zones)} must stay, in this order; others may come behind them")
    if after.machines_per_zone < before.machines_per_zone:
        problems.append(f"spec.machinesPerZone: must not be less than {before.machines_per_zone}")
    if after.floating_addresses is not before.floating_addresses:
        problems.append("spec.floatingAddresses: cannot be changed")
    if after.edges < before.edges:
        problems.append(f"spec.edges: must not be less than {before.edges}")
    if after.edges > before.edges and before.floating_addresses:
        problems.append(f"spec.edges: must stay {before.edges}, between which addresses float")
    if after.storage_classes[0].name != before.storage_classes[0].name:
        problems.append(
            f"spec.storageClasses: {before.storage_classes[0].name} must stay the first, which is the default"
        )
    paths = {each.name: each.path for each in after.storage_classes}
    for each in before.storage_classes:
        if each.name not in paths:
            problems.append(f"spec.storageClasses: {each.name} must stay")
        elif paths[each.name] != each.path:
            problems.append(f"spec.storageClasses: the path of {each.name} must stay")
    return problems
