"""Site: a place with machines, zones and storage classes."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from quarterdeck.api.base import Metadata, Model, Resource, named_within
from quarterdeck.api.conditions import Condition
from quarterdeck.api.cordons import Cordon
from quarterdeck.api.names import SITE_NAME_MAX
from quarterdeck.api.problems import refuse_if_any
from quarterdeck.api.schema import SOME, SOME_ONCE, InSchema, named
from quarterdeck.api.values import AbsolutePath, Bytes, StorageClassName, ZoneName

#: So that the machines of a site have addresses in one /24.
MACHINES_MAX = 200


class Isolation(StrEnum):
    """What keeps the machines of a local site apart."""

    LOOPBACK = "loopback"  # an address 127.x.y.z each; needs no rights
    NETNS = "netns"  # a network namespace each: they can be cut off, slowed and killed


class StorageClass(Model):
    """A kind of volume. No ``path``: below quarterdeck's own folder. ``limit_bytes``: what it may hold in all.
    ``reattachable``: its volumes outlive their machines, and can be attached to others; else they are local.
    """

    name: StorageClassName
    path: AbsolutePath | None = None
    limit_bytes: Annotated[Bytes, Field(ge=2**20)] | None = None
    reattachable: bool = False


class SiteSpec(Model):
    """What the site is made of. The first storage class is the default one. ``edges``: machines for load balancers,
    each in another zone, on all of which each plane has one. ``floating_addresses``: a plane has an
    address of its own on each, which another edge takes over when that one falls silent. ``cordons``: the machines that
    a person wants to be given no new replica.
    """

    driver: Literal["local"] = "local"
    isolation: Isolation = Isolation.LOOPBACK
    zones: Annotated[tuple[ZoneName, ...], SOME_ONCE] = ("a", "b", "c")
    machines_per_zone: Annotated[int, Field(ge=1), InSchema({"maximum": MACHINES_MAX})] = 2
    edges: Annotated[int, Field(ge=1, le=8)] = 1
    floating_addresses: bool = False
    storage_classes: Annotated[tuple[StorageClass, ...], SOME] = (StorageClass(name="standard"),)
    cordons: tuple[Cordon, ...] = ()

    @model_validator(mode="after")
    def _names_are_distinct_and_machines_countable(self) -> SiteSpec:
        problems: list[tuple[str, str]] = []
        if not self.zones:
            problems.append(("zones", "is empty; a site has at least one zone"))
        if len(set(self.zones)) < len(self.zones):
            problems.append(("zones", "names a zone twice"))
        classes = [each.name for each in self.storage_classes]
        if not classes:
            problems.append(("storageClasses", "is empty; a site has at least one storage class"))
        if len(set(classes)) < len(classes):
            problems.append(("storageClasses", "names a storage class twice"))
        if self.zones and self.edges > len(self.zones):
            problems.append(
                ("edges", f"is {self.edges}; each has a zone of its own, of which there are {len(self.zones)}")
            )
        if self.floating_addresses and self.isolation is not Isolation.NETNS:
            problems.append(("floatingAddresses", "is for sites of isolation netns only"))
        machines = len(self.zones) * self.machines_per_zone
        if machines > MACHINES_MAX:
            problems.append(("machinesPerZone", f"makes {machines} machines; at most {MACHINES_MAX} are allowed"))
        if len({each.machine for each in self.cordons}) < len(self.cordons):
            problems.append(("cordons", "names a machine twice"))
        refuse_if_any(problems)
        return self

    def cordon_of(self, machine: str) -> Cordon | None:
        """The cordon of a machine, or that of the whole site; None if there is neither."""
        found = {each.machine: each for each in self.cordons}
        return found.get(machine) or found.get(None)


class SiteStatus(Model):
    """``number`` is the site's own, that its machines' addresses are made from; given when it is added."""

    number: Annotated[int, Field(ge=1, le=250)] | None = None
    conditions: tuple[Condition, ...] = ()


class Site(Resource):
    """A site."""

    kind: Literal["Site"] = "Site"
    metadata: Annotated[Metadata, AfterValidator(named_within(SITE_NAME_MAX)), named(SITE_NAME_MAX)]
    spec: SiteSpec = SiteSpec()
    status: SiteStatus = SiteStatus()

    def with_cordons(self, cordons: tuple[Cordon, ...]) -> Site:
        """The same site with other cordons."""
        return self.model_copy(update={"spec": self.spec.model_copy(update={"cordons": cordons})})

    def with_cordon(self, made: Cordon) -> Site:
        """The site with one more cordon; the same if its machine has one."""
        known = {each.machine for each in self.spec.cordons}
        return self if made.machine in known else self.with_cordons((*self.spec.cordons, made))


def default_sites() -> tuple[Site, Site]:
    """``east`` and ``west``: the loopback sites that exist from the start, each with room for 5 replicas + 1."""
    return (
        Site(metadata=Metadata(name="east"), status=SiteStatus(number=1)),
        Site(metadata=Metadata(name="west"), status=SiteStatus(number=2)),
    )
