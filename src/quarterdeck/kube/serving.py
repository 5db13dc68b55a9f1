"""Whether a kubelet gets the certificate that it asks for, to serve logs and exec with.

Upstream approves none of these by itself: the plane's authority would say of whoever has the certificate that he is
whatever it names, and a kubelet decides by itself which addresses its node has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from quarterdeck.kube.nodes import Node, SigningRequest
from quarterdeck.pki.requests import Requested

_GROUP = "system:nodes"
_USER = "system:node:"
_SERVES = "server auth"
#: What else a request may say that it is for (kubernetes: pkg/apis/certificates/helpers.go).
_USAGES = frozenset({_SERVES, "digital signature", "key encipherment"})
_IPS = ("InternalIP", "ExternalIP")


@dataclass(frozen=True, slots=True)
class Taken:
    """Names and addresses that no node has: the plane's own. ``domain``: no name below it is a node's, either."""

    names: frozenset[str]
    domains: tuple[str, ...] = ()

    def has(self, name: str) -> bool:
        """Whether that is one of them."""
        lower = name.lower().rstrip(".")
        return lower in self.names or any(lower == each or lower.endswith(f".{each}") for each in self.domains)


def objection(request: SigningRequest, asked: Requested | None, nodes: Sequence[Node], taken: Taken) -> str:
    """Why a request is not to be approved, in words; "" if it is: it comes from a node, which asks for itself, for no
    more than the names and addresses that it has in the plane, which nobody else has.
    """
    spec = request.spec
    name = spec.username.removeprefix(_USER)
    if not spec.username.startswith(_USER) or _GROUP not in spec.groups:
        return f"{spec.username or 'who asks'} is no node"
    if _SERVES not in spec.usages or not _USAGES.issuperset(spec.usages):
        return f"it is to be used for {', '.join(spec.usages) or 'nothing'}"
    if asked is None:
        return "it is no valid request"
    if asked.common_name != spec.username or asked.organizations != (_GROUP,) or asked.others:
        return f"it is not for {spec.username} alone"
    node = next((each for each in nodes if each.name == name), None)
    if node is None:
        return f"there is no node {name}"
    wanted = (*asked.dns_names, *asked.ip_addresses)
    if not wanted:
        return "it names no address"
    has = {each.address for each in node.status.addresses if each.type in _IPS}
    called = {name, *(each.address for each in node.status.addresses if each.type not in _IPS)}
    strange = [each for each in asked.ip_addresses if each not in has]
    strange += [each for each in asked.dns_names if each not in called]
    if strange:
        return f"node {name} has no {', '.join(strange)}"
    others = {each.address for other in nodes if other.name != name for each in other.status.addresses}
    others |= {other.name for other in nodes if other.name != name}
    if stolen := [each for each in wanted if taken.has(each)]:
        return f"{', '.join(stolen)} is the plane's own"
    if shared := [each for each in wanted if each in others]:
        return f"another node has {', '.join(shared)} as well"
    return ""
