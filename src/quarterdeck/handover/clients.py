"""The controller of a write: by the name of its client, by the written object, and finally by the changed fields.

Clients of kube-controller-manager: cmd/kube-controller-manager/app (``NewClient("...")``) of kubernetes 1.36.3 and
1.37.2; those of cloud controller managers: DefaultInitFuncConstructors in app/controllermanager.go of
k8s.io/cloud-provider 0.36.3 and 0.37.2.
Controllers that share a client are distinguished by what they write:

- node-ipam-controller patches ``spec.podCIDR(s)`` of nodes, and nothing else (component-helpers: node/util/cidr.go)
- node-lifecycle-controller patches labels and taints of nodes and updates their status
  (pkg/controller/nodelifecycle), taint-eviction-controller deletes pods and patches their status before
- cloud-node-controller updates nodes once, then patches their labels and their status (controllers/node)
- cloud-node-lifecycle-controller deletes nodes and patches their taints (controllers/nodelifecycle)
- node-route-controller patches the status of nodes (controllers/route)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from quarterdeck.api.plane.controllers import ControllerProgram

#: The name of a controller's client, where it is not the controller's own.
_CLIENTS: Mapping[str, str] = {
    "serviceaccount-token-controller": "tokens-controller",
    "daemonset-controller": "daemon-set-controller",
    "horizontal-pod-autoscaler-controller": "horizontal-pod-autoscaler",
    "bootstrap-signer-controller": "bootstrap-signer",
    "token-cleaner-controller": "token-cleaner",
    "certificatesigningrequest-signing-controller": "certificate-controller",
    "certificatesigningrequest-approving-controller": "certificate-controller",
    "certificatesigningrequest-cleaner-controller": "certificate-controller",
    "podcertificaterequest-cleaner-controller": "podcertificaterequestcleaner",
    "root-ca-certificate-publisher-controller": "root-ca-cert-publisher",
    "kube-apiserver-serving-clustertrustbundle-publisher-controller": (
        "kube-apiserver-serving-clustertrustbundle-publisher"
    ),
    "node-ipam-controller": "node-controller",
    "node-lifecycle-controller": "node-controller",
    "taint-eviction-controller": "node-controller",
    "persistentvolume-binder-controller": "persistent-volume-binder",
    "persistentvolume-attach-detach-controller": "attachdetach-controller",
    "persistentvolume-expander-controller": "expand-controller",
    "persistentvolumeclaim-protection-controller": "pvc-protection-controller",
    "persistentvolume-protection-controller": "pv-protection-controller",
    "endpoints-controller": "endpoint-controller",
    "endpointslice-mirroring-controller": "endpointslicemirroring-controller",
    "replicationcontroller-controller": "replication-controller",
    "pod-garbage-collector-controller": "pod-garbage-collector",
    "serviceaccount-controller": "service-account-controller",
    "legacy-serviceaccount-token-cleaner-controller": "legacy-service-account-token-cleaner",
    "garbage-collector-controller": "generic-garbage-collector",
    "storageversion-garbage-collector-controller": "storage-version-garbage-collector",
    "service-cidr-controller": "service-cidrs-controller",
    "resourceclaim-controller": "resource-claim-controller",
    "cloud-node-controller": "node-controller",
    "cloud-node-lifecycle-controller": "node-controller",
    "service-lb-controller": "service-controller",
    "node-route-controller": "route-controller",
}
#: What a program writes for itself, whatever controllers it runs.
_OWN = frozenset({"leases", "events", "serviceaccounts/token", "tokenreviews", "subjectaccessreviews"})

_IPAM, _NODE_LIFECYCLE, _EVICTION = "node-ipam-controller", "node-lifecycle-controller", "taint-eviction-controller"
_CLOUD_NODE, _CLOUD_LIFECYCLE = "cloud-node-controller", "cloud-node-lifecycle-controller"
_ROUTE, _SERVICE = "node-route-controller", "service-lb-controller"
_CSR = "certificatesigningrequest-"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiWrite:
    """A request that changes something. ``resource`` has its subresource, as ``nodes/status``; ``sets``: the fields of
    the object's spec that its body has (None: the log has no body).
    """

    manager: ControllerProgram
    client: str
    verb: str
    resource: str
    sets: frozenset[str] | None = None


def client_of(controller: str) -> str:
    """The name of the client with which a controller (canonical name) writes."""
    return _CLIENTS.get(controller, controller)


def writers(write: ApiWrite) -> frozenset[str]:
    """The controllers that it may be from: one, as far as what is known tells them apart; none, if it is from none that
    can be in a set.
    """
    if write.resource in _OWN:
        return frozenset()
    if write.manager is ControllerProgram.CLOUD and (found := _in_a_cloud(write)):
        return found
    if write.client == "node-controller":
        return _by_node_controller(write)
    if write.client == "certificate-controller":
        return _of_requests(write)
    return frozenset(name for name, client in _CLIENTS.items() if client == write.client) or frozenset({write.client})


def _in_a_cloud(write: ApiWrite) -> frozenset[str]:
    """Whatever the clients are called there: programs may call them otherwise (sample/basic_main.go)."""
    match write.resource, write.verb:
        case "services" | "services/status", _:
            return frozenset({_SERVICE})
        case "nodes", "delete":
            return frozenset({_CLOUD_LIFECYCLE})
        case "nodes", "update":
            return frozenset({_CLOUD_NODE})
        case "nodes", _:
            return _patching(write, taints=_CLOUD_LIFECYCLE, others=_CLOUD_NODE)
        case "nodes/status", _:
            by_name = {"node-controller": {_CLOUD_NODE}, "route-controller": {_ROUTE}}
            return frozenset(by_name.get(write.client, {_CLOUD_NODE, _ROUTE}))
        case _:
            return frozenset()


def _by_node_controller(write: ApiWrite) -> frozenset[str]:
    if write.manager is ControllerProgram.CLOUD:
        return frozenset({_IPAM, _CLOUD_NODE, _CLOUD_LIFECYCLE})
    match write.resource, write.verb:
        case "nodes", "patch":
            return _patching(write, taints=_NODE_LIFECYCLE, others=_NODE_LIFECYCLE)
        case "nodes", "update":
            return frozenset({_IPAM, _NODE_LIFECYCLE})
        case "nodes" | "nodes/status", _:
            return frozenset({_NODE_LIFECYCLE})
        case "pods", "delete":
            return frozenset({_EVICTION})
        case "pods/status", _:
            return frozenset({_NODE_LIFECYCLE, _EVICTION})
        case _:
            return frozenset({_IPAM, _NODE_LIFECYCLE, _EVICTION})


def _patching(write: ApiWrite, *, taints: str, others: str) -> frozenset[str]:
    if write.sets is None:
        return frozenset({_IPAM, taints, others})
    if write.sets & {"podCIDR", "podCIDRs"}:
        return frozenset({_IPAM})
    return frozenset({taints if "taints" in write.sets else others})


def _of_requests(write: ApiWrite) -> frozenset[str]:
    kinds = {
        ("certificatesigningrequests/status", "update"): ("signing",),
        ("certificatesigningrequests/approval", "update"): ("approving",),
        ("certificatesigningrequests", "delete"): ("cleaner",),
    }
    found = kinds.get((write.resource, write.verb), ("signing", "approving", "cleaner"))
    return frozenset(f"{_CSR}{kind}-controller" for kind in found)
