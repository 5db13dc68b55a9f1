"""Manifests of admission as files of an apiserver: a folder for each plugin that reads them."""

from __future__ import annotations

from quarterdeck.api.controlplane import ControlPlaneSpec
from quarterdeck.api.plane.manifests import PLUGINS
from quarterdeck.api.revision import ReplicaTemplate
from quarterdeck.components.arguments import Folder
from quarterdeck.components.minors import dotted
from quarterdeck.components.transitions.upgrade_windows import behaviour
from quarterdeck.components.upstream_versions import reads_admission_manifests
from quarterdeck.yaml_text import dumped

_GROUP = "apiserver.config.k8s.io/v1"
#: The kind of the configuration of each plugin, which names its folder.
_CONFIGURATIONS = {
    "MutatingAdmissionPolicy": "MutatingAdmissionPolicyConfiguration",
    "MutatingAdmissionWebhook": "WebhookAdmissionConfiguration",
    "ValidatingAdmissionPolicy": "ValidatingAdmissionPolicyConfiguration",
    "ValidatingAdmissionWebhook": "WebhookAdmissionConfiguration",
}


def manifest_plugins(template: ReplicaTemplate, folder: Folder) -> dict[str, object]:
    """The configuration of each plugin that reads manifests, which are added to ``folder``. Nothing while the apiserver
    behaves as a version that reads none.
    """
    manifests = (template.admission.manifests if template.admission is not None else None) or ()
    if not reads_admission_manifests(behaviour(template).emulated):
        return {}
    configured: dict[str, object] = {}
    for plugin, kind in _CONFIGURATIONS.items():
        mine = [each for each in manifests if PLUGINS[str(each["kind"])] == plugin]
        if mine:
            folder.file(f"{plugin}/manifests.yaml", "---\n".join(map(dumped, mine)))
            place = str(folder.path / plugin)
            configured[plugin] = {"apiVersion": _GROUP, "kind": kind, "staticManifestsDir": place}
    return configured


def manifests_problem(declared: ControlPlaneSpec) -> str:
    """Why a plane cannot have manifests of admission; "" if it can, or has none."""
    emulated = behaviour(declared).emulated
    if declared.admission is None or not declared.admission.manifests or reads_admission_manifests(emulated):
        return ""
    return f"spec.admission.manifests: apiservers that behave as Kubernetes {dotted(emulated)} read no manifests"
