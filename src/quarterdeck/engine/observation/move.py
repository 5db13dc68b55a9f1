"""A planned change of a plane's replicas: the input of all preflight checks."""

from __future__ import annotations

from dataclasses import dataclass

from quarterdeck.actions.plane import Plane
from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.site import Site as SiteResource
from quarterdeck.model.units import Machine
from quarterdeck.model.world import World


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """The input of the checks. ``wanted`` is the resource after the change."""

    plane: Plane
    wanted: ControlPlane
    world: World
    source: tuple[Machine, ...]
    target: tuple[Machine, ...]
    target_site: SiteResource
    allow_distance: bool

    @property
    def cordoned(self) -> tuple[str, ...]:
        """The cordoned machines of the target."""
        spec = self.target_site.spec
        return tuple(each.name for each in self.target if spec.cordon_of(each.name) is not None)

    @property
    def open(self) -> tuple[Machine, ...]:
        """The machines of the target that can get a replica."""
        return tuple(each for each in self.target if each.name not in self.cordoned)

    @property
    def elsewhere(self) -> bool:
        """Whether all replicas move to another site."""
        return self.wanted.spec.placement.site != self.plane.resource.spec.placement.site

    @property
    def coming(self) -> int:
        """How many replicas are started at most at once, while all present ones keep running."""
        more = self.wanted.spec.replicas - self.plane.resource.spec.replicas
        return self.wanted.spec.replicas if self.elsewhere else max(1, more)
