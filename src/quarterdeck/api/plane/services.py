"""The address ranges of Services."""

from __future__ import annotations

from ipaddress import IPv4Network, ip_network
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator

from quarterdeck.api.flags import DUAL_STACK
from quarterdeck.api.names import shortened
from quarterdeck.api.schema import NETWORK


def _one_range(given: object) -> object:
    if isinstance(given, list | tuple) or (isinstance(given, str) and "," in given):
        raise ValueError(DUAL_STACK)
    return given


def _service_cidr(text: str) -> str:
    try:
        network = ip_network(text)
    except ValueError as error:
        raise ValueError(f"{shortened(text)} is not a network such as 10.96.0.0/16 ({error})") from error
    widest, narrowest = (12, 29) if isinstance(network, IPv4Network) else (64, 125)
    if not widest <= network.prefixlen <= narrowest:
        raise ValueError(f"prefix /{network.prefixlen} is not between /{widest} and /{narrowest}")
    return str(network)


ServiceCidr = Annotated[str, BeforeValidator(_one_range), AfterValidator(_service_cidr), NETWORK]
