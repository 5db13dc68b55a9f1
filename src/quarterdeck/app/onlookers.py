"""Real clients that measure a plane from outside while it is changed."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager

from typing_extensions import override

from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.hosts import Host
from quarterdeck.api.site import AddressSpace, Site, SshSpec
from quarterdeck.drivers.ssh import login_of
from quarterdeck.engine.notices.watchers import Unwatched, Watcher
from quarterdeck.engine.preflight.reach import require_in_reach
from quarterdeck.engine.workspace import recorded
from quarterdeck.engine.workspace.access import probe_target
from quarterdeck.engine.workspace.home import Home
from quarterdeck.errors import InvalidInput, NotFound
from quarterdeck.model.steps.base import Step
from quarterdeck.model.steps.traffic import StopBalancer
from quarterdeck.probe.result import ProbeResult, Summary
from quarterdeck.probe.schema import Failure
from quarterdeck.probe.session import ProbeSession
from quarterdeck.probe.target import ClientKind, ProbeSettings, Source

#: The periods of such a probe; the baseline comes before them.
DURING = "change"
AFTER = "after"
#: Seconds for which the probe continues after the change.
_AFTERWARDS = 2.0


@asynccontextmanager
async def probing(
    home: Home,
    name: str,
    *,
    rate: float,
    host: str | None = None,
    on_failure: Callable[[Failure], None] | None,
    on_summary: Callable[[Summary], None] | None,
) -> AsyncIterator[ProbeSession]:
    """Clients of a plane. See ``Quarterdeck.probing``."""
    plane = await recorded.existing(home.store, name)
    source = await _source(home, plane, host) if host is not None else None
    await require_in_reach(home, plane)
    target = await probe_target(home, plane)
    settings = ProbeSettings(id=uuid.uuid4().hex[:8], rate=rate)
    async with ProbeSession(target, settings, source=source, on_summary=on_summary, on_failure=on_failure) as session:
        yield session


async def _source(home: Home, plane: ControlPlane, host: str) -> Source:
    """The host of that name, or SITE/HOST. Raises InvalidInput (no host can reach the plane; hosts of several sites
    have that name), NotFound.
    """
    doing = f"probing plane {plane.metadata.name} from host {host}"
    if (await home.site(plane.spec.placement.site)).spec.space is not AddressSpace.HOSTS:
        raise InvalidInput(doing, "the plane is on machines that are parts of this host", "probe it from here")
    known = dict(_hosts(await home.store.list(Site)))
    found = [name for name in known if host in (name, name.partition("/")[2])]
    if not found:
        raise NotFound(doing, "no site has such a host", f"hosts: {', '.join(known) or 'none'}")
    if len(found) > 1:
        raise InvalidInput(doing, f"there are {', '.join(found)}", "name the site, too")
    chosen = known[found[0]]
    return Source(name=found[0], login=login_of(chosen.ssh, chosen.address))


def _hosts(sites: Sequence[Site]) -> Iterator[tuple[str, Host]]:
    """All hosts of sites, by SITE/HOST."""
    for site in sites:
        if isinstance(site.spec, SshSpec):
            yield from ((f"{site.metadata.name}/{each.name}", each) for each in site.spec.hosts)


class Onlookers(Unwatched, Watcher):
    """Runs a probe for a baseline, then during a change of the plane. A ``Watcher``: pass it to ``carry_out``.

    Clients that never resolve the name again end when the old address is released, as agreed: its time to live and its
    drain have passed by then.
    """

    def __init__(self, probe: ProbeSession) -> None:
        self._probe = probe

    async def quiet(self, seconds: float) -> None:
        """Measure the baseline; everything afterwards counts for the change."""
        await asyncio.sleep(seconds)
        await self._probe.mark(DURING)

    @override
    async def begins(self, step: Step) -> None:
        if isinstance(step, StopBalancer):
            await self._probe.retire(ClientKind.PINNED)

    async def result(self) -> ProbeResult:
        """The result, once the clients have run for a moment after the change."""
        await self._probe.mark(AFTER)
        await asyncio.sleep(_AFTERWARDS)
        return await self._probe.stop()
