"""A plane on fakes that nodes join."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from fakes.kube import FakeApiserver
from fakes.kube_objects import Stored

from quarterdeck.actions.status import refresh
from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.plane.nodes import Nodes
from quarterdeck.app import nodes
from quarterdeck.kube.port import Address
from quarterdeck.stores.port import amend
from support.addons_lab import AddonLab
from support.fake_plane import FakePlane, host_of
from support.resources import with_spec
from support.templates import declared_alone

REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
SERVING = "kubernetes.io/kubelet-serving"


def signing_request(
    user: str,
    *,
    groups: tuple[str, ...] = ("system:nodes",),
    names: tuple[str, ...] = (),
    addresses: tuple[str, ...] = (),
    others: tuple[x509.GeneralName, ...] = (),
    extra: tuple[x509.NameAttribute[str], ...] = (),
) -> bytes:
    """A request (PKCS #10, PEM) as a kubelet makes it."""
    from ipaddress import ip_address

    subject = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, each) for each in groups]
    subject += [x509.NameAttribute(NameOID.COMMON_NAME, user), *extra]
    called = [
        *(x509.DNSName(each) for each in names),
        *(x509.IPAddress(ip_address(each)) for each in addresses),
        *others,
    ]
    builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(subject))
    if called:
        builder = builder.add_extension(x509.SubjectAlternativeName(called), critical=False)
    made = builder.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())
    return made.public_bytes(serialization.Encoding.PEM)


@dataclass
class JoiningLab(AddonLab):
    """Nodes may join it."""

    @classmethod
    async def made(cls) -> JoiningLab:
        fake = FakePlane()
        for name in fake.names:
            fake.kube.apiservers[Address(host_of(name), 6443)] = FakeApiserver()
        lab = cls(fake, await fake.open())
        await lab.say(Nodes(bootstrap=True))
        return lab

    async def say(self, wanted: Nodes) -> None:
        """Have the spec say so, and be so of all replicas."""

        def respecified(seen: ControlPlane) -> ControlPlane:
            return with_spec(seen, nodes=wanted)

        await amend(self.plane.store, ControlPlane, "demo", respecified)
        await refresh(self.plane)
        self.plane.revisions = declared_alone(self.plane.resource)

    @property
    def nodes(self) -> nodes.WorkerNodes:
        """What commands ask."""
        return nodes.WorkerNodes(_Home(self))  # type: ignore[arg-type]

    def node(self, name: str, address: str, *, ready: str = "True", hostname: str = "") -> Stored:
        """A node that has joined."""
        manifest: dict[str, Any] = {
            "metadata": {"name": name, "creationTimestamp": "2026-01-02T03:04:05Z"},
            "status": {
                "conditions": [{"type": "Ready", "status": ready}],
                "addresses": [
                    {"type": "InternalIP", "address": address},
                    {"type": "Hostname", "address": hostname or name},
                ],
                "nodeInfo": {"kubeletVersion": "v1.36.3"},
            },
        }
        return self.objects.put(f"/api/v1/nodes/{name}", manifest)

    def request(self, name: str, user: str, pem: bytes, *, signer: str = SERVING) -> str:
        """A request for a certificate; returns its path."""
        path = f"{REQUESTS}/{name}"
        spec = {
            "request": base64.b64encode(pem).decode(),
            "signerName": signer,
            "username": user,
            "groups": ["system:nodes", "system:authenticated"],
            "usages": ["digital signature", "server auth"],
        }
        self.objects.put(path, {"metadata": {"name": name}, "spec": spec})
        return path

    def approved(self, path: str) -> bool:
        """Whether it is."""
        conditions = self.objects.objects[path].fields.get(("status", "conditions"), [])
        assert isinstance(conditions, list)
        return any(isinstance(each, dict) and each["type"] == "Approved" for each in conditions)


class _Home:
    """As much of a home as commands on nodes need."""

    def __init__(self, lab: JoiningLab) -> None:
        self.store, self._lab = lab.fake.store, lab

    async def plane(self, *_: object) -> object:
        return self._lab.plane
