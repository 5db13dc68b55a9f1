"""Hand-made histories of who had controllers: times are in seconds from ZERO."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from pydantic import JsonValue

from quarterdeck.api.plane.controllers import ControllerProgram, ControllerSetSpec
from quarterdeck.handover.acts import Act
from quarterdeck.handover.tenures import Tenure

ZERO = 1_800_000_000.0
KCM, CCM = ControllerProgram.KUBE, ControllerProgram.CLOUD
LOCK = "ipam-migration"
SET = ControllerSetSpec(name="ipam", lock=LOCK, controllers=("node-ipam-controller",), owner=CCM)
ACCOUNT = "system:serviceaccount:kube-system:node-controller"
KUBE_AGENT = f"kube-controller-manager/v1.36.3 (linux/amd64) kubernetes/abc/{ACCOUNT}"
CLOUD_AGENT = "fake-ccm/v0.0.0 (linux/amd64) kubernetes/$Format/node-controller"


def tenure(
    lock: str, manager: ControllerProgram, replica: str, begins: float, ends: float | None = None, **more: object
) -> Tenure:
    """A tenure that was released in the end, and the first of its lock, unless more says otherwise."""
    detail: dict[str, object] = {"token": 0, "released": ends is not None, "holder": f"{replica}_{begins:g}", **more}
    return Tenure(
        lock=lock,
        component=manager.value,
        replica=replica,
        begins=ZERO + begins,
        ends=None if ends is None else ZERO + ends,
        **detail,  # type: ignore[arg-type]
    )


def act(manager: ControllerProgram, replica: str, at: float, *, controllers: tuple[str, ...] = SET.controllers) -> Act:
    return Act(
        controllers=controllers,
        component=manager,
        replica=replica,
        begun=ZERO + at - 0.01,
        at=ZERO + at,
        verb="patch",
        object="nodes/worker-1",
    )


def moment(at: float) -> str:
    return datetime.fromtimestamp(ZERO + at, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def line(at: float, **more: JsonValue) -> str:
    """A line of an audit log: a patch of a node's podCIDR by kube-controller-manager, unless more says otherwise."""
    event: dict[str, JsonValue] = {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "Request",
        "auditID": "x",
        "stage": "ResponseComplete",
        "requestURI": "/api/v1/nodes/worker-1",
        "verb": "patch",
        "user": {"username": ACCOUNT, "groups": ["system:authenticated"]},
        "sourceIPs": ["10.0.0.1"],
        "userAgent": KUBE_AGENT,
        "objectRef": {"resource": "nodes", "name": "worker-1", "apiVersion": "v1"},
        "responseStatus": {"metadata": {}, "code": 200},
        "requestObject": {"spec": {"podCIDR": "10.1.0.0/24", "podCIDRs": ["10.1.0.0/24"]}},
        "requestReceivedTimestamp": moment(at - 0.01),
        "stageTimestamp": moment(at),
        **more,
    }
    return json.dumps({name: value for name, value in event.items() if value is not None})
