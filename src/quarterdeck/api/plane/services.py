"""The address ranges of Services."""

from __future__ import annotations

from ipaddress import IPv4Network, ip_network
from typing import Annotated

from pydantic import AfterValidator

from quarterdeck.api.names import shortened
from quarterdeck.api.schema import NETWORK, ONE_OR_TWO


def _service_cidr(text: str) -> str:
    try:
        network = ip_network(text)
    except ValueError as error:
        raise ValueError(f"{shortened(text)} is not a network such as 10.96.0.0/16 ({error})") from error
    widest, narrowest = (12, 29) if isinstance(network, IPv4Network) else (64, 125)
    if not widest <= network.prefixlen <= narrowest:
        raise ValueError(f"prefix /{network.prefixlen} is not between /{widest} and /{narrowest}")
    return str(network)


def _one_of_each_family(ranges: tuple[str, ...]) -> tuple[str, ...]:
    if len(ranges) not in (1, 2):
        raise ValueError(f"must have one range, or two of different families, not {len(ranges)}")
    families = [ip_network(each).version for each in ranges]
    if len(set(families)) < len(families):
        raise ValueError(f"has two ranges of IPv{families[0]}; the second one must be of the other family")
    return ranges


ServiceCidr = Annotated[str, AfterValidator(_service_cidr), NETWORK]
ServiceCidrs = Annotated[tuple[ServiceCidr, ...], AfterValidator(_one_of_each_family), ONE_OR_TWO]
