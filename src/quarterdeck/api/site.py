"""Site: a place with machines, zones and storage classes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, AwareDatetime, Discriminator, Field, Tag, model_validator

from quarterdeck.api.base import Condition, Metadata, Model, Resource, named_within
from quarterdeck.api.hosts import Edge, Host, host_problems
from quarterdeck.api.names import DNS_LABEL_MAX, SITE_NAME_MAX, dns_label
from quarterdeck.api.schema import PROBLEMS, SOME, SOME_ONCE, InSchema, label, named, refuse_if_any
from quarterdeck.api.storage import (
    HOSTS_STANDARD,
    STANDARD,
    HostStorageClass,
    StorageClass,
    class_problems,
    host_class_problems,
)
from quarterdeck.api.values import ZoneName
from quarterdeck.model.units import MachineRole

# Cordons: what a person wants left alone, with who said so and when.

Named = Annotated[str, AfterValidator(dns_label), label(DNS_LABEL_MAX)]


class Cordon(Model):
    """A machine of a site that is given no new replica; no ``machine``: none of the site is."""

    machine: Named | None = None
    by: str = ""
    since: AwareDatetime | None = None


class CordonedReplica(Model):
    """A replica that is left as it is: healing does not touch it, nor does anything that can wait."""

    replica: Named
    by: str = ""
    since: AwareDatetime | None = None


def told(cordon: Cordon | CordonedReplica) -> str:
    """Who said so, and when, in words."""
    who = f" by {cordon.by}" if cordon.by else ""
    when = f" since {cordon.since:%F %T %Z}" if cordon.since is not None else ""
    return f"cordoned{who}{when}"


#: So that the machines of a site have addresses in one /24.
MACHINES_MAX = 200


class Isolation(StrEnum):
    """What keeps the machines of a local site apart."""

    LOOPBACK = "loopback"  # an address 127.x.y.z each; needs no rights
    NETNS = "netns"  # a network namespace each: they can be cut off, slowed and killed


class AddressSpace(StrEnum):
    """Sites whose addresses reach each other: planes move between these alone, and share what serves their names."""

    LOOPBACK = "loopback"  # this host's own, 127.x.y.z
    NETNS = "netns"  # of the home's network namespaces
    HOSTS = "ssh"  # of the network that hosts have, and this one with them


class LocalSpec(Model):
    """What a site on this host is made of. The first storage class is the default one. ``edges``: machines for load
    balancers, each in another zone, on all of which each plane has one. ``floating_addresses``: each of
    them has an address that another edge takes over when it falls silent. ``cordons``: the machines that
    a person wants to be given no new replica.
    """

    driver: Literal["local"] = "local"
    isolation: Isolation = Isolation.LOOPBACK
    zones: Annotated[tuple[ZoneName, ...], SOME_ONCE] = ("a", "b", "c")
    machines_per_zone: Annotated[int, Field(ge=1), InSchema({"maximum": MACHINES_MAX})] = 2
    edges: Annotated[int, Field(ge=1, le=8)] = 1
    floating_addresses: bool = False
    storage_classes: Annotated[tuple[StorageClass, ...], SOME] = STANDARD
    cordons: tuple[Cordon, ...] = ()

    @model_validator(mode="after")
    def _names_are_distinct_and_machines_countable(self) -> LocalSpec:
        problems: list[tuple[str, str]] = []
        if not self.zones:
            problems.append(("zones", "is empty; a site has at least one zone"))
        if len(set(self.zones)) < len(self.zones):
            problems.append(("zones", "names a zone twice"))
        problems.extend(class_problems(self.storage_classes))
        if self.zones and self.edges > len(self.zones):
            problems.append(
                ("edges", f"is {self.edges}; each has a zone of its own, of which there are {len(self.zones)}")
            )
        if self.floating_addresses and self.isolation is not Isolation.NETNS:
            problems.append(("floatingAddresses", "is for sites of isolation netns only"))
        machines = len(self.zones) * self.machines_per_zone
        if machines > MACHINES_MAX:
            problems.append(("machinesPerZone", f"makes {machines} machines; at most {MACHINES_MAX} are allowed"))
        problems.extend(_cordon_problems(self.cordons))
        refuse_if_any(problems)
        return self

    @property
    def network(self) -> Isolation:
        """Where a process must be to reach the site's machines: on the host's own network, or in one of the home's."""
        return self.isolation

    @property
    def space(self) -> AddressSpace:
        """Which sites its addresses reach."""
        return AddressSpace(self.isolation)

    def machines_in(self, zones: Collection[str]) -> int:
        """How many machines for replicas are in these zones."""
        return len(zones) * self.machines_per_zone

    def cordon_of(self, machine: str) -> Cordon | None:
        """The cordon of a machine, or that of the whole site; None if there is neither."""
        return _cordon_of(self.cordons, machine)


class SshSpec(Model):
    """What a site of hosts is made of that are reached over ssh. Its zones are those of the hosts, in their order.
    ``fetch_on_host``: hosts download released programs by themselves; else they are sent from here.
    ``edge``: what clients are led to, if that is not the addresses of hosts of that role.
    """

    driver: Literal["ssh"]
    hosts: Annotated[tuple[Host, ...], InSchema({"minItems": 1, "maxItems": MACHINES_MAX})]
    storage_classes: Annotated[tuple[HostStorageClass, ...], SOME] = HOSTS_STANDARD
    fetch_on_host: bool = False
    edge: Edge = Edge()
    cordons: tuple[Cordon, ...] = ()

    @model_validator(mode="after")
    def _hosts_are_distinct(self) -> SshSpec:
        problems = [*host_problems(self.hosts)]
        if len(self.hosts) > MACHINES_MAX:
            problems.append(("hosts", f"are {len(self.hosts)}; at most {MACHINES_MAX} are allowed"))
        problems.extend(host_class_problems(self.storage_classes))
        problems.extend(self.edge.problems(self.hosts))
        problems.extend(_cordon_problems(self.cordons))
        refuse_if_any(problems)
        return self

    @property
    def zones(self) -> tuple[str, ...]:
        """The zones that replicas can be in, in order of appearance."""
        return tuple(dict.fromkeys(each.zone for each in self.hosts if MachineRole.CONTROL in each.roles))

    @property
    def network(self) -> Isolation:
        """See ``LocalSpec``: whoever reaches them does so from this host's own network."""
        return Isolation.LOOPBACK

    @property
    def space(self) -> AddressSpace:
        """See ``LocalSpec``."""
        return AddressSpace.HOSTS

    def machines_in(self, zones: Collection[str]) -> int:
        """See ``LocalSpec``."""
        return sum(MachineRole.CONTROL in each.roles and each.zone in zones for each in self.hosts)

    def cordon_of(self, machine: str) -> Cordon | None:
        """See ``LocalSpec``."""
        return _cordon_of(self.cordons, machine)

    def host(self, name: str) -> Host | None:
        """The host of that name."""
        return next((each for each in self.hosts if each.name == name), None)

    def with_hosts(self, hosts: Iterable[Host]) -> SshSpec:
        """The same site of other hosts; zones that stay keep their order. Raises ValidationError for hosts that cannot
        be one site's.
        """
        order = {zone: number for number, zone in enumerate(self.zones)}
        sorted_hosts = sorted(hosts, key=lambda each: order.get(each.zone, len(order)))
        there = {name for each in sorted_hosts for name in each.machines.values()}
        return SshSpec(
            driver="ssh",
            hosts=tuple(sorted_hosts),
            storage_classes=self.storage_classes,
            fetch_on_host=self.fetch_on_host,
            edge=self.edge,
            cordons=tuple(each for each in self.cordons if each.machine is None or each.machine in there),
        )


#: By their ``driver``.
SiteSpec: TypeAlias = LocalSpec | SshSpec


def _cordon_problems(cordons: Sequence[Cordon]) -> Iterator[tuple[str, str]]:
    if len({each.machine for each in cordons}) < len(cordons):
        yield "cordons", "names a machine twice"


def _cordon_of(cordons: Iterable[Cordon], machine: str) -> Cordon | None:
    found = {each.machine: each for each in cordons}
    return found.get(machine) or found.get(None)


def _driver_of(spec: object) -> str:
    """Which kind of spec it is; what names none is that of a local site."""
    named = spec.get("driver", "local") if isinstance(spec, Mapping) else getattr(spec, "driver", "local")
    return named if isinstance(named, str) else ""


_UNKNOWN_DRIVER: dict[str, Any] = {"problems": (("driver", "must be 'local' or 'ssh'"),)}


class SiteStatus(Model):
    """``number`` is the site's own, that its machines' addresses are made from; given when it is added."""

    number: Annotated[int, Field(ge=1, le=250)] | None = None
    conditions: tuple[Condition, ...] = ()


class Site(Resource):
    """A site."""

    kind: Literal["Site"] = "Site"
    metadata: Annotated[Metadata, AfterValidator(named_within(SITE_NAME_MAX)), named(SITE_NAME_MAX)]
    spec: Annotated[
        Annotated[LocalSpec, Tag("local")] | Annotated[SshSpec, Tag("ssh")],
        Discriminator(
            _driver_of,
            custom_error_type=PROBLEMS,
            custom_error_message="unknown driver",
            custom_error_context=_UNKNOWN_DRIVER,
        ),
    ] = LocalSpec()
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
