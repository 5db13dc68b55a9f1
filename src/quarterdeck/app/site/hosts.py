"""The hosts of ssh sites: set up, added, removed, replaced after their death; and sites that are lost for good."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.errors import explained
from quarterdeck.api.hosts import Host, SshLogin
from quarterdeck.api.site import Site, SshSpec
from quarterdeck.app import cordons
from quarterdeck.app.site.host_checks import require_fit
from quarterdeck.drills.refusals import dangers
from quarterdeck.drivers import ssh
from quarterdeck.engine.status import look
from quarterdeck.engine.workspace.home import Home
from quarterdeck.engine.workspace.operations import Requester
from quarterdeck.engine.workspace.routing import reroute, start_new_name_servers
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
from quarterdeck.planner.survival import Loss
from quarterdeck.planner.view import View, view
from quarterdeck.stores.port import amend

#: The prefixes of public key lines.
_KEY_KINDS = ("ssh-", "ecdsa-", "sk-ssh-", "sk-ecdsa-")


def bootstrap_script(*, user: str, keys: Sequence[str], paths: Sequence[str] = (), probe: bool = False) -> str:
    """The script that root runs on a host, so that ``user`` can log in with any of these public ``keys`` (lines, as
    files have them) and has the rights that quarterdeck needs. ``paths``: where volumes may be besides its own folder.
    ``probe``: that user may also make connections through the host's sshd, as clients of a probe from there do.

    Raises InvalidInput for an invalid public key.
    """
    lines = [line.strip() for each in keys for line in each.splitlines() if line.strip()]
    if not lines or not all(line.startswith(_KEY_KINDS) and len(line.split()) > 1 for line in lines):
        raise InvalidInput(
            "making the script that sets up a host", "that is not a public key", "name a file such as id.pub"
        )
    return ssh.bootstrap_script(user, lines, paths, probe=probe)


async def bootstrapped(login: SshLogin, address: str, script: str) -> str:
    """Run the script on a host, as a user with the rights; returns its output. Raises Unavailable when the host cannot
    be reached, PreconditionFailed when that user lacks rights.
    """
    return await ssh.bootstrapped(login, address, script)


class Hosts:
    """The half of ``Quarterdeck.sites`` that is about hosts, and about sites of hosts."""

    def __init__(self, home: Home, requester: Requester, name_server: Callable[[], Awaitable[Path]]) -> None:
        """``name_server`` gets the program of DNS servers."""
        self._home = home
        self._requester = requester
        self._name_server = name_server

    async def add_hosts(self, name: str, hosts: Sequence[Host]) -> Checked:
        """Add hosts to a site; returns the findings of ``check`` about them. Raises NotFound, Conflict (another site
        has one of them), InvalidInput (they do not fit such a site, or duplicate others), PreconditionFailed (planes
        cannot run on one of them), Unavailable (an edge that must be informed does not answer, or a DNS server cannot
        be started).
        """
        change = _Change(self._home, f"adding hosts to site {name}", name, lambda seen: (*seen.hosts, *hosts))
        site, changed = await change.allowed()
        checked = await require_fit(self._home, change.doing, changed, [each.name for each in hosts])
        await start_new_name_servers(self._home, site, changed, self._name_server)
        await change.made(site, changed)
        return checked

    async def require_spare(self, name: str, host: str) -> Host:
        """A host on which no plane has anything, except load balancers with floating addresses if the others serve all
        planes. Raises NotFound, InvalidInput, Conflict that names its users.
        """
        doing = f"removing host {host} from site {name}"
        site = await self._home.site(name)
        spec = _spec(doing, site)
        found = _host(doing, spec, host)
        others = _with(doing, site, _others(spec, host))
        await _require_safe(self._home, site, others, f"'site drain {name} {host}' first", spare_edge=host)
        if MachineRole.EDGE in found.roles:
            await _require_served_without(self._home, doing, name, found.machines[MachineRole.EDGE])
        return found

    async def remove_host(self, name: str, host: str, *, forget: bool = False) -> None:
        """Remove a host from a site, after quarterdeck's files and units on it; ``forget``: these stay, for a host that
        is lost. Raises what ``require_spare`` does, Unavailable when it does not answer: it is cordoned then.
        """
        doing = f"removing host {host} from site {name}"
        found = await self.require_spare(name, host)
        if MachineRole.CONTROL in found.roles:  # nothing may be placed there from now on
            await cordons.cordon_site(self._home, name, host, self._requester)
            await self.require_spare(name, host)
        site, edge = await self._home.site(name), MachineRole.EDGE in found.roles
        next_step = "bring it back, or add --forget if it is lost for good"
        try:
            if edge:  # its addresses move first, and nothing is placed there from then on
                await _taken_out(self._home, doing, name, found, forget=forget)
                next_step = "the site no longer has it: see docs/how-to/ssh.md for what may be left on it"
            if not forget:
                spec = _spec(doing, site).model_copy(update={"hosts": (found,)})
                await self._home.sites.destroy(site.model_copy(update={"spec": spec}))
        except Unavailable as error:
            raise Unavailable(doing, error.seen, next_step) from error
        if not edge:
            await _taken_out(self._home, doing, name, found, forget=forget)

    async def replace_host(
        self, name: str, host: str, *, address: str | None = None, login: SshLogin
    ) -> Checked | None:
        """Change how a host is reached; returns the findings of ``check`` about it (None: nothing changed). Values that
        are not given stay. Raises NotFound, InvalidInput, Conflict while a plane has something at its address,
        PreconditionFailed where planes cannot run on it.

        An etcd member is where its seat is: at the host's address of that time. So the address stays as long as a plane
        has anything there. A host that died with its address is replaced by a new host with another name.
        """
        doing = f"replacing host {host} of site {name}"
        _host(doing, _spec(doing, await self._home.site(name)), host)

        def other(each: Host) -> Host:
            return each if each.name != host else _reached(doing, each, address, login)

        change = _Change(self._home, doing, name, lambda seen: tuple(map(other, seen.hosts)))
        advice = f"add the new one with another name ('site machines add {name}'), and remove {host} once it is empty"
        site, changed = await change.allowed(advice)
        if changed.spec == site.spec:
            return None
        checked = await require_fit(self._home, doing, changed, (host,))
        await start_new_name_servers(self._home, site, changed, self._name_server)
        await change.made(site, changed)
        return checked

    async def require_forgettable(self, name: str) -> Sequence[str]:
        """What planes have left at a site that can be forgotten, as text. Raises NotFound, InvalidInput (a local site),
        Conflict that names the planes which are there.

        What runs there, or may be known to clients, must not be forgotten: a plane would wait for it for ever.
        """
        doing = f"forgetting site {name}"
        site, planes = await self._home.site(name), await self._home.store.list(ControlPlane)
        if not isinstance(site.spec, SshSpec):
            raise InvalidInput(doing, "its machines are on this host", f"'site remove {name}'")
        there = sorted(each.metadata.name for each in planes if _is_at(each, name))
        if there:
            raise Conflict(doing, f"in use by {', '.join(there)}", "migrate or delete them first")
        await require_names_kept_without(self._home, site, planes)
        return tuple(words for _, words in sorted(used_machines(name, planes).items()))

    async def forget(self, name: str) -> None:
        """Remove a site from the home; its hosts stay unchanged. Raises what ``require_forgettable`` does."""
        await self.require_forgettable(name)
        await self._home.store.delete(Site, name)


async def _require_served_without(home: Home, doing: str, site: str, edge: str) -> None:
    """Raise Conflict where clients of a plane need an edge, or perhaps do."""
    loss = Loss(where="", edges=frozenset({edge}))
    views: dict[str, tuple[View, Loss]] = {}
    for name in users_of(site, await home.store.list(ControlPlane)):
        seen = await look(home, name)
        if seen.operation is not None:
            operation = seen.operation.metadata.name
            raise Conflict(doing, f"operation {operation} of plane {name} is in progress", "wait for its end")
        views[name] = (view(seen.world), loss)
    if why := dangers(views):
        raise Conflict(doing, "; ".join(why), "repair the other hosts of role edge first, or add one")


async def _taken_out(home: Home, doing: str, name: str, host: Host, *, forget: bool) -> None:
    change = _Change(home, doing, name, lambda seen: _others(seen, host.name))
    site, changed = await change.allowed(spare_edge=host.name)
    await change.made(site, changed, gone=tuple(host.machines.values()) if forget else ())


def _reached(doing: str, host: Host, address: str | None, login: SshLogin) -> Host:
    """A host with these of its connection values changed."""
    changed: dict[str, object] = {"ssh": host.ssh.model_copy(update=login.model_dump(exclude_none=True))}
    if address is not None:
        changed["address"] = address
    with explained(doing, Host):
        return Host.model_validate({**host.model_dump(), **changed})


def _is_at(plane: ControlPlane, site: str) -> bool:
    """Whether anything of a plane runs at a site, is planned there, or clients may connect there. (Data and units that
    it left behind are no reason to wait.)
    """
    memory = plane.status.memory
    named = {plane.spec.placement.site, memory.served_site, *memory.unsettled, *(each.name for each in memory.held)}
    return site in named | {each.slot.site for each in memory.replicas}


async def require_names_kept_without(home: Home, site: Site, planes: Sequence[ControlPlane]) -> None:
    """Raise Conflict for a site without which nothing would serve the names of planes."""
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
        """The site, and its planned spec, if the change is safe."""
        site = await self.home.site(self.name)
        changed = self._of(site)
        require_distinct(changed, await self.home.store.list(Site))
        await _require_safe(self.home, site, changed, next_step, spare_edge=spare_edge)
        return site, changed

    async def made(self, site: Site, changed: Site, *, gone: Collection[str] = ()) -> None:
        """Apply it. For ``gone`` see ``reroute``."""
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
