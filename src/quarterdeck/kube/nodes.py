"""The parts of nodes, bootstrap tokens and certificate signing requests that quarterdeck reads."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from pydantic import Field

from quarterdeck.kube.lists import ObjectPart, Page, items
from quarterdeck.kube.port import Address, Objects
from quarterdeck.pki.requests import Requested

_NODES = "/api/v1/nodes"
_PAGE = 200  # nodes list all their images: some tens of KiB each


class _Meta(ObjectPart):
    name: str
    uid: str = ""
    created: datetime | None = Field(default=None, alias="creationTimestamp")


class NodeCondition(ObjectPart):
    """One of a node's conditions. ``status`` is True, False or Unknown."""

    type: str
    status: str


class NodeAddress(ObjectPart):
    """An address or name of a node. ``type``: Hostname, or Internal or External with IP or DNS."""

    type: str
    address: str


class _NodeInfo(ObjectPart):
    version: str = Field(default="", alias="kubeletVersion")


class _NodeStatus(ObjectPart):
    conditions: tuple[NodeCondition, ...] = ()
    addresses: tuple[NodeAddress, ...] = ()
    info: _NodeInfo = Field(default=_NodeInfo(), alias="nodeInfo")


class _NodeSpec(ObjectPart):
    unschedulable: bool = False


class Node(ObjectPart):
    """A node."""

    metadata: _Meta
    spec: _NodeSpec = _NodeSpec()
    status: _NodeStatus = _NodeStatus()

    @property
    def name(self) -> str:
        """Its name."""
        return self.metadata.name

    @property
    def ready(self) -> bool | None:
        """Whether its kubelet reports ready; None: it reports nothing any more, or has not reported anything yet."""
        status = next((each.status for each in self.status.conditions if each.type == "Ready"), "Unknown")
        return {"True": True, "False": False}.get(status)


class TokenSecret(ObjectPart):
    """A Secret of type bootstrap.kubernetes.io/token."""

    metadata: _Meta
    data: dict[str, str] = Field(default_factory=dict, repr=False)

    def text(self, key: str) -> str:
        """One of its values; "" for one that is missing, or is not text."""
        try:
            return base64.b64decode(self.data.get(key, "")).decode()
        except (binascii.Error, UnicodeDecodeError):
            return ""


class _RequestSpec(ObjectPart):
    request: str
    signer: str = Field(alias="signerName")
    username: str = ""
    groups: tuple[str, ...] = ()
    usages: tuple[str, ...] = ()


class _RequestStatus(ObjectPart):
    conditions: tuple[NodeCondition, ...] = ()


class SigningRequest(ObjectPart):
    """A CertificateSigningRequest."""

    metadata: _Meta
    spec: _RequestSpec
    status: _RequestStatus = _RequestStatus()

    @property
    def pending(self) -> bool:
        """Whether it is still undecided."""
        return not self.status.conditions

    @property
    def pem(self) -> bytes:
        """The request itself (PKCS #10); empty if it is invalid."""
        try:
            return base64.b64decode(self.spec.request, validate=True)
        except binascii.Error:
            return b""


async def nodes(kube: Objects, apiserver: Address) -> tuple[Node, ...]:
    """All nodes of a plane. Raises Unavailable."""
    return tuple([each async for each in items(kube, apiserver, f"{_NODES}?limit={_PAGE}", Page[Node])])


async def token_secrets(kube: Objects, apiserver: Address) -> tuple[TokenSecret, ...]:
    """All bootstrap tokens of a plane. Raises Unavailable."""
    path = "/api/v1/namespaces/kube-system/secrets?fieldSelector=type%3Dbootstrap.kubernetes.io%2Ftoken"
    return tuple([each async for each in items(kube, apiserver, path, Page[TokenSecret])])


async def serving_requests(kube: Objects, apiserver: Address) -> tuple[SigningRequest, ...]:
    """All signing requests for kubelets' serving certificates. Raises Unavailable."""
    path = (
        "/apis/certificates.k8s.io/v1/certificatesigningrequests"
        "?fieldSelector=spec.signerName%3Dkubernetes.io%2Fkubelet-serving"
    )
    return tuple([each async for each in items(kube, apiserver, path, Page[SigningRequest])])


# Whether a kubelet gets the certificate that it requests, to serve logs and exec. Upstream approves none of these by
# itself: with such a certificate anyone could serve under any name in it, and a kubelet decides by itself which
# addresses its node has.

_GROUP = "system:nodes"
_USER = "system:node:"
_SERVES = "server auth"
#: The other usages that a request may have (kubernetes: pkg/apis/certificates/helpers.go).
_USAGES = frozenset({_SERVES, "digital signature", "key encipherment"})
_IPS = ("InternalIP", "ExternalIP")


@dataclass(frozen=True, slots=True)
class ReservedNames:
    """Names and addresses that no node may have: the plane's own. ``domain``: no name below it is a node's, either."""

    names: frozenset[str]
    domains: tuple[str, ...] = ()

    def has(self, name: str) -> bool:
        """Whether that is one of them."""
        lower = name.lower().rstrip(".")
        return lower in self.names or any(lower == each or lower.endswith(f".{each}") for each in self.domains)


def objection(request: SigningRequest, asked: Requested | None, nodes: Sequence[Node], taken: ReservedNames) -> str:
    """Why a request must not be approved, as text; "" if it may: it comes from a node, for itself alone, with no more
    than the names and addresses that it has in the plane, which no other node has.
    """
    spec = request.spec
    name = spec.username.removeprefix(_USER)
    if not spec.username.startswith(_USER) or _GROUP not in spec.groups:
        return f"{spec.username or 'the requester'} is not a node"
    if _SERVES not in spec.usages or not _USAGES.issuperset(spec.usages):
        return f"it is for use as {', '.join(spec.usages) or 'nothing'}"
    if asked is None:
        return "it is not a valid request"
    if asked.common_name != spec.username or asked.organizations != (_GROUP,) or asked.others:
        return f"it is not for {spec.username} alone"
    node = next((each for each in nodes if each.name == name), None)
    if node is None:
        return f"node {name} does not exist"
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
