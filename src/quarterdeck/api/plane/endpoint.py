"""The plane's endpoint: the one name or address that its clients know, and the records behind it."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from quarterdeck.api.base import Model
from quarterdeck.api.names import address, dns_name, host
from quarterdeck.api.schema import ADDRESS, HOST, NAME, refuse_if_any
from quarterdeck.api.values import AbsolutePath, Port, Seconds, WholeSeconds

#: The domain of planes whose user gave no name.
DEFAULT_ZONE = "quarterdeck.internal"

Address = Annotated[str, AfterValidator(address), ADDRESS]
DnsName = Annotated[str, AfterValidator(dns_name), NAME]
Host = Annotated[str, AfterValidator(host), HOST]


class EndpointMode(StrEnum):
    """What leads clients to the site that serves."""

    HOSTS = "hosts"  # a hosts file that CoreDNS serves
    RFC2136 = "rfc2136"  # dynamic update of the user's DNS server
    UNMANAGED = "unmanaged"  # a person edits the records; quarterdeck shows them and waits
    ADDRESS = "address"  # no name: a fixed address


class LeadsTo(StrEnum):
    """The targets of the name's addresses."""

    LOAD_BALANCERS = "load-balancers"  # of the site that serves
    APISERVERS = "apiservers"  # the ready apiservers themselves: round robin
    PROMOTED = "promoted"  # of mode address: the only replica's machine, or the load balancer once there are others


class TsigAlgorithm(StrEnum):
    """The algorithms that RFC 8945 recommends."""

    HMAC_SHA256 = "hmac-sha256"
    HMAC_SHA384 = "hmac-sha384"
    HMAC_SHA512 = "hmac-sha512"


class Tsig(Model):
    """The key that updates are signed with. ``secret_file`` holds the base64 secret; only its path is kept."""

    key_name: DnsName
    algorithm: TsigAlgorithm = TsigAlgorithm.HMAC_SHA256
    secret_file: AbsolutePath


class Resolver(Model):
    """A DNS server that clients, or their resolvers, query."""

    address: Address
    port: Port = 53


class Rfc2136(Model):
    """The server that accepts updates (RFC 2136) for ``zone``. ``secondaries``: the zone's other authoritative servers;
    a change is complete when all of them answer it. None named: those of the zone's NS records, if ``server`` is
    queried at the usual port (clients do not query another one either).
    """

    server: Host
    port: Port = 53
    zone: DnsName
    tsig: Tsig
    secondaries: tuple[Resolver, ...] | None = None


class Endpoint(Model):
    """The endpoint. Seconds."""

    mode: EndpointMode = EndpointMode.HOSTS
    #: It can be changed while the plane serves.
    leads_to: LeadsTo = LeadsTo.LOAD_BALANCERS
    name: DnsName | None = None
    port: Port | None = None
    #: The record's time to live.
    ttl: Annotated[WholeSeconds, Field(ge=1, le=86_400)] = 5
    #: How long old connections are left after the time to live.
    drain: Annotated[Seconds, Field(ge=0, le=86_400)] = 1.0
    address: Address | None = None
    rfc2136: Rfc2136 | None = None
    #: The resolvers of clients, queried in mode ``unmanaged`` (the first answer counts); none: those of this machine.
    resolvers: tuple[Resolver, ...] = ()
    #: Whether an existing record of the plane's name that another owner made may be overwritten.
    take_over: bool = False

    @model_validator(mode="after")
    def _settings_fit_the_mode(self) -> Endpoint:
        mode = f"mode {self.mode.value!r}"
        problems: list[tuple[str, str]] = []
        if self.mode is EndpointMode.ADDRESS:
            if self.address is None:
                problems.append(("address", f"required in {mode}"))
            if self.name is not None:
                problems.append(("name", f"contradicts {mode}, which has no name"))
        elif self.address is not None:
            problems.append(("address", f"contradicts {mode}; it belongs to mode 'address'"))
        if self.mode is EndpointMode.RFC2136:
            if self.rfc2136 is None:
                problems.append(("rfc2136", f"required in {mode}"))
            elif self.name is not None and not self.name.endswith(f".{self.rfc2136.zone}"):
                problems.append(("name", f"{self.name!r} is not in the zone {self.rfc2136.zone!r}"))
        elif self.rfc2136 is not None:
            problems.append(("rfc2136", f"contradicts {mode}; it belongs to mode 'rfc2136'"))
        if self.mode is EndpointMode.UNMANAGED:
            if self.name is None:
                problems.append(("name", f"required in {mode}: the name whose records you make"))
        elif self.resolvers:
            problems.append(("resolvers", f"contradicts {mode}; they belong to mode 'unmanaged'"))
        refuse_if_any(problems + self._round_robin(mode) + self._promoted(mode))
        return self

    def _promoted(self, mode: str) -> list[tuple[str, str]]:
        """The problems of an address that moves from a machine to the load balancer, and back."""
        if not self.promoted:
            return []
        problems: list[tuple[str, str]] = []
        if self.mode is not EndpointMode.ADDRESS:
            problems.append(("leadsTo", f"'promoted' contradicts {mode}; it is for an address"))
        if self.port is not None:
            problems.append(("port", "contradicts leadsTo 'promoted': clients come to the port that apiservers have"))
        return problems

    def _round_robin(self, mode: str) -> list[tuple[str, str]]:
        """The problems of records that follow the readiness of apiservers."""
        if self.leads_to is not LeadsTo.APISERVERS:
            return []
        problems: list[tuple[str, str]] = []
        if self.mode is EndpointMode.UNMANAGED:
            problems.append(("leadsTo", f"'apiservers' contradicts {mode}: nothing would follow their readiness"))
        if self.mode is EndpointMode.ADDRESS:
            problems.append(("leadsTo", f"'apiservers' contradicts {mode}, which has no name"))
        if self.port is not None:
            problems.append(("port", "contradicts leadsTo 'apiservers': clients come to the port that these have"))
        return problems

    @property
    def promoted(self) -> bool:
        """Whether the address leads to the only replica itself, and else to the load balancer."""
        return self.leads_to is LeadsTo.PROMOTED

    def host_of(self, plane: str) -> str:
        """What clients of the plane of that name connect to: a DNS name, or in mode ``address`` the address."""
        if self.mode is EndpointMode.ADDRESS and self.address is not None:
            return self.address
        zone = self.rfc2136.zone if self.rfc2136 is not None else DEFAULT_ZONE
        return self.name or f"{plane}.{zone}"
