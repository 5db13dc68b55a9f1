"""Worker nodes: whether new ones can join a plane with a token, and the configuration of their kubelets."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field, JsonValue

from quarterdeck.api.base import Model
from quarterdeck.api.schema import InSchema, refuse

#: Fields of a KubeletConfiguration that users may not set, and why.
_OURS = {
    "apiVersion": "quarterdeck writes it",
    "kind": "quarterdeck writes it",
    "rotateCertificates": "kubelets would be locked out when their certificates expire",
    "serverTLSBootstrap": "apiservers would not trust kubelets' certificates, and logs and exec would fail",
}


def _kubelet(given: dict[str, JsonValue]) -> dict[str, JsonValue]:
    for name, why in _OURS.items():
        if name in given:
            refuse((name, f"may not be set: {why}"))
    return given


class Nodes(Model):
    """Settings of worker nodes."""

    #: Whether nodes can join with a bootstrap token, as `kubeadm join` does; without it, they can.
    bootstrap: bool | None = None
    #: Fields of the KubeletConfiguration (kubelet.config.k8s.io/v1beta1) for nodes that join with kubeadm.
    kubelet_configuration: Annotated[
        dict[str, JsonValue],
        AfterValidator(_kubelet),
        InSchema({"propertyNames": {"not": {"enum": sorted(_OURS)}}}),
    ] = Field(default_factory=dict)
