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

    #: CoreDNS serves the name from a hosts file.
    HOSTS = "hosts"
    #: Your DNS server is changed by dynamic updates (RFC 2136).
    RFC2136 = "rfc2136"
    #: A person changes the records; quarterdeck shows them and waits.
    UNMANAGED = "unmanaged"
    #: There is no name, only an address that stays.
    ADDRESS = "address"


class LeadsTo(StrEnum):
    """The targets of the name's addresses."""

    #: The load balancers of the site that serves.
    LOAD_BALANCERS = "load-balancers"
    #: The ready apiservers themselves, by round robin.
    APISERVERS = "apiservers"
    #: The machine of the only replica, or a load balancer once there are more. Only in mode `address`.
    PROMOTED = "promoted"


class TsigAlgorithm(StrEnum):
    """The algorithms that RFC 8945 recommends."""

    HMAC_SHA256 = "hmac-sha256"
    HMAC_SHA384 = "hmac-sha384"
    HMAC_SHA512 = "hmac-sha512"


class Tsig(Model):
    """The key that signs DNS updates."""

    #: The name of the key.
    key_name: DnsName
    #: The algorithm of the key.
    algorithm: TsigAlgorithm = TsigAlgorithm.HMAC_SHA256
    #: The file with the secret in base64. Only its path is stored.
    secret_file: AbsolutePath


class Resolver(Model):
    """A DNS server that clients, or their resolvers, query."""

    #: The address of the server.
    address: Address
    #: The port of the server.
    port: Port = 53


class Rfc2136(Model):
    """The DNS server that accepts dynamic updates (RFC 2136)."""

    #: The name or address of the server.
    server: Host
    #: The port of the server.
    port: Port = 53
    #: The zone of the plane's name.
    zone: DnsName
    #: The key that signs the updates.
    tsig: Tsig
    #: The other authoritative servers of the zone. A change is done when all of them answer with it. Without the field,
    #: they are read from the NS records of the zone, if `port` is 53.
    secondaries: tuple[Resolver, ...] | None = None


class Endpoint(Model):
    """The name or address of a plane that clients connect to."""

    #: How the name is kept.
    mode: EndpointMode = EndpointMode.HOSTS
    #: Where the name leads. It can change while the plane serves.
    leads_to: LeadsTo = LeadsTo.LOAD_BALANCERS
    #: The DNS name of the plane; without it, `NAME.quarterdeck.internal`, or a name in `rfc2136.zone`.
    name: DnsName | None = None
    #: The port that clients connect to; without it, quarterdeck chooses one.
    port: Port | None = None
    #: The time to live of the DNS record.
    ttl: Annotated[WholeSeconds, Field(ge=1, le=86_400)] = 5
    #: How long existing connections are left open after the time to live has passed.
    drain: Annotated[Seconds, Field(ge=0, le=86_400)] = 1.0
    #: The address of the plane in mode `address`.
    address: Address | None = None
    #: The DNS server in mode `rfc2136`.
    rfc2136: Rfc2136 | None = None
    #: The DNS servers to ask in mode `unmanaged` what clients see; without them, those of this host.
    resolvers: tuple[Resolver, ...] = ()
    #: Whether an existing record of somebody else for the name may be overwritten.
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
