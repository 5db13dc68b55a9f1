"""The observation of the load balancers of a plane."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from quarterdeck.actions.plane import Plane
from quarterdeck.engine.asking import or_none
from quarterdeck.engine.assemble import Dated
from quarterdeck.engine.observe_sites import SeenSites
from quarterdeck.model.endpoints import BalancerStatus
from quarterdeck.model.site_facts import SiteFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class TrafficObserver:
    """Observes those of one plane, at the sites that may have one."""

    plane: Plane

    async def observe(self, names: Sequence[str], sites: SeenSites) -> Mapping[str, Dated[BalancerStatus]]:
        """One look at each."""
        at = self.plane.steady()
        asked = [name for name in names if name in self.plane.balancers]
        found = await asyncio.gather(*(self._look(name, sites[name].said) for name in asked))
        return {name: Dated(at, status) for name, status in zip(asked, found, strict=True)}

    async def _look(self, name: str, site: SiteFacts | None) -> BalancerStatus | None:
        machine = site.machine(self.plane.edge(name).name) if site is not None else None
        if machine is not None and machine.units is None:
            return None  # it would be waited for as long again
        return await or_none(self.plane.balancers[name].observe(site))
