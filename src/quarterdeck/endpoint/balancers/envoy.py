"""The load balancer port with Envoy, run as a unit of the site's edge machine."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime

from quarterdeck.components.credentials import Authority
from quarterdeck.components.traffic.envoy import (
    BalancerSettings,
    BalancerTls,
    backends_file,
    balancer_unit,
    tls_files,
)
from quarterdeck.endpoint.balancers.envoy_status import EnvoyView, StatusClient
from quarterdeck.endpoint.clients_wait import pause_clients, pause_new_clients
from quarterdeck.errors import PreconditionFailed, TimedOut, Unavailable
from quarterdeck.http import Http
from quarterdeck.model.endpoints import BackendAddress, BalancerStatus
from quarterdeck.model.site_facts import SiteFacts
from quarterdeck.model.units import Program, UnitFile, UnitSpec, UnitState, UnitStatus
from quarterdeck.pki.authority import issue
from quarterdeck.pki.certificate import CertificateRequest, Usage
from quarterdeck.pki.issuance import LEAF_LIFETIME
from quarterdeck.sites.endings import why_idle
from quarterdeck.sites.port import Holds, SitePort

#: Seconds for an answer of a load balancer at the address that may be elsewhere: it is queried in each observation.
_AT_HOME = 2.0
#: Seconds between checks of a unit that should be running.
_UNIT_LOOKED_AT_EVERY = 0.1
#: Seconds in which a load balancer is stopped, and the promoted address moves to another machine.
_TAKEN_DOWN_WITHIN = 15.0
#: Seconds for a client that has just connected to send its request and get the answer. A client with an older
#: connection knows that a server may close a connection at any time, and sends its request again.
_REQUEST = 1.5
_ALIVE = frozenset({UnitState.RUNNING, UnitState.STOPPING})


def issue_balancer_tls(
    authority: Authority, manager: str, addresses: tuple[str, ...], now: datetime, names: tuple[str, ...] = ()
) -> BalancerTls:
    """The certificates, from the plane's CA, of a load balancer at ``addresses`` with these ``names``. Its status
    listener answers only the client certificate of ``manager``. They may be replaced at any time.
    """
    request = CertificateRequest(
        common_name="load-balancer",
        usage=Usage.SERVER,
        lifetime=LEAF_LIFETIME,
        dns_names=names,
        ip_addresses=addresses,
    )
    return BalancerTls(ca=authority.bundle, serving=issue(authority.issuer, request, now), manager=manager)


@dataclass(frozen=True, slots=True, kw_only=True)
class Floating:
    """How an address that moves between edges comes to a load balancer's machine: ``unit`` manages it there. It belongs
    to all planes, and stays when this load balancer is removed.
    """

    own: str
    unit: UnitSpec
    #: The file by which ``unit`` knows of this load balancer.
    watched: UnitFile
    #: The name of only this load balancer's certificate, where others are reached at the same address.
    named: str
    #: The files of other planes' load balancers, without which the machine must not have an address.
    expected: tuple[UnitFile, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvoyBalancer:
    """One Envoy on ``machine`` of ``site``."""

    site: SitePort
    machine: str
    #: It has its program as it is on this host.
    settings: BalancerSettings
    #: Makes its server certificate, whenever it is started or changed: most calls only observe it.
    tls: Callable[[], BalancerTls] = field(repr=False)
    #: Trusts the plane's CA and presents the manager's certificate; the caller closes it.
    client: Http = field(repr=False)
    #: Set if its address moves between edges; ``settings`` has that of its machine.
    floating: Floating | None = None
    #: The unit by which its machine may have the plane's promoted address.
    promoted: str | None = None
    #: Seconds for which ``apply`` waits for the process, and again for a new backend to become healthy.
    patience: float = 20.0

    @property
    def address(self) -> BackendAddress:
        """The address that clients connect to."""
        ip = self.settings.address if self.floating is None else self.floating.own
        return BackendAddress(ip, self.settings.port)

    @property
    def floats(self) -> bool:
        """See ``LoadBalancer.floats``."""
        return self.floating is not None

    @property
    def can_hold(self) -> bool:
        """See ``LoadBalancer.can_hold``."""
        return True

    async def apply(self, backends: Mapping[str, BackendAddress]) -> None:
        """See ``LoadBalancer.apply``."""
        before = await self._view_before()
        if before is not None and _leaves_nobody(before, backends):
            await self._bring_in(before, backends)
        await self._take(backends)
        if self.floating is not None:
            await self._have_address(self.floating)

    async def _have_address(self, floating: Floating) -> None:
        """Make the address lead here, or to another edge that has it as well."""
        state = _state(await self._units(), floating.unit.name)  # before files of it are there
        await self.site.write_files(self.machine, (floating.watched,))
        if state is UnitState.RUNNING:
            return
        if floating.expected:
            await self.site.write_files(self.machine, floating.expected)
        await self.site.start_unit(self.machine, floating.unit)
        if state is UnitState.ABSENT:
            await self._wait("its address to be here", lambda _view: True, self._clients_way(None))
        else:  # another edge may keep it for as long as its clients are connected there
            await self._wait_for_unit(floating.unit.name)

    async def observe(self, site: SiteFacts | None = None) -> BalancerStatus:
        """See ``LoadBalancer.observe``."""
        units = await self._units(site)
        if not self._alive(units):
            return BalancerStatus(running=False, left=self._left(units), at_home=not self.floats)
        at_home, view = await self._view()
        return BalancerStatus(
            running=True,
            at_home=at_home,
            unrouted=self._unrouted(units),
            backends=frozenset(view.backends),
            healthy=view.healthy,
            at=tuple(view.backends.items()),
            connections=view.connections,
            accepted_total=view.accepted_total,
        )

    async def has(self, address: str) -> bool:
        """See ``FindsAddresses``: it answers there, with its unique name."""
        if self.floating is None:
            return False
        try:
            await self._at(address, self.floating.named).read()
        except Unavailable:  # another edge answers, or none does
            return False
        return True

    async def hold(self, seconds: float) -> None:
        """See ``LoadBalancer.hold``: the process is stopped."""
        await self._holds.hold_unit(self.machine, self.settings.unit, seconds)

    async def let_go(self) -> None:
        """See ``LoadBalancer.let_go``."""
        await self._holds.let_go_unit(self.machine, self.settings.unit)

    async def remove(self) -> None:
        """See ``LoadBalancer.remove``. Clients of a promoted address that is still here learn of the end of their
        connections before the next machine has it, and new ones wait in the meantime.
        """
        if self.floating is not None:
            await self.site.remove_files(self.machine, (self.floating.watched.path,))
        if self.promoted is not None and _state(await self._units(), self.promoted) is UnitState.RUNNING:
            await pause_new_clients(self.site, self.machine, self.promoted, _TAKEN_DOWN_WITHIN)
            await asyncio.sleep(_REQUEST)
            await pause_clients(self.site, self.machine, self.promoted, _TAKEN_DOWN_WITHIN)
        await self.site.remove_unit(self.machine, self.settings.unit)
        if self.promoted is not None:
            await self.site.remove_unit(self.machine, self.promoted)

    async def _units(self, site: SiteFacts | None = None) -> Mapping[str, UnitStatus]:
        """All units on its machine, by name, as the site was observed, or else as it reports now."""
        machine = site.machine(self.machine) if site is not None else None
        units = machine.units if machine is not None else await self.site.units(self.machine)
        if units is None:
            raise Unavailable(f"observing load balancer {self.settings.unit}", f"{self.machine} does not answer")
        return {each.name: each for each in units}

    def _alive(self, units: Mapping[str, UnitStatus]) -> bool:
        return _state(units, self.settings.unit) in _ALIVE

    def _left(self, units: Mapping[str, UnitStatus]) -> bool:
        """Whether the machine has anything that ``remove`` removes, in whatever state: files alone as well, which
        contain a private key.
        """
        return self.settings.unit in units or self.promoted in units

    def _unrouted(self, units: Mapping[str, UnitStatus]) -> str:
        """See ``BalancerStatus``."""
        if self.floating is None or _state(units, self.floating.unit.name) in _ALIVE:
            return ""
        return _why_idle(units, self.floating.unit.name)

    @property
    def _holds(self) -> Holds:
        if not isinstance(self.site, Holds):
            raise PreconditionFailed(
                f"pausing the load balancer {self.settings.unit}", f"site {self.site.name} cannot pause units"
            )
        return self.site

    async def _view_before(self) -> EnvoyView | None:
        try:
            return await self._status().read() if self._alive(await self._units()) else None
        except Unavailable:  # just starting, or hung: no client could be harmed; _take() has a deadline
            return None

    async def _bring_in(self, before: EnvoyView, backends: Mapping[str, BackendAddress]) -> None:
        """Make before break: add the new backends to the old ones until one of them is healthy."""
        await self._take({**before.backends, **backends})
        await self._wait(
            "a new backend to pass its health check; the former ones are kept",
            lambda view: not view.healthy.isdisjoint(backends) or not view.healthy,
        )

    async def _take(self, backends: Mapping[str, BackendAddress]) -> None:
        """Write the live files, start Envoy, and wait until it has loaded the set."""
        wanted, tls = dict(backends), await asyncio.to_thread(self.tls)
        live = (*tls_files(self.settings, tls), backends_file(self.settings, wanted))
        await self.site.write_files(self.machine, live)
        # A running one is never restarted for a change of its unit (a newer quarterdeck): that would cut its clients.
        if _state(await self._units(), self.settings.unit) is not UnitState.RUNNING:
            program = Program(self.settings.binary.name, self.settings.binary)
            there = replace(self.settings, binary=await self.site.install(self.machine, program))
            await self.site.start_unit(self.machine, balancer_unit(there, tls.manager))
        await self._wait("it to load its backends", lambda view: view.backends == wanted)

    async def _wait(self, what: str, holds: Callable[[EnvoyView], bool], status: StatusClient | None = None) -> None:
        seen = "no answer"
        status = status or self._status()
        try:
            async with asyncio.timeout(self.patience):
                while True:
                    try:
                        view = await status.read()
                    except Unavailable as error:  # it may be just starting
                        seen = error.seen
                    else:
                        if holds(view):
                            return
                        seen = view.describe()
                    await asyncio.sleep(0.01)
        except TimeoutError as error:
            doing = f"waiting for {what} (load balancer {self.settings.unit} on {self.machine})"
            seen = await why_idle(self.site, self.machine, self.settings.unit) or seen
            raise TimedOut(
                doing, f"{seen} after {self.patience:g} s", "check its logs and /readyz of the backends"
            ) from error

    async def _wait_for_unit(self, name: str) -> None:
        units = await self._units()
        try:
            async with asyncio.timeout(self.patience):
                while _state(units, name) is not UnitState.RUNNING:
                    await asyncio.sleep(_UNIT_LOOKED_AT_EVERY)
                    units = await self._units()
        except TimeoutError as error:
            raise TimedOut(
                f"waiting for {name} on {self.machine} to run",
                f"{await why_idle(self.site, self.machine, name) or 'it does not stay up'} after {self.patience:g} s",
                f"check its log on {self.machine}",
            ) from error

    async def _view(self) -> tuple[bool, EnvoyView]:
        """Whether its address leads here, and its own status."""
        if self.floating is not None:
            with suppress(Unavailable):  # another edge answers, or none does
                return True, await self._clients_way(self.floating.named).read()
        return not self.floats, await self._status().read()

    def _clients_way(self, named: str | None) -> StatusClient:
        """To itself, if its address is here: the certificate of any other is not for that address, or not
        ``named`` so.
        """
        return self._at(self.address.ip, named)

    def _at(self, address: str, named: str | None) -> StatusClient:
        return StatusClient(BackendAddress(address, self.settings.status_port), self.client, _AT_HOME, named)

    def _status(self) -> StatusClient:
        return StatusClient(BackendAddress(self.settings.address, self.settings.status_port), self.client)


def _state(units: Mapping[str, UnitStatus], name: str) -> UnitState:
    return units[name].state if name in units else UnitState.ABSENT


def _why_idle(units: Mapping[str, UnitStatus], name: str) -> str:
    why = units[name].refused if name in units else ""
    return f"{name} does not run there" + (f": {why}" if why else "")


def _leaves_nobody(before: EnvoyView, backends: Mapping[str, BackendAddress]) -> bool:
    """Whether a direct change would leave new connections without a healthy backend, for a moment or longer."""
    stay = {name for name, address in backends.items() if before.backends.get(name) == address}
    return bool(backends) and bool(before.healthy) and before.healthy.isdisjoint(stay)
