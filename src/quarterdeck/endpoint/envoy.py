"""The load balancer port by Envoy, run as a unit of the site's edge machine."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from quarterdeck.components.credentials import KeyPair
from quarterdeck.components.envoy import (
    BalancerSettings,
    BalancerTls,
    backends_file,
    balancer_unit,
    tls_files,
)
from quarterdeck.endpoint.envoy_status import EnvoyView, StatusClient
from quarterdeck.errors import PreconditionFailed, TimedOut, Unavailable
from quarterdeck.http import Http
from quarterdeck.model.endpoints import BackendAddress, BalancerStatus
from quarterdeck.model.site_facts import SiteFacts
from quarterdeck.model.units import UnitState
from quarterdeck.pki.authority import Request, Usage, issue
from quarterdeck.pki.issuing import LEAF_LIFETIME
from quarterdeck.sites.port import Holds, Site

_ALIVE = frozenset({UnitState.RUNNING, UnitState.STOPPING})


def issue_balancer_tls(authority: KeyPair, manager: str, address: str, now: datetime) -> BalancerTls:
    """What a load balancer at ``address`` needs, from the plane's CA, to answer whose certificate says ``manager``.
    It may be given a new one at any time.
    """
    request = Request(common_name="load-balancer", usage=Usage.SERVER, lifetime=LEAF_LIFETIME, ip_addresses=(address,))
    return BalancerTls(ca=authority.certificate, serving=issue(authority, request, now), manager=manager)


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvoyBalancer:
    """One Envoy on ``machine`` of ``site``.

    ``tls`` makes what it serves with, whenever it is started or changed: most that is done with it is to look at it.
    ``client`` trusts the plane's CA and shows the manager's certificate of it; it is the caller's to close.
    ``patience`` is how long (seconds) ``apply`` waits for the process, and again for a new backend to get healthy.
    """

    site: Site
    machine: str
    settings: BalancerSettings
    tls: Callable[[], BalancerTls] = field(repr=False)
    client: Http = field(repr=False)
    patience: float = 20.0

    @property
    def address(self) -> BackendAddress:
        """Where clients connect to."""
        return BackendAddress(self.settings.address, self.settings.port)

    async def apply(self, backends: Mapping[str, BackendAddress]) -> None:
        """See ``LoadBalancer.apply``."""
        before = await self._view_before()
        if before is not None and _leaves_nobody(before, backends):
            await self._bring_in(before, backends)
        await self._take(backends)

    async def observe(self, site: SiteFacts | None = None) -> BalancerStatus:
        """See ``LoadBalancer.observe``."""
        view = await self._view_if_running(site)
        if view is None:
            return BalancerStatus(running=False)
        return BalancerStatus(
            running=True,
            backends=frozenset(view.backends),
            healthy=view.healthy,
            at=tuple(view.backends.items()),
            connections=view.connections,
            accepted_total=view.accepted_total,
        )

    async def hold(self, seconds: float) -> None:
        """See ``LoadBalancer.hold``: the process stands still."""
        await self._holds.hold_unit(self.machine, self.settings.unit, seconds)

    async def let_go(self) -> None:
        """See ``LoadBalancer.let_go``."""
        await self._holds.let_go_unit(self.machine, self.settings.unit)

    async def remove(self) -> None:
        """See ``LoadBalancer.remove``."""
        await self.site.remove_unit(self.machine, self.settings.unit)

    async def _view_if_running(self, site: SiteFacts | None = None) -> EnvoyView | None:
        state = await self._state(site)
        if state is UnitState.UNKNOWN:
            raise Unavailable(f"looking at load balancer {self.settings.unit}", f"{self.machine} does not answer")
        if state not in _ALIVE:
            return None
        return await self._status().read()

    @property
    def _holds(self) -> Holds:
        if not isinstance(self.site, Holds):
            raise PreconditionFailed(
                f"holding the load balancer {self.settings.unit}", f"site {self.site.name} holds no units"
            )
        return self.site

    async def _state(self, site: SiteFacts | None) -> UnitState:
        """What becomes of its process, as the site was seen to have it, or else is asked now."""
        machine = site.machine(self.machine) if site is not None else None
        if machine is not None:
            return machine.unit(self.settings.unit).state
        units = await self.site.units(self.machine)
        return next((unit.state for unit in units if unit.name == self.settings.unit), UnitState.ABSENT)

    async def _view_before(self) -> EnvoyView | None:
        try:
            return await self._view_if_running()
        except Unavailable:  # just starting, or hung: it serves nobody who could be hurt; _take() has a deadline
            return None

    async def _bring_in(self, before: EnvoyView, backends: Mapping[str, BackendAddress]) -> None:
        """Make before break: let the new ones in beside the old until one of them is healthy."""
        await self._take({**before.backends, **backends})
        await self._wait(
            "a new backend to pass its health check; the former ones are kept",
            lambda view: not view.healthy.isdisjoint(backends) or not view.healthy,
        )

    async def _take(self, backends: Mapping[str, BackendAddress]) -> None:
        """Write the live files, have Envoy run, and see that it has taken the set."""
        wanted, tls = dict(backends), await asyncio.to_thread(self.tls)
        live = (*tls_files(self.settings, tls), backends_file(self.settings, wanted))
        await self.site.write_files(self.machine, live)
        # One that runs is never restarted for a change of its unit (a newer quarterdeck): that would cut its clients.
        if not await self._runs():
            await self.site.start_unit(self.machine, balancer_unit(self.settings, tls.manager))
        await self._wait("it to take its backends", lambda view: view.backends == wanted)

    async def _runs(self) -> bool:
        units = await self.site.units(self.machine)
        return any(each.name == self.settings.unit and each.state is UnitState.RUNNING for each in units)

    async def _wait(self, what: str, holds: Callable[[EnvoyView], bool]) -> None:
        seen = "no answer"
        try:
            status = self._status()
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
            raise TimedOut(
                f"waiting for {what} (load balancer {self.settings.unit} on {self.machine})",
                f"{seen} after {self.patience:g} s",
                "look at its logs and at /readyz of the backends",
            ) from error

    def _status(self) -> StatusClient:
        return StatusClient(BackendAddress(self.settings.address, self.settings.status_port), self.client)


def _leaves_nobody(before: EnvoyView, backends: Mapping[str, BackendAddress]) -> bool:
    """Whether a direct change would leave new connections without a healthy backend, for a moment or longer."""
    stay = {name for name, address in backends.items() if before.backends.get(name) == address}
    return bool(backends) and bool(before.healthy) and before.healthy.isdisjoint(stay)
