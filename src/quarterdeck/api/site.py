"""Site: a place with machines, zones and storage classes."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from quarterdeck.api.base import Metadata, Model, Resource, named_within
from quarterdeck.api.conditions import Condition
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
    """A kind of volume. No ``path``: below quarterdeck's own folder. ``limit_bytes``: what it may hold in all."""

    name: StorageClassName
    path: AbsolutePath | None = None
    limit_bytes: Annotated[Bytes, Field(ge=2**20)] | None = None


class SiteSpec(Model):
    """What the site is made of. The first storage class is the default one."""

    driver: Literal["local"] = "local"
    isolation: Isolation = Isolation.LOOPBACK
    zones: Annotated[tuple[ZoneName, ...], SOME_ONCE] = ("a", "b", "c")
    machines_per_zone: Annotated[int, Field(ge=1), InSchema({"maximum": MACHINES_MAX})] = 2
    storage_classes: Annotated[tuple[StorageClass, ...], SOME] = (StorageClass(name="standard"),)

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
        machines = len(self.zones) * self.machines_per_zone
        if machines > MACHINES_MAX:
            problems.append(("machinesPerZone", f"makes {machines} machines; at most {MACHINES_MAX} are allowed"))
        refuse_if_any(problems)
        return self


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


def default_sites() -> tuple[Site, Site]:
    """``east`` and ``west``: the loopback sites that exist from the start, each with room for 5 replicas + 1."""
    return (
        Site(metadata=Metadata(name="east"), status=SiteStatus(number=1)),
        Site(metadata=Metadata(name="west"), status=SiteStatus(number=2)),
    )
