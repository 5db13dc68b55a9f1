"""A kube-controller-manager, warm under leader election."""

from __future__ import annotations

from collections.abc import Mapping

from quarterdeck.api.controlplane import ControlPlaneSpec
from quarterdeck.api.plane.controllers import ControllerProgram
from quarterdeck.api.plane.keys import KeyPurpose
from quarterdeck.api.revision import ReplicaTemplate
from quarterdeck.components.admission_plugins import listed
from quarterdeck.components.arguments import Arguments, Folder, boolean
from quarterdeck.components.controller.common import (
    controller_unit,
    set_defaults,
    set_flags,
    shared_defaults,
    shared_flags,
    without_others,
)
from quarterdeck.components.credentials import asking, in_use, serving
from quarterdeck.components.record import ComponentSpec, Flags, Port, Stopping
from quarterdeck.components.refusals import CONTROLLER_MANAGER_FLAGS, CONTROLLER_MANAGER_VALUES
from quarterdeck.components.settings import Inputs, service_ranges
from quarterdeck.components.transitions.upgrade_windows import emulation_flags
from quarterdeck.model.components import Component
from quarterdeck.model.seats import PortName
from quarterdeck.model.units import UnitSpec

#: Its lease, in kube-system.
LEASE = "kube-controller-manager"

#: Another program handles the cloud; besides "", Kubernetes 1.33 to 1.37 accept no other value (options.go: Validate).
EXTERNAL = "external"

#: How many finished pods are kept, of all namespaces together: upstream's number lets them fill etcd for months.
_FINISHED_PODS = 1_000

#: They are off unless they are named (by either name): one signs ``cluster-info`` with each token, the other deletes
#: tokens that ended.
_FOR_TOKENS = {"bootstrap-signer-controller": "bootstrapsigner", "token-cleaner-controller": "tokencleaner"}


_SERVING = serving("kube-controller-manager", "controller_manager")
_CLIENT = asking("kube-controller-manager", "controller_manager_client")


def controller_manager_unit(inputs: Inputs, flags: Mapping[str, str]) -> UnitSpec:
    """The unit of a controller manager. Raises InvalidInput for invalid extra arguments."""
    component, template = Component.CONTROLLER_MANAGER, inputs.template
    folder = Folder(inputs.replica.folders[component])
    owned = {
        **shared_flags(inputs, folder, port=PortName.CONTROLLER_MANAGER, client=_CLIENT, serving=_SERVING),
        **_signing(inputs, folder),
        "service-cluster-ip-range": service_ranges(template),
        "use-service-account-credentials": boolean(True),
        **emulation_flags(component, template),
        **set_flags(template, ControllerProgram.KUBE, folder),
    }
    if template.cloud_controller_manager is not None:
        owned["cloud-provider"] = EXTERNAL
    extra = without_others(template, ControllerProgram.KUBE, flags)
    if template.node_bootstrap:
        extra = {**extra, "controllers": _with_tokens(extra.get("controllers", "*"))}
    return controller_unit(inputs, component, Arguments(owned=owned, defaults=_defaults(inputs)), extra, folder)


def _signing(inputs: Inputs, folder: Folder) -> dict[str, str]:
    """The keys with which it signs certificates and tokens, and the CA for pods."""
    authority = inputs.secrets.kubernetes_ca
    account = in_use(inputs.secrets.service_account, inputs.template.key_use(KeyPurpose.SERVICE_ACCOUNT))[0]
    # It signs nothing where its file has more than one certificate (kubernetes: signer/ca_provider.go).
    signs = "ca.crt" if authority.bundle == authority.issuer.certificate else "signing-ca.crt"
    return {
        "cluster-signing-cert-file": folder.file(signs, authority.issuer.certificate),
        "cluster-signing-key-file": folder.file("ca.key", authority.issuer.key),
        "root-ca-file": folder.file("ca.crt", authority.bundle),
        "service-account-private-key-file": folder.file("service-account.key", account.private),
    }


def _defaults(inputs: Inputs) -> dict[str, str]:
    """Flags that users may change."""
    return {
        **shared_defaults(),
        **set_defaults(inputs.template),
        "allocate-node-cidrs": boolean(False),
        "cluster-name": inputs.plane,
        "terminated-pod-gc-threshold": str(_FINISHED_PODS),
    }


def _with_tokens(controllers: str) -> str:
    """``--controllers`` with those that bootstrap tokens need, unless the user named them, or turned them off."""
    named = listed(controllers)
    known = {each.removeprefix("-") for each in named}
    return ",".join((*named, *(name for name, alias in _FOR_TOKENS.items() if not known & {name, alias})))


def _given(declared: ReplicaTemplate | ControlPlaneSpec) -> Mapping[str, str]:
    return declared.extra_args.kube_controller_manager


CONTROLLER_MANAGER = ComponentSpec(
    component=Component.CONTROLLER_MANAGER,
    program="kube-controller-manager",
    build=controller_manager_unit,
    ports=(Port(name=PortName.CONTROLLER_MANAGER, number=10257),),
    certificates=(_SERVING, _CLIENT),
    made_from=(
        "kubernetesVersion",
        "upgradeWindow",
        "secondaryServiceCidr",
        "extraArgs.kubeControllerManager",
        "cloudControllerManager",
        "controllerSets",
        "nodeBootstrap",
        "serviceAccountKey",
    ),
    flags=Flags(
        of=Component.CONTROLLER_MANAGER,
        path="spec.extraArgs.kubeControllerManager",
        given=_given,
        refused=CONTROLLER_MANAGER_FLAGS,
        judged=CONTROLLER_MANAGER_VALUES,
    ),
    stopping=Stopping.HANDING_ON,
    lease=LEASE,
)
