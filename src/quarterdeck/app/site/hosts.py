"""The hosts of ssh sites: more of them, fewer, others in the place of those that died; sites that are gone for good."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.errors import explained
from quarterdeck.api.site import Site, SshSpec
from quarterdeck.api.sites.hosts import Host, SshLogin
from quarterdeck.app import cordons
from quarterdeck.app.site.host_checks import require_fit
from quarterdeck.drills.refusals import dangers
from quarterdeck.engine.status.facts import look
from quarterdeck.engine.workspace.home import Home
from quarterdeck.engine.workspace.new_name_servers import start_new_name_servers
from quarterdeck.engine.workspace.operations import Asker
from quarterdeck.engine.workspace.routing import reroute
from quarterdeck.engine.workspace.site_use import (
    require_distinct,
    require_names_kept,
    require_safe_change,
    used_machines,
    users_of,
)
from quarterdeck.errors import Conflict, InvalidInput, NotFound, Unavailable
from quarterdeck.model.findings import Checked
from quarterdeck.model.units import MachineRole
from quarterdeck.planner.losses import Loss
from quarterdeck.planner.view import View, view
from quarterdeck.stores.amend import amend


async def added(home: Home, name: str, hosts: Sequence[Host], name_server: Callable[[], Awaitable[Path]]) -> Checked:
    """Have a site have more hosts; what is to be looked at there. ``name_server`` gets the program of DNS servers.

    Raises NotFound, Conflict, InvalidInput, Unavailable where a DNS server cannot be started, and PreconditionFailed
    for a host that planes cannot be on, by what 'site check' says of it.
    """
    change = _Change(home, f"adding hosts to site {name}", name, lambda seen: (*seen.hosts, *hosts))
    site, changed = await change.allowed()
    checked = await require_fit(home, change.doing, changed, [each.name for each in hosts])
    await start_new_name_servers(home, site, changed, name_server)
    await change.made(site, changed)
    return checked


async def require_spare(home: Home, name: str, host: str) -> Host:
    """A host of which no plane has anything, but for load balancers where addresses float, if all planes are served
    well by the others. Raises NotFound, InvalidInput, Conflict.
    """
    doing = f"removing host {host} from site {name}"
    site = await home.site(name)
    spec = _spec(doing, site)
    found = _host(doing, spec, host)
    others = _with(doing, site, _others(spec, host))
    await _require_safe(home, site, others, f"'site drain {name} {host}' first", spare_edge=host)
    if MachineRole.EDGE in found.roles:
        await _require_served_without(home, doing, name, found.machines[MachineRole.EDGE])
    return found


async def _require_served_without(home: Home, doing: str, site: str, edge: str) -> None:
    """Raise Conflict where clients of a plane need an edge, or perhaps do."""
    loss = Loss(where="", edges=frozenset({edge}))
    views: dict[str, tuple[View, Loss]] = {}
    for name in users_of(site, await home.store.list(ControlPlane)):
        seen = await look(home, name)
        if seen.operation is not None:
            operation = seen.operation.metadata.name
            raise Conflict(doing, f"operation {operation} of plane {name} is under way", "wait for its end")
        views[name] = (view(seen.world), loss)
    if why := dangers(views):
        raise Conflict(doing, "; ".join(why), "have the other hosts of role edge be well first, or add one")


async def removed(home: Home, name: str, host: str, asker: Asker, *, forget: bool) -> None:
    """Take a host out of a site, after what quarterdeck has there unless that is to stay.

    Raises what ``require_spare`` does, Unavailable when it does not answer: it is cordoned then.
    """
    doing = f"removing host {host} from site {name}"
    found = await require_spare(home, name, host)
    if MachineRole.CONTROL in found.roles:  # nobody may be put there from now on
        await cordons.cordon_site(home, name, host, asker)
        await require_spare(home, name, host)
    site, edge = await home.site(name), MachineRole.EDGE in found.roles
    next_step = "have it answer, or --forget it if it is gone for good"
    try:
        if edge:  # its addresses go over first, and nobody puts anything there from then on
            await _taken_out(home, doing, name, found, forget=forget)
            next_step = "it is of the site no more: see docs/ssh.md for what may be left on it"
        if not forget:
            spec = _spec(doing, site).model_copy(update={"hosts": (found,)})
            await home.sites.destroy(site.model_copy(update={"spec": spec}))
    except Unavailable as error:
        raise Unavailable(doing, error.seen, next_step) from error
    if not edge:
        await _taken_out(home, doing, name, found, forget=forget)


async def _taken_out(home: Home, doing: str, name: str, host: Host, *, forget: bool) -> None:
    change = _Change(home, doing, name, lambda seen: _others(seen, host.name))
    site, changed = await change.allowed(spare_edge=host.name)
    await change.made(site, changed, gone=tuple(host.machines.values()) if forget else ())


async def replaced(
    home: Home,
    name: str,
    host: str,
    name_server: Callable[[], Awaitable[Path]],
    *,
    address: str | None,
    login: SshLogin,
) -> Checked | None:
    """Have a host be reached elsewhere, or otherwise; what is to be looked at there (None: that is no news). Raises
    NotFound, InvalidInput, Conflict, and PreconditionFailed as ``added`` does.

    A member of etcd is where its seat is: at the host's address of then. So that one stays as long as a plane has
    anything there. One that died with its address is replaced by a new host, by another name.
    """
    doing = f"replacing host {host} of site {name}"
    _host(doing, _spec(doing, await home.site(name)), host)
    given = login.model_dump(exclude_none=True)

    def other(each: Host) -> Host:
        if each.name != host:
            return each
        changed: dict[str, object] = {"ssh": each.ssh.model_copy(update=given)}
        if address is not None:
            changed["address"] = address
        with explained(doing, Host):
            return Host.model_validate({**each.model_dump(), **changed})

    change = _Change(home, doing, name, lambda seen: tuple(map(other, seen.hosts)))
    advice = f"add the new one by another name ('site machines add {name}'), and remove {host} once it is empty"
    site, changed = await change.allowed(advice)
    if changed.spec == site.spec:
        return None
    checked = await require_fit(home, doing, changed, (host,))
    await start_new_name_servers(home, site, changed, name_server)
    await change.made(site, changed)
    return checked


async def require_forgettable(home: Home, name: str) -> Sequence[str]:
    """What planes have left at a site that is gone for good, in words. Raises NotFound, InvalidInput, Conflict.

    What runs there, or may be in the hands of clients, must not be forgotten: a plane would wait for it for ever.
    """
    doing = f"forgetting site {name}"
    site, planes = await home.site(name), await home.store.list(ControlPlane)
    if not isinstance(site.spec, SshSpec):
        raise InvalidInput(doing, "its machines are on this host", f"'site remove {name}'")
    there = sorted(each.metadata.name for each in planes if _is_at(each, name))
    if there:
        raise Conflict(doing, f"in use by {', '.join(there)}", "migrate or delete them first")
    await require_names_kept_without(home, site, planes)
    return tuple(words for _, words in sorted(used_machines(name, planes).items()))


def _is_at(plane: ControlPlane, site: str) -> bool:
    """Whether anything of a plane runs at a site, is to run there, or clients may come there. (Data and units that it
    left behind are no reason to wait.)
    """
    memory = plane.status.memory
    named = {plane.spec.placement.site, memory.served_site, *memory.unsettled, *(each.name for each in memory.held)}
    return site in named | {each.slot.site for each in memory.replicas}


async def require_names_kept_without(home: Home, site: Site, planes: Sequence[ControlPlane]) -> None:
    """Raise Conflict for a site without which nothing would keep the names of planes."""
    if isinstance(site.spec, SshSpec):
        none = site.model_copy(update={"spec": site.spec.model_copy(update={"hosts": ()})})
        require_names_kept(site, none, await home.store.list(Site), planes)


@dataclass(frozen=True, slots=True)
class _Change:
    """A change of a site's hosts, to what ``hosts`` makes of its spec."""

    home: Home
    doing: str
    name: str
    hosts: Callable[[SshSpec], Sequence[Host]]

    async def allowed(self, next_step: str = "", *, spare_edge: str | None = None) -> tuple[Site, Site]:
        """The site, and what it is to become, if that is safe."""
        site = await self.home.site(self.name)
        changed = self._of(site)
        require_distinct(changed, await self.home.store.list(Site))
        await _require_safe(self.home, site, changed, next_step, spare_edge=spare_edge)
        return site, changed

    async def made(self, site: Site, changed: Site, *, gone: Collection[str] = ()) -> None:
        """Make it. For ``gone`` see ``reroute``."""
        await reroute(self.home.sites, site, changed, gone=gone)
        await amend(self.home.store, Site, self.name, self._of)

    def _of(self, site: Site) -> Site:
        return _with(self.doing, site, self.hosts(_spec(self.doing, site)))


async def _require_safe(
    home: Home, site: Site, changed: Site, next_step: str, *, spare_edge: str | None = None
) -> None:
    planes = await home.store.list(ControlPlane)
    require_safe_change(site, changed, planes, next_step=next_step, spare_edge=spare_edge)
    require_names_kept(site, changed, await home.store.list(Site), planes)


def _with(doing: str, site: Site, hosts: Sequence[Host]) -> Site:
    with explained(doing, SshSpec):
        return site.model_copy(update={"spec": _spec(doing, site).with_hosts(hosts)})


def _others(spec: SshSpec, host: str) -> tuple[Host, ...]:
    return tuple(each for each in spec.hosts if each.name != host)


def _spec(doing: str, site: Site) -> SshSpec:
    if not isinstance(site.spec, SshSpec):
        raise InvalidInput(doing, "it is a local site, which is made of no hosts", "see 'apply -f' for its machines")
    return site.spec


def _host(doing: str, spec: SshSpec, name: str) -> Host:
    found = spec.host(name)
    if found is None:
        raise NotFound(doing, "it has no such host", f"hosts: {', '.join(each.name for each in spec.hosts)}")
    return found
