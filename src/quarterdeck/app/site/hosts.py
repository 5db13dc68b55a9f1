"""The hosts of ssh sites: set up, added, removed, replaced where they died; and sites that are gone for good."""

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
from quarterdeck.engine.workspace.operations import Asker
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

#: How lines of public keys begin.
_KEY_KINDS = ("ssh-", "ecdsa-", "sk-ssh-", "sk-ecdsa-")


def bootstrap_script(*, user: str, keys: Sequence[str], paths: Sequence[str] = (), probe: bool = False) -> str:
    """What root is to run on a host, so that ``user`` can be logged in as with any of these public ``keys`` (lines, as
    files have them) and may do what quarterdeck does. ``paths``: where volumes may be besides its own folder.
    ``probe``: that user may make connections through the host's sshd as well, as clients of a probe from there do.

    Raises InvalidInput for what is no public key.
    """
    lines = [line.strip() for each in keys for line in each.splitlines() if line.strip()]
    if not lines or not all(line.startswith(_KEY_KINDS) and len(line.split()) > 1 for line in lines):
        raise InvalidInput(
            "making the script that sets up a host", "that is no public key", "name a file such as id.pub"
        )
    return ssh.bootstrap_script(user, lines, paths, probe=probe)


async def bootstrapped(login: SshLogin, address: str, script: str) -> str:
    """Run the script on a host, as a user who may; what it said. Raises Unavailable when the host cannot be reached,
    PreconditionFailed when that user may not.
    """
    return await ssh.bootstrapped(login, address, script)


class Hosts:
    """The half of ``Quarterdeck.sites`` that is about hosts, and about sites of hosts."""

    def __init__(self, home: Home, asker: Asker, name_server: Callable[[], Awaitable[Path]]) -> None:
        """``name_server`` gets the program of DNS servers."""
        self._home = home
        self._asker = asker
        self._name_server = name_server

    async def add_hosts(self, name: str, hosts: Sequence[Host]) -> Checked:
        """Have a site have more hosts; what ``check`` says of them that is to be looked at. Raises NotFound, Conflict
        (another site has one of them), InvalidInput (they are not of such a site, or have what others have),
        PreconditionFailed (planes cannot be on one of them), Unavailable (an edge that has to know does not answer, or
        a DNS server cannot be started).
        """
        change = _Change(self._home, f"adding hosts to site {name}", name, lambda seen: (*seen.hosts, *hosts))
        site, changed = await change.allowed()
        checked = await require_fit(self._home, change.doing, changed, [each.name for each in hosts])
        await start_new_name_servers(self._home, site, changed, self._name_server)
        await change.made(site, changed)
        return checked

    async def require_spare(self, name: str, host: str) -> Host:
        """A host of which no plane has anything, but for load balancers where addresses float, if all planes are served
        well by the others. Raises NotFound, InvalidInput, Conflict that says who has what.
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
        """Take a host out of a site, after what quarterdeck has there; ``forget``: that stays, for one that is gone.
        Raises what ``require_spare`` does, Unavailable when it does not answer: it is cordoned then.
        """
        doing = f"removing host {host} from site {name}"
        found = await self.require_spare(name, host)
        if MachineRole.CONTROL in found.roles:  # nobody may be put there from now on
            await cordons.cordon_site(self._home, name, host, self._asker)
            await self.require_spare(name, host)
        site, edge = await self._home.site(name), MachineRole.EDGE in found.roles
        next_step = "have it answer, or --forget it if it is gone for good"
        try:
            if edge:  # its addresses go over first, and nobody puts anything there from then on
                await _taken_out(self._home, doing, name, found, forget=forget)
                next_step = "it is of the site no more: see docs/how-to/ssh.md for what may be left on it"
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
        """Have a host be reached elsewhere, or otherwise; what ``check`` says of it that is to be looked at (None: it
        was reached so already). What is not given stays. Raises NotFound, InvalidInput, Conflict while a plane has
        something at its address, PreconditionFailed where planes cannot be on it.

        A member of etcd is where its seat is: at the host's address of then. So that one stays as long as a plane has
        anything there. One that died with its address is replaced by a new host, by another name.
        """
        doing = f"replacing host {host} of site {name}"
        _host(doing, _spec(doing, await self._home.site(name)), host)

        def other(each: Host) -> Host:
            return each if each.name != host else _reached(doing, each, address, login)

        change = _Change(self._home, doing, name, lambda seen: tuple(map(other, seen.hosts)))
        advice = f"add the new one by another name ('site machines add {name}'), and remove {host} once it is empty"
        site, changed = await change.allowed(advice)
        if changed.spec == site.spec:
            return None
        checked = await require_fit(self._home, doing, changed, (host,))
        await start_new_name_servers(self._home, site, changed, self._name_server)
        await change.made(site, changed)
        return checked

    async def require_forgettable(self, name: str) -> Sequence[str]:
        """What planes have left at a site that can be forgotten, in words. Raises NotFound, InvalidInput (a local
        site), Conflict that names the planes which are there.

        What runs there, or may be in the hands of clients, must not be forgotten: a plane would wait for it for ever.
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
        """Have the home have a site no more; its hosts stay as they are. Raises what ``require_forgettable`` does."""
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
            raise Conflict(doing, f"operation {operation} of plane {name} is under way", "wait for its end")
        views[name] = (view(seen.world), loss)
    if why := dangers(views):
        raise Conflict(doing, "; ".join(why), "have the other hosts of role edge be well first, or add one")


async def _taken_out(home: Home, doing: str, name: str, host: Host, *, forget: bool) -> None:
    change = _Change(home, doing, name, lambda seen: _others(seen, host.name))
    site, changed = await change.allowed(spare_edge=host.name)
    await change.made(site, changed, gone=tuple(host.machines.values()) if forget else ())


def _reached(doing: str, host: Host, address: str | None, login: SshLogin) -> Host:
    """A host that is reached by what is given of these, and else as before."""
    changed: dict[str, object] = {"ssh": host.ssh.model_copy(update=login.model_dump(exclude_none=True))}
    if address is not None:
        changed["address"] = address
    with explained(doing, Host):
        return Host.model_validate({**host.model_dump(), **changed})


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
