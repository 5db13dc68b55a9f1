"""What leads clients to the planes of an ssh site besides load balancers at its hosts' own addresses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from ipaddress import IPv4Address
from typing import Annotated

from pydantic import AfterValidator, model_validator

from quarterdeck.api.base import Model
from quarterdeck.api.names import address, shortened
from quarterdeck.api.problems import refuse_if_any
from quarterdeck.api.schema import SOME_ONCE, InSchema
from quarterdeck.api.sites.hosts import Host, HostAddress
from quarterdeck.model.units import MachineRole

#: What a person's command may have of words.
_WORDS_MAX = 64


def _floating(text: str) -> str:
    plain = address(text)
    try:
        found = IPv4Address(plain)
    except ValueError:
        raise ValueError(f"{shortened(text)} is no IPv4 address") from None
    if found.is_loopback or found.is_link_local:
        raise ValueError(f"{shortened(text)} cannot go from host to host")
    return plain


def _command(words: tuple[str, ...]) -> tuple[str, ...]:
    if not words or not words[0].startswith("/"):
        raise ValueError("must begin with the absolute path of a program")
    if len(words) > _WORDS_MAX or any("\0" in each for each in words):
        raise ValueError(f"must have at most {_WORDS_MAX} words, none with a zero in it")
    return words


FloatingAddress = Annotated[str, AfterValidator(_floating), InSchema({"format": "ipv4"})]
Command = Annotated[tuple[str, ...], AfterValidator(_command), InSchema({"minItems": 1, "maxItems": _WORDS_MAX})]


class ExternalEdge(Model):
    """A load balancer of the user's own, for each plane at its own port. ``addresses``: where clients are led to.
    ``command``: run on quarterdeck's host with what is wanted on its standard input, as JSON; where there is none a
    person is asked for it.
    """

    addresses: Annotated[tuple[HostAddress, ...], SOME_ONCE]
    command: Command | None = None

    @model_validator(mode="after")
    def _has_addresses(self) -> ExternalEdge:
        if not self.addresses or len(set(self.addresses)) < len(self.addresses):
            refuse_if_any([("addresses", "must be one address or more, each once")])
        return self


class Edge(Model):
    """``floating_addresses``: each is at one of the hosts of role edge at a time, and goes over to another when that
    one falls silent; for all planes of the site, which differ by port. With fewer than hosts, some of these stand by.
    ``promoted_addresses``: each can be the endpoint of one plane (``leadsTo: promoted``), and at any of the hosts.
    ``external``: there are no such hosts.
    """

    floating_addresses: tuple[FloatingAddress, ...] = ()
    promoted_addresses: tuple[FloatingAddress, ...] = ()
    external: ExternalEdge | None = None

    def problems(self, hosts: Sequence[Host]) -> Iterator[tuple[str, str]]:
        """What is wrong with it at a site of these hosts, by path."""
        edges = [each for each in hosts if MachineRole.EDGE in each.roles]
        if self.external is not None:
            if self.floating_addresses or self.promoted_addresses:
                yield "edge", "has addresses that go from host to host or is external, not both"
            if edges:
                yield "edge.external", f"is for sites without hosts of role edge; {edges[0].name} is one"
            return
        floating = self.floating_addresses
        if floating and len(edges) < 2:
            yield "edge.floatingAddresses", "go over to another host: give two hosts or more the role edge"
        elif len(floating) > len(edges):
            yield "edge.floatingAddresses", f"are {len(floating)}, more than the {len(edges)} hosts of role edge"
        yield from self._promoted_problems(hosts)
        for path, addresses in (("floatingAddresses", floating), ("promotedAddresses", self.promoted_addresses)):
            if len(set(addresses)) < len(addresses):
                yield f"edge.{path}", "has an address twice"
            for each in hosts:
                if each.address in addresses:
                    yield f"edge.{path}", f"has {each.address}, which is host {each.name}'s own"

    def _promoted_problems(self, hosts: Sequence[Host]) -> Iterator[tuple[str, str]]:
        """What is wrong with addresses that a replica's host, or a load balancer's, can have."""
        if not self.promoted_addresses:
            return
        path = "edge.promotedAddresses"
        both = [each.name for each in hosts if {MachineRole.EDGE, MachineRole.CONTROL} <= {*each.roles}]
        if not any(MachineRole.EDGE in each.roles for each in hosts):
            yield path, "go over to a load balancer: give one host or more the role edge"
        if both:
            yield path, f"need hosts of role edge that have no replicas; {both[0]} has both roles"
        if shared := {*self.promoted_addresses}.intersection(self.floating_addresses):
            yield path, f"has {min(shared)}, which floatingAddresses has as well"
