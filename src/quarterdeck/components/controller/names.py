"""The names of controllers: canonical and short ones, and the managers that have them.

Upstream, read for 1.33.0 to 1.37.2: ``cmd/kube-controller-manager/names/controller_names.go`` and the descriptors that
``app/controller_descriptor.go`` registers (before 1.35 ``app/controllermanager.go``), ``k8s.io/cloud-provider``
(``names/controller_names.go``), and ``k8s.io/controller-manager`` for how flags are read (``options/generic.go``) and
what they turn on (``app/helper.go``: IsControllerEnabled).
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from quarterdeck.api.plane.controllers import ControllerProgram
from quarterdeck.components.admission_plugins import listed
from quarterdeck.errors import PreconditionFailed

#: The minor versions of Kubernetes whose names are known.
MINORS = ((1, 33), (1, 34), (1, 35), (1, 36), (1, 37))

#: The controllers that a kube-controller-manager lists, and the short name of each ("": it has none).
_KUBE: Mapping[str, str] = {
    "bootstrap-signer-controller": "bootstrapsigner",
    "certificatesigningrequest-approving-controller": "csrapproving",
    "certificatesigningrequest-cleaner-controller": "csrcleaner",
    "certificatesigningrequest-signing-controller": "csrsigning",
    "cloud-node-lifecycle-controller": "cloud-node-lifecycle",
    "clusterrole-aggregation-controller": "clusterrole-aggregation",
    "cronjob-controller": "cronjob",
    "daemonset-controller": "daemonset",
    "deployment-controller": "deployment",
    "device-taint-eviction-controller": "",
    "disruption-controller": "disruption",
    "endpoints-controller": "endpoint",
    "endpointslice-controller": "endpointslice",
    "endpointslice-mirroring-controller": "endpointslicemirroring",
    "ephemeral-volume-controller": "ephemeral-volume",
    "garbage-collector-controller": "garbagecollector",
    "horizontal-pod-autoscaler-controller": "horizontalpodautoscaling",
    "job-controller": "job",
    "kube-apiserver-serving-clustertrustbundle-publisher-controller": "",
    "legacy-serviceaccount-token-cleaner-controller": "legacy-service-account-token-cleaner",
    "namespace-controller": "namespace",
    "node-ipam-controller": "nodeipam",
    "node-lifecycle-controller": "nodelifecycle",
    "node-route-controller": "route",
    "persistentvolume-attach-detach-controller": "attachdetach",
    "persistentvolume-binder-controller": "persistentvolume-binder",
    "persistentvolume-expander-controller": "persistentvolume-expander",
    "persistentvolume-protection-controller": "pv-protection",
    "persistentvolumeclaim-protection-controller": "pvc-protection",
    "pod-garbage-collector-controller": "podgc",
    "podcertificaterequest-cleaner-controller": "",
    "podgroup-protection-controller": "",
    "replicaset-controller": "replicaset",
    "replicationcontroller-controller": "replicationcontroller",
    "resourceclaim-controller": "resource-claim-controller",
    "resourcepoolstatusrequest-controller": "",
    "resourcequota-controller": "resourcequota",
    "root-ca-certificate-publisher-controller": "root-ca-cert-publisher",
    "selinux-warning-controller": "",
    "service-cidr-controller": "",
    "service-lb-controller": "service",
    "serviceaccount-controller": "serviceaccount",
    "serviceaccount-token-controller": "serviceaccount-token",
    "statefulset-controller": "statefulset",
    "storage-version-migrator-controller": "svm",
    "storageversion-garbage-collector-controller": "storage-version-gc",
    "taint-eviction-controller": "",
    "token-cleaner-controller": "tokencleaner",
    "ttl-after-finished-controller": "ttl-after-finished",
    "ttl-controller": "ttl",
    "validatingadmissionpolicy-status-controller": "",
    "volumeattributesclass-protection-controller": "",
}
#: Controllers that the first of the minor versions did not have. No short name changed.
_SINCE: Mapping[str, tuple[int, int]] = {
    "podcertificaterequest-cleaner-controller": (1, 34),
    "podgroup-protection-controller": (1, 36),
    "resourcepoolstatusrequest-controller": (1, 36),
}
#: Those that a kube-controller-manager never runs. It listed them (isCloudProviderController) before 1.37.
CLOUDS_ALONE = frozenset({"cloud-node-lifecycle-controller", "node-route-controller", "service-lb-controller"})
_UNLISTED = (1, 37)
#: Those that it runs only where ``--controllers`` names them.
KUBE_OFF = frozenset({"bootstrap-signer-controller", "selinux-warning-controller", "token-cleaner-controller"})
#: Those of them that quarterdeck names where nodes join by tokens.
TOKENS = frozenset({"bootstrap-signer-controller", "token-cleaner-controller"})
#: What either manager runs only with ``--allocate-node-cidrs`` (newNodeIpamController).
NODE_IPAM = "node-ipam-controller"
#: A kube-controller-manager always runs it, under its main lock, and never under a migration lock.
ALWAYS_KUBE = "serviceaccount-token-controller"

#: The controllers of ``k8s.io/cloud-provider``, in the same way. Programs may have others linked in.
_CLOUD: Mapping[str, str] = {
    "cloud-node-controller": "cloud-node",
    "cloud-node-lifecycle-controller": "cloud-node-lifecycle",
    "node-route-controller": "route",
    "service-lb-controller": "service",
}
_CANONICAL = {short: name for names in (_KUBE, _CLOUD) for name, short in names.items() if short}

#: What ``--help`` says at ``--controllers``, up to the value that it has by itself.
_HELP = re.compile(r"All controllers:(.*?)Disabled-by-default controllers:(.*?)\(default ", re.DOTALL)
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")


@dataclass(frozen=True, slots=True)
class Listed:
    """The controllers that a program lists: their ``names``, and those that are ``off`` unless they are named."""

    names: tuple[str, ...]
    off: frozenset[str] = frozenset()


def names_of(manager: ControllerProgram, minor: tuple[int, int]) -> tuple[str, ...]:
    """The canonical names that a manager of that minor version lists, sorted; of a cloud controller manager those of
    every stock one. Raises PreconditionFailed for a minor version whose names are not known.
    """
    if minor not in MINORS:
        raise PreconditionFailed(
            f"looking up controllers of Kubernetes {minor[0]}.{minor[1]}",
            f"their names are known for {', '.join(f'{major}.{number}' for major, number in MINORS)}",
            "declare spec.controllerSets with one of these versions",
        )
    if manager is ControllerProgram.CLOUD:
        return tuple(sorted(_CLOUD))
    gone = CLOUDS_ALONE if minor >= _UNLISTED else frozenset[str]()
    return tuple(sorted(name for name in _KUBE if _SINCE.get(name, MINORS[0]) <= minor and name not in gone))


def has(manager: ControllerProgram, minor: tuple[int, int], name: str, says: Listed | None = None) -> bool:
    """Whether a manager can run a controller. ``says``: what the program of a cloud controller manager lists (None: it
    is not known, and may be anything that upstream has). Raises PreconditionFailed as ``names_of`` does.
    """
    kube = name in names_of(ControllerProgram.KUBE, minor)
    if manager is ControllerProgram.KUBE:
        return kube and name not in CLOUDS_ALONE
    return name in says.names if says is not None else kube or name in _CLOUD


def canonical(name: str) -> str:
    """The canonical name of a short one; any other name unchanged."""
    return _CANONICAL.get(name, name)


def suggested(name: str, known: Collection[str]) -> str:
    """The most similar of the ``known`` names; "" if none is similar."""
    if canonical(name) in known:
        return canonical(name)
    return next(iter(difflib.get_close_matches(name, sorted(known), n=1)), "")


def enabled(flag: str, name: str, off: Collection[str]) -> bool:
    """Whether ``--controllers=flag`` lets a controller run: the first word that names it says so, by either name; else
    ``*`` does for all that are not ``off``.
    """
    words = listed(flag)
    for word in words:
        if canonical(word.removeprefix("-")) == name:
            return not word.startswith("-")
    return "*" in words and name not in off


def parse_help(text: str) -> Listed | None:
    """What ``--help`` of a program lists at ``--controllers``; None if that is not in it as upstream writes it."""
    found = _HELP.search(text)
    if found is None:
        return None
    names, off = (listed(each) for each in found.groups())
    if not names or not all(_NAME.fullmatch(each) for each in (*names, *off)):
        return None
    return Listed(names=names, off=frozenset(off))
