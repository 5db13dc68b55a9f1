"""The objects that joining nodes need: those that ``kubeadm init`` of the same version creates, as an add-on.

Names and contents are those that ``kubeadm join`` asks for (kubernetes: cmd/kubeadm/app/phases/bootstraptoken,
uploadconfig and kubelet). Some of it is for kubelets that bootstrap themselves, too.
"""

from __future__ import annotations

import base64
import ipaddress
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from pydantic import JsonValue

from quarterdeck.addons.content import Content
from quarterdeck.addons.objects import Manifest, wanted_of
from quarterdeck.addons.rbac import RBAC, binding
from quarterdeck.api.plane.addons import NODES_ADDON
from quarterdeck.model.seats import HostPort
from quarterdeck.yaml_text import dumped

#: The group of bootstrap tokens: it may request a node's certificate, and little else.
GROUP = "system:bootstrappers:kubeadm:default-node-token"

_NODES = "system:nodes"
_ANONYMOUS = "system:anonymous"
#: The user of apiservers when they call kubelets: the name in their certificate (``pki.issuance``).
_APISERVER = "kube-apiserver-kubelet-client"
_APPROVED = "system:certificates.k8s.io:certificatesigningrequests"
#: Which address of the service CIDR the cluster's DNS has (kubernetes: constants.GetDNSIP).
_DNS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """What nodes join. ``server`` is ``https://HOST:PORT``, which leads to the plane as long as it lives, ``ca`` all
    authorities that are trusted (PEM), ``kubernetes`` a version (``v1.36.3``), ``kubelet`` the user's own fields of the
    KubeletConfiguration, as JSON. ``beside``: where the apiservers are reached (addresses) that keep out of the
    endpoints of the Service ``kubernetes``, since they have other ports than the plane's.
    """

    plane: str
    server: str
    ca: bytes
    kubernetes: str
    service_cidrs: tuple[str, ...]
    cluster_domain: str
    kubelet: str = "{}"
    beside: tuple[HostPort, ...] = ()


@lru_cache(maxsize=64)
def for_nodes(joined: Joined) -> Content:
    """The add-on."""
    manifests = (*_discovery(joined), *_configuration(joined), *_rights(), *_endpoints(joined))
    found = (wanted_of(each, "", {}) for each in manifests)
    return Content(NODES_ADDON, tuple(sorted(found, key=lambda each: each.ref)))


def _discovery(joined: Joined) -> tuple[Manifest, ...]:
    """The CA and the server: readable without authentication, and signed with each token by a controller."""
    name = "kubeadm:bootstrap-signer-clusterinfo"
    cluster = {"certificate-authority-data": base64.b64encode(joined.ca).decode(), "server": joined.server}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "", "cluster": cluster}],
        "contexts": [],
        "current-context": "",
        "preferences": {},
        "users": [],
    }
    return (
        _config_map("kube-public", "cluster-info", "kubeconfig", dumped(config, sort_keys=False)),
        *_may_read("kube-public", name, "cluster-info", {"User": (_ANONYMOUS,)}),
    )


def _configuration(joined: Joined) -> tuple[Manifest, ...]:
    """The configuration of the cluster and its kubelets, for kubeadm."""
    groups = {"Group": (GROUP, _NODES)}
    cluster = {
        "apiVersion": "kubeadm.k8s.io/v1beta4",
        "kind": "ClusterConfiguration",
        "clusterName": joined.plane,
        "controlPlaneEndpoint": joined.server.removeprefix("https://"),
        "kubernetesVersion": joined.kubernetes,
        "networking": {"dnsDomain": joined.cluster_domain, "serviceSubnet": ",".join(joined.service_cidrs)},
    }
    return (
        _config_map("kube-system", "kubeadm-config", "ClusterConfiguration", dumped(cluster, sort_keys=False)),
        *_may_read("kube-system", "kubeadm:nodes-kubeadm-config", "kubeadm-config", groups),
        _config_map("kube-system", "kubelet-config", "kubelet", dumped(_kubelet(joined))),
        *_may_read("kube-system", "kubeadm:kubelet-config", "kubelet-config", groups),
    )


def _kubelet(joined: Joined) -> dict[str, JsonValue]:
    """What kubeadm has kubelets do, and that they ask for certificates to serve with: apiservers trust no others."""
    network = ipaddress.ip_network(joined.service_cidrs[0])
    dns: dict[str, JsonValue] = {"clusterDNS": [str(network[_DNS])]} if network.num_addresses > _DNS else {}
    return {
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": "/etc/kubernetes/pki/ca.crt"},
        },
        "authorization": {"mode": "Webhook"},
        "cgroupDriver": "systemd",
        **dns,
        "clusterDomain": joined.cluster_domain,
        "healthzBindAddress": "127.0.0.1",
        "healthzPort": 10248,
        "staticPodPath": "/etc/kubernetes/manifests",
        **json.loads(joined.kubelet),
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "rotateCertificates": True,
        "serverTLSBootstrap": True,
    }


def _rights() -> tuple[Manifest, ...]:
    """Permissions: to request a certificate, to get it approved automatically, and to call kubelets."""
    get_nodes = "kubeadm:get-nodes"
    rule: JsonValue = {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]}
    role: Manifest = {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": get_nodes},
        "rules": [rule],
    }
    bound = (
        ("kubeadm:kubelet-bootstrap", "system:node-bootstrapper", "Group", GROUP),
        ("kubeadm:node-autoapprove-bootstrap", f"{_APPROVED}:nodeclient", "Group", GROUP),
        ("kubeadm:node-autoapprove-certificate-rotation", f"{_APPROVED}:selfnodeclient", "Group", _NODES),
        (get_nodes, get_nodes, "Group", GROUP),
        ("kubeadm:apiserver-kubelet-client", "system:kubelet-api-admin", "User", _APISERVER),
    )
    return (role, *(binding("", name, "ClusterRole", what, {kind: (subject,)}) for name, what, kind, subject in bound))


def _endpoints(joined: Joined) -> tuple[Manifest, ...]:
    """Further endpoints of the Service ``kubernetes``: each slice has one list of ports, and one kind of addresses."""
    kinds = {4: "IPv4", 6: "IPv6"}
    slices: dict[tuple[int, int], list[JsonValue]] = {}
    for each in joined.beside:
        found = slices.setdefault((ipaddress.ip_address(each.host).version, each.port), [])
        found.append({"addresses": [each.host], "conditions": {"ready": True}})
    return tuple(
        {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {
                "name": f"kubernetes-ipv{version}-{port}",
                "namespace": "default",
                "labels": {
                    "kubernetes.io/service-name": "kubernetes",
                    "endpointslice.kubernetes.io/managed-by": "quarterdeck",
                },
            },
            "addressType": kinds[version],
            "ports": [{"name": "https", "port": port, "protocol": "TCP"}],
            "endpoints": ends,
        }
        for (version, port), ends in slices.items()
    )


def _config_map(namespace: str, name: str, key: str, text: str) -> Manifest:
    metadata: JsonValue = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {key: text}}


def _may_read(
    namespace: str, role: str, name: str, subjects: Mapping[str, tuple[str, ...]]
) -> tuple[Manifest, Manifest]:
    """A role for one ConfigMap, and its binding."""
    rule: JsonValue = {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": [name], "verbs": ["get"]}
    metadata: JsonValue = {"name": role, "namespace": namespace}
    made: Manifest = {"apiVersion": f"{RBAC}/v1", "kind": "Role", "metadata": metadata, "rules": [rule]}
    return made, binding(namespace, role, "Role", role, subjects)
