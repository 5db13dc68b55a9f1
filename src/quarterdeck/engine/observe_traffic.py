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


@dataclass(frozen=True, slots=True, kw_only=True)
class TrafficObserver:
    """Observes those of one plane, at the sites that may have one."""

    plane: Plane

    async def observe(self, names: Sequence[str], sites: SeenSites) -> Mapping[str, Dated[BalancerStatus]]:
        """One look at each."""
        at, balancers = self.plane.steady(), self.plane.balancers
        asked = [name for name in names if name in balancers]
        found = await asyncio.gather(*(or_none(balancers[name].observe(sites[name].said)) for name in asked))
        return {name: Dated(at, status) for name, status in zip(asked, found, strict=True)}
