"""A kube-controller-manager, warm under leader election."""

from __future__ import annotations

from quarterdeck.api.plane.controllers import Manager
from quarterdeck.components.admission_plugins import listed
from quarterdeck.components.arguments import Arguments, boolean
from quarterdeck.components.controller.common import (
    command,
    set_defaults,
    set_flags,
    shared_defaults,
    shared_flags,
    without_others,
)
from quarterdeck.components.credentials import PlaneSecrets, ReplicaSecrets
from quarterdeck.components.files import Folder
from quarterdeck.components.settings import PlaneSettings, ReplicaSettings, unit_name
from quarterdeck.model.components import Component
from quarterdeck.model.seats import PortName
from quarterdeck.model.units import Priority, UnitSpec

#: Its lease, in kube-system.
LEASE = "kube-controller-manager"

#: The cloud is another program's matter; but for "", Kubernetes 1.33 to 1.36 take nothing else (options.go: Validate).
EXTERNAL = "external"

#: How many finished pods are kept, of all namespaces together: upstream's number lets them fill etcd for months.
_FINISHED_PODS = 1_000

#: They are off unless they are named (by either name): one signs ``cluster-info`` with each token, the other deletes
#: tokens that ended.
_FOR_TOKENS = {"bootstrap-signer-controller": "bootstrapsigner", "token-cleaner-controller": "tokencleaner"}


def controller_manager_unit(
    plane: PlaneSettings, replica: ReplicaSettings, secrets: PlaneSecrets, certificates: ReplicaSecrets
) -> UnitSpec:
    """The unit of a controller manager. Raises InvalidInput for extra arguments that cannot be."""
    component = Component.CONTROLLER_MANAGER
    folder = Folder(replica.folders[component])
    owned = {
        **shared_flags(
            plane,
            replica,
            secrets,
            folder,
            user="system:kube-controller-manager",
            port=PortName.CONTROLLER_MANAGER,
            client=certificates.controller_manager_client,
            serving=certificates.controller_manager,
        ),
        "cluster-signing-cert-file": folder.file("ca.crt", secrets.kubernetes_ca.issuer.certificate),
        "cluster-signing-key-file": folder.file("ca.key", secrets.kubernetes_ca.issuer.key),
        "root-ca-file": folder.file("ca.crt", secrets.kubernetes_ca.bundle),
        "service-account-private-key-file": folder.file("service-account.key", secrets.service_account.signing.private),
        "service-cluster-ip-range": plane.service_cidr,
        "use-service-account-credentials": boolean(True),
        **set_flags(plane, Manager.KUBE, folder),
    }
    defaults = {
        **shared_defaults(),
        **set_defaults(plane),
        "allocate-node-cidrs": boolean(False),
        "cluster-name": plane.name,
        "terminated-pod-gc-threshold": str(_FINISHED_PODS),
    }
    if plane.cloud is not None:
        owned["cloud-provider"] = EXTERNAL
    extra = without_others(plane, Manager.KUBE, plane.extra_args.get(component, {}))
    if plane.node_bootstrap:
        extra = {**extra, "controllers": _with_tokens(extra.get("controllers", "*"))}
    arguments = Arguments(owned=owned, defaults=defaults)
    return UnitSpec(
        name=unit_name(plane.name, replica.name, component),
        argv=command(replica, component, arguments.command_line(component, extra)),
        files=folder.files,
        priority=Priority.BACKGROUND,
    )


def _with_tokens(controllers: str) -> str:
    """``--controllers`` with those that tokens need, unless the user has named them, or turned them off."""
    named = listed(controllers)
    known = {each.removeprefix("-") for each in named}
    return ",".join((*named, *(name for name, alias in _FOR_TOKENS.items() if not known & {name, alias})))
