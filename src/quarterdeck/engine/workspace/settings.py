"""The planner's settings from a plane's spec."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from quarterdeck.api.controlplane import ControlPlane, OnFailure, RecoveryPolicy
from quarterdeck.api.plane.endpoint import EndpointMode, LeadsTo
from quarterdeck.api.site import Site as SiteResource
from quarterdeck.components import ports
from quarterdeck.model.bounds import HealingBounds, Settings
from quarterdeck.model.capabilities import Capability
from quarterdeck.model.epochs import BackupOrigin, Consent, EventsPoint, RestorePoint
from quarterdeck.model.memory import Replica
from quarterdeck.model.seats import Slot
from quarterdeck.planner.slots import slots
from quarterdeck.sites.port import Leads, SitePort


def endpoint_port(plane: ControlPlane) -> int:
    """The port at which clients reach the plane: the user's, or the one that is its own."""
    return plane.spec.endpoint.port or ports.load_balancer_port(plane.status.port_offset or 0)


def balancer_status_port(plane: ControlPlane) -> int:
    """The port of the status of the plane's load balancers."""
    return ports.balancer_status_port(plane.status.port_offset or 0)


def balancer_ports(plane: ControlPlane) -> tuple[int, ...]:
    """All ports of a load balancer of the plane."""
    return endpoint_port(plane), balancer_status_port(plane)


def leads_to_apiservers(plane: ControlPlane) -> bool:
    """Whether the name must lead to the apiservers themselves."""
    return plane.spec.endpoint.leads_to is LeadsTo.APISERVERS


def leads_here(site: SitePort, address: str) -> bool:
    """Whether an address can be moved from machine to machine of a site."""
    return isinstance(site, Leads) and Capability.LEADS in site.capabilities and address in site.led_addresses


def front_site(resource: ControlPlane, sites: Mapping[str, SitePort]) -> str | None:
    """The site of the load balancer at a fixed address: the one that first served the plane. A promoted address belongs
    to a site.
    """
    endpoint = resource.spec.endpoint
    if endpoint.mode is not EndpointMode.ADDRESS:
        return None
    if resource.spec.endpoint.promoted:
        there = (name for name, site in sites.items() if leads_here(site, endpoint.address or ""))
        return next(there, resource.spec.placement.site)
    return resource.status.memory.served_site or resource.spec.placement.site


def planner_settings(plane: ControlPlane) -> Settings:
    """The planner's bounds."""
    endpoint = plane.spec.endpoint
    goes_back = plane.spec.rollout.on_failure is OnFailure.GO_BACK
    asked = plane.spec.healing
    healing = HealingBounds(
        budget=asked.budget,
        after=float(asked.after_seconds),
        later=float(asked.other_zones_after_seconds),
        other_zones=asked.other_zones,
        hung=float(asked.hung_after_seconds),
        lagging=float(asked.lagging_after_seconds),
    )
    # Clients need not look up a promoted address again: the network leads to where it is.
    ttl = 0.0 if plane.spec.endpoint.promoted else float(endpoint.ttl)
    return Settings(
        ttl=ttl,
        drain=endpoint.drain,
        goes_back=goes_back,
        together=plane.spec.rollout.downtime_allowed,
        offline=0 < plane.spec.rollout.offline_generation == plane.spec.certificates.generation,
        healing=healing,
    )


def consent_of(plane: ControlPlane) -> Consent:
    """The user's consent to a new epoch."""
    spec = plane.spec
    automatic = spec.recovery is RecoveryPolicy.AUTOMATIC
    if spec.new_epoch is None:
        return Consent(automatic=automatic)
    given = spec.new_epoch
    restore = None
    if given.restore is not None:
        origin = BackupOrigin(store=given.restore.store, folder=given.restore.folder, epoch=given.restore.epoch)
        found = given.restore.events
        events = EventsPoint(epoch=found.epoch, revision=found.revision) if found is not None else None
        restore = RestorePoint(origin=origin, revision=given.restore.revision, events=events)
    return Consent(
        epoch=given.epoch,
        even_if_others_live=given.even_if_others_live,
        automatic=automatic,
        restore=restore,
        standby=given.standby,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedSpec:
    """The placement of a spec, with the zones of its site as the default."""

    site: str
    zones: tuple[str, ...]
    replicas: int
    standby: Slot | None = None

    @property
    def sites(self) -> tuple[str, ...]:
        """The site of the replicas, and that of the standby."""
        return (self.site,) if self.standby is None else (self.site, self.standby.site)

    def slots(self, present: Iterable[Replica]) -> tuple[Slot, ...]:
        """The wanted slots, given the present replicas."""
        return slots(site=self.site, zones=self.zones, replicas=self.replicas, present=present)


def standby_slot(plane: ControlPlane) -> Slot | None:
    """The place of the standby; None: the plane has none."""
    asked = plane.spec.standby
    return Slot(site=asked.site, zone="") if asked is not None else None


def goal_of(plane: ControlPlane, site: SiteResource) -> ResolvedSpec:
    """The placement of the spec at ``site``."""
    return ResolvedSpec(
        site=plane.spec.placement.site,
        zones=plane.spec.placement.zones or site.spec.zones,
        replicas=plane.spec.replicas,
        standby=standby_slot(plane),
    )
