"""Site: machines, zones and storage classes under one name."""

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

# Cordons, with their author and time.

Named = Annotated[str, AfterValidator(dns_label), label(DNS_LABEL_MAX)]


class Cordon(Model):
    """A machine that gets no new replicas."""

    #: The machine; without it, all machines of the site.
    machine: Named | None = None
    #: The person or program that cordoned it.
    by: str = ""
    #: When it was cordoned.
    since: AwareDatetime | None = None


class CordonedReplica(Model):
    """A replica that is not healed, and not changed by anything that can wait."""

    #: The name of the replica.
    replica: Named
    #: The person or program that cordoned it.
    by: str = ""
    #: When it was cordoned.
    since: AwareDatetime | None = None


def cordon_text(cordon: Cordon | CordonedReplica) -> str:
    """Author and time, as text."""
    author = f" by {cordon.by}" if cordon.by else ""
    when = f" since {cordon.since:%F %T %Z}" if cordon.since is not None else ""
    return f"cordoned{author}{when}"


#: So that the machines of a site have addresses in one /24.
MACHINES_MAX = 200


class Isolation(StrEnum):
    """What keeps the machines of a local site apart."""

    #: Each machine has an address 127.x.y.z. It needs no privileges.
    LOOPBACK = "loopback"
    #: Each machine has a network namespace. Its links can be cut and slowed down.
    NETNS = "netns"


class AddressSpace(StrEnum):
    """Sites whose addresses reach each other: planes move only between these, and share the DNS servers of
    their names.
    """

    LOOPBACK = "loopback"  # this host's own, 127.x.y.z
    NETNS = "netns"  # of the home's network namespaces
    HOSTS = "ssh"  # of the hosts' network, which this host is in


class LocalSpec(Model):
    """A site on this host."""

    #: The kind of the site.
    driver: Literal["local"] = "local"
    #: What keeps the machines apart.
    isolation: Isolation = Isolation.LOOPBACK
    #: The zones of the site.
    zones: Annotated[tuple[ZoneName, ...], SOME_ONCE] = ("a", "b", "c")
    #: The number of machines for replicas in each zone.
    machines_per_zone: Annotated[int, Field(ge=1), InSchema({"maximum": MACHINES_MAX})] = 2
    #: The number of machines for load balancers, each in another zone. Each plane has a load balancer on all of them.
    edges: Annotated[int, Field(ge=1, le=8)] = 1
    #: Whether each edge has a virtual IP that another edge takes over when it fails. Only with isolation `netns`.
    floating_addresses: bool = False
    #: The storage classes of the site; the first one is the default.
    storage_classes: Annotated[tuple[StorageClass, ...], SOME] = STANDARD
    #: Machines that get no new replicas. `quarterdeck site cordon` writes them.
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
        """The network of a process that can reach the site's machines: the host's own, or one of the home's."""
        return self.isolation

    @property
    def space(self) -> AddressSpace:
        """The sites that its addresses can reach."""
        return AddressSpace(self.isolation)

    def machines_in(self, zones: Collection[str]) -> int:
        """The number of machines for replicas in these zones."""
        return len(zones) * self.machines_per_zone

    def cordon_of(self, machine: str) -> Cordon | None:
        """The cordon of a machine, or that of the whole site; None if there is neither."""
        return _cordon_of(self.cordons, machine)


class SshSpec(Model):
    """A site of your own machines, which are reached over ssh. Its zones are those of its hosts."""

    #: The kind of the site.
    driver: Literal["ssh"]
    #: The machines of the site.
    hosts: Annotated[tuple[Host, ...], InSchema({"minItems": 1, "maxItems": MACHINES_MAX})]
    #: The storage classes of the site; the first one is the default.
    storage_classes: Annotated[tuple[HostStorageClass, ...], SOME] = HOSTS_STANDARD
    #: Whether hosts download released programs themselves. Otherwise this host sends them.
    fetch_on_host: bool = False
    #: The addresses that clients connect to, if these are not the addresses of the hosts with the role `edge`.
    edge: Edge = Edge()
    #: Machines that get no new replicas. `quarterdeck site cordon` writes them.
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
        """See ``LocalSpec``: hosts are reached from this host's own network."""
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
        """The same site with other hosts; zones that stay keep their order. Raises ValidationError for hosts that
        cannot form a site.
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
    """The driver of a spec; without one it is a local site."""
    named = spec.get("driver", "local") if isinstance(spec, Mapping) else getattr(spec, "driver", "local")
    return named if isinstance(named, str) else ""


_UNKNOWN_DRIVER: dict[str, Any] = {"problems": (("driver", "must be 'local' or 'ssh'"),)}


class SiteStatus(Model):
    """The state of the site. Only quarterdeck writes it."""

    #: The site's own number, from which the addresses of its machines follow.
    number: Annotated[int, Field(ge=1, le=250)] | None = None
    #: The conditions of the site.
    conditions: tuple[Condition, ...] = ()


class Site(Resource):
    """A site."""

    #: The kind of the resource.
    kind: Literal["Site"] = "Site"
    #: The name of the site and its labels.
    metadata: Annotated[Metadata, AfterValidator(named_within(SITE_NAME_MAX)), named(SITE_NAME_MAX)]
    #: What the site consists of.
    spec: Annotated[
        Annotated[LocalSpec, Tag("local")] | Annotated[SshSpec, Tag("ssh")],
        Discriminator(
            _driver_of,
            custom_error_type=PROBLEMS,
            custom_error_message="unknown driver",
            custom_error_context=_UNKNOWN_DRIVER,
        ),
    ] = LocalSpec()
    #: The state of the site. Only quarterdeck writes it.
    status: SiteStatus = SiteStatus()

    def with_cordons(self, cordons: tuple[Cordon, ...]) -> Site:
        """The same site with other cordons."""
        return self.model_copy(update={"spec": self.spec.model_copy(update={"cordons": cordons})})

    def with_cordon(self, made: Cordon) -> Site:
        """The site with one more cordon; unchanged if its machine has one."""
        known = {each.machine for each in self.spec.cordons}
        return self if made.machine in known else self.with_cordons((*self.spec.cordons, made))


def default_sites() -> tuple[Site, Site]:
    """``east`` and ``west``: the loopback sites that exist from the start, each with room for 5 replicas + 1."""
    return (
        Site(metadata=Metadata(name="east"), status=SiteStatus(number=1)),
        Site(metadata=Metadata(name="west"), status=SiteStatus(number=2)),
    )
