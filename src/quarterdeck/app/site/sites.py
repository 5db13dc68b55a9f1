"""The sites of a home, and their machines."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from quarterdeck.api.apply import applied_site
from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.site import Isolation, Site, cordon_text
from quarterdeck.app import cordons
from quarterdeck.app.site import host_checks
from quarterdeck.app.site.host_checks import require_fit
from quarterdeck.app.site.hosts import Hosts, require_names_kept_without
from quarterdeck.engine.preflight.reach import require_in_lab
from quarterdeck.engine.workspace.routing import reroute, start_new_name_servers
from quarterdeck.engine.workspace.site_use import (
    require_distinct,
    require_names_kept,
    require_safe_change,
    require_unused,
)
from quarterdeck.errors import Conflict, InvalidInput, NotFound, PreconditionFailed, Unavailable
from quarterdeck.model.findings import Checked, Promise
from quarterdeck.model.units import Machine, MachineRole, MachineState
from quarterdeck.sites.port import ChecksStorage, SitePort


class SiteChange(StrEnum):
    """The outcome of a declared site."""

    CREATED = "created"
    CHANGED = "changed"
    UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True)
class Applied:
    """The outcome of a declared site, and the findings of its check (None: nothing is new)."""

    change: SiteChange
    checked: Checked | None = None


@dataclass(frozen=True, slots=True)
class Used:
    """A machine. ``replica`` is what is on it, as PLANE/REPLICA; None for nothing. ``cordoned``: who cordoned it and
    when, as text; "" if it is not.
    """

    machine: Machine
    replica: str | None
    cordoned: str = ""


class Sites(Hosts):
    """The sites of an open home: ``Quarterdeck.sites``."""

    async def list(self) -> Mapping[str, Site]:
        """All sites by name."""
        return {each.metadata.name: each for each in await self._home.store.list(Site)}

    async def get(self, name: str) -> Site:
        """A site as it was declared. Raises NotFound that names the existing ones."""
        return await self._home.site(name)

    async def add(self, site: Site) -> Checked:
        """Add a site; returns the findings of ``check``. Raises Conflict if one has that name, or has one of its hosts;
        Unavailable where this host forbids its networks; PreconditionFailed where planes cannot run on one of its
        hosts.
        """
        name = site.metadata.name
        sites = await self._home.store.list(Site)
        require_distinct(site, sites)
        if any(each.metadata.name == name for each in sites):  # reported before hosts are checked
            raise Conflict(f"adding site {name}", "it exists", f"see 'site show {name}'")
        checked = await require_fit(self._home, f"adding site {name}", site)
        await self._create(site)
        return checked

    async def check(self, site: Site) -> Checked:
        """The obstacles to planes at a site, host by host, whether it was added or not. Changes nothing, there or here.
        Raises Unavailable where this host forbids its networks.
        """
        return await host_checks.checked(self._home, site)

    async def apply(self, wanted: Site, *, dry_run: bool = False) -> Applied:
        """Create or change a site; ``dry_run``: only report the outcome. Raises Conflict for a change that planes of it
        would not survive, Unavailable where an edge that must be informed does not answer, PreconditionFailed where
        planes cannot run on a host, or in a storage class, that is new.
        """
        store, doing = self._home.store, f"applying site {wanted.metadata.name}"
        sites = await store.list(Site)
        require_distinct(wanted, sites)
        try:
            current = await store.get(Site, wanted.metadata.name)
        except NotFound:
            checked = await host_checks.require_fit_change(self._home, doing, None, wanted)
            if not dry_run:
                await self._create(wanted)
            return Applied(SiteChange.CREATED, checked)
        changed = applied_site(current, wanted)
        if changed == current:
            return Applied(SiteChange.UNCHANGED)
        planes = await store.list(ControlPlane)
        require_safe_change(current, changed, planes)
        require_names_kept(current, changed, sites, planes)
        checked = await host_checks.require_fit_change(self._home, doing, current, changed)
        if not dry_run:
            await start_new_name_servers(self._home, current, changed, self._name_server)
            await reroute(self._home.sites, current, changed)
            await store.update(changed)
        return Applied(SiteChange.CHANGED, checked)

    async def _create(self, site: Site) -> None:
        await start_new_name_servers(self._home, None, site, self._name_server)
        await self._home.store.create(site)

    async def machines(self, name: str) -> Sequence[Used]:
        """A site's machines, and what is on them. Raises NotFound, PreconditionFailed when they are out of reach."""
        site = await self._home.site(name)
        if site.spec.network is Isolation.NETNS:
            await require_in_lab(self._home, f"reaching the machines of site {name}")
        replicas = {
            (each.slot.site, each.machine): f"{plane.metadata.name}/{each.name}"
            for plane in await self._home.store.list(ControlPlane)
            for each in plane.status.memory.replicas
        }
        found = await self._home.sites.open(site).machines()
        cordoned = {each.name: site.spec.cordon_of(each.name) for each in found if each.role is MachineRole.CONTROL}
        return tuple(
            Used(
                each,
                replicas.get((name, each.name)),
                cordon_text(cordon) if (cordon := cordoned.get(each.name)) else "",
            )
            for each in found
        )

    async def cordon(self, name: str, machine: str | None = None) -> bool:
        """Keep new replicas off a machine, or off the whole site; whether that changed anything. Existing replicas
        stay.

        Raises NotFound (the site, the machine), InvalidInput for the machine of load balancers.
        """
        return await cordons.cordon_site(self._home, name, machine, self._requester)

    async def uncordon(self, name: str, machine: str | None = None) -> bool:
        """Remove the cordon of a machine or of all of the site; whether there was one.

        Raises NotFound, Conflict for a machine while the site is cordoned as a whole.
        """
        return await cordons.uncordon_site(self._home, name, machine)

    async def require_unused(self, name: str) -> Site:
        """The site, if it can be removed. Raises NotFound, Conflict that names the planes which use it."""
        site, planes = await self._home.site(name), await self._home.store.list(ControlPlane)
        require_unused(name, planes)
        await require_names_kept_without(self._home, site, planes)
        return site

    async def remove(self, name: str) -> None:
        """Remove a site and its machines. Raises what ``require_unused`` does."""
        await self._home.sites.destroy(await self.require_unused(name))
        await self._home.store.delete(Site, name)

    async def test_storage(self, name: str, storage_class: str, machines: Sequence[str] = ()) -> AsyncIterator[Promise]:
        """Test whether the commands of a site's storage class do what they promise, with a test volume on two machines:
        the named ones, or any two that answer, of one zone if possible.

        Raises NotFound, InvalidInput, PreconditionFailed where there are no such commands, Unavailable.
        """
        doing = f"testing storage class {storage_class} of site {name}"
        site = self._home.sites.open(await self._home.site(name))
        if not isinstance(site, ChecksStorage):
            raise PreconditionFailed(
                doing, "its volumes are not attached by your own commands", "see docs/how-to/storage.md"
            )
        if machines and len(machines) != 2:
            raise InvalidInput(doing, f"{len(machines)} machines are named", "name two, or none")
        first, second = machines or await _two(doing, site)
        async for each in site.check_storage(storage_class, f"check-{uuid.uuid4().hex[:8]}", first, second):
            yield each


async def _two(doing: str, site: SitePort) -> tuple[str, str]:
    up = [
        each
        for each in await site.machines()
        if each.role is MachineRole.CONTROL and each.state is MachineState.UP and each.declared
    ]
    pairs = [(one, other) for at, one in enumerate(up) for other in up[at + 1 :]]
    if not pairs:
        raise Unavailable(doing, f"the test needs two machines, and {len(up)} answer")
    one, other = min(pairs, key=lambda pair: pair[0].zone != pair[1].zone)
    return one.name, other.name
