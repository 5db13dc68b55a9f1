"""What nodes look for is kept in a plane: put back when it is gone or changed, taken away when it is not wanted."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pydantic import ValidationError
from support.addons_lab import addon, config_map
from support.joining_lab import JoiningLab
from support.resources import with_spec

from quarterdeck.actions.plane import Plane
from quarterdeck.actions.status import write_memory
from quarterdeck.api.base import Metadata
from quarterdeck.api.controlplane import ControlPlane, ControlPlaneSpec, Placement, new_control_plane
from quarterdeck.api.operation import Operation, OperationPhase, OperationSpec, OperationStatus, OperationType
from quarterdeck.api.plane.addons import NODES_ADDON
from quarterdeck.api.plane.nodes import Nodes
from quarterdeck.components.ports import LAST_BLOCK, seat_at
from quarterdeck.engine.background.addon_task import DRIFT_EVERY
from quarterdeck.engine.workspace import operations
from quarterdeck.engine.workspace.operations import asks_for_addons
from quarterdeck.engine.workspace.revisions import takes_nodes

INFO = "/api/v1/namespaces/kube-public/configmaps/cluster-info"
KUBELET = "/api/v1/namespaces/kube-system/configmaps/kubelet-config"
BOUND = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/kubeadm:kubelet-bootstrap"


@pytest.fixture
async def lab() -> JoiningLab:
    made = await JoiningLab.made()
    await made.turn()
    return made


async def test_it_comes_without_being_asked_for_and_is_told_as_an_add_on(lab: JoiningLab) -> None:
    assert "demo.quarterdeck.internal:6443" in str(lab.value(INFO, "data", "kubeconfig"))
    assert lab.there(BOUND)
    assert lab.condition() == ("True UpToDate", "15 objects")


async def test_it_is_left_alone_while_nobody_touches_it(lab: JoiningLab) -> None:
    lab.objects.calls.clear()
    await lab.turn(later=DRIFT_EVERY)
    lab.another_process()
    await lab.turn()
    assert lab.objects.calls == []


async def test_what_somebody_deletes_or_changes_is_put_back(lab: JoiningLab) -> None:
    del lab.objects.objects[BOUND]
    lab.objects.edit(INFO, ("data", "kubeconfig"), "another server")
    lab.objects.edit(INFO, ("data", "jws-kubeconfig-abcdef"), "signed", manager="kube-controller-manager")
    await lab.turn(later=DRIFT_EVERY)
    assert lab.there(BOUND)
    assert "demo.quarterdeck.internal" in str(lab.value(INFO, "data", "kubeconfig"))
    assert lab.value(INFO, "data", "jws-kubeconfig-abcdef") == "signed", "that is the signer's"


async def seated(plane: Plane, block: int) -> None:
    """Have east-2 sit on the ports of a block."""
    seat = seat_at("m-east-2", "192.0.2.2", block)
    at = tuple(replace(each, seat=seat) if each.name == "east-2" else each for each in plane.memory.replicas)
    await write_memory(plane, replace(plane.memory, replicas=at))


async def test_an_apiserver_with_other_ports_than_the_planes_has_endpoints_as_long_as_it_is_there(
    lab: JoiningLab,
) -> None:
    await seated(lab.plane, LAST_BLOCK)
    await lab.turn()
    (path,) = (each for each in lab.objects.objects if "endpointslices" in each)
    assert lab.value(path, "endpoints") == [{"addresses": ["192.0.2.2"], "conditions": {"ready": True}}]
    await seated(lab.plane, 0)
    await lab.turn()
    assert not lab.there(path)


async def test_what_the_user_says_of_kubelets_is_in_it_at_once(lab: JoiningLab) -> None:
    await lab.say(Nodes(bootstrap=True, kubelet_configuration={"maxPods": 42}))
    await lab.turn()
    assert "maxPods: 42" in str(lab.value(KUBELET, "data", "kubelet"))


async def test_it_goes_when_no_nodes_are_to_join(lab: JoiningLab) -> None:
    await lab.want(addon("mine", config_map("mine", "kube-system")))
    await lab.turn()
    await lab.say(Nodes(bootstrap=False))
    assert set(await lab.turn()) == {"mine"}
    assert not lab.there(INFO)
    assert not lab.there(BOUND)
    assert not lab.there(lab.parent(NODES_ADDON))


async def test_no_add_on_of_the_users_is_called_so() -> None:
    wanted = {"placement": {"site": "east"}, "addons": [{"name": NODES_ADDON, "inline": "a: b"}]}
    with pytest.raises(ValidationError, match="which is quarterdeck's own"):
        ControlPlaneSpec.model_validate(wanted, strict=False)


@pytest.mark.parametrize("name", ["serverTLSBootstrap", "rotateCertificates", "kind", "apiVersion"])
def test_what_nodes_would_be_lost_without_may_not_be_set(name: str) -> None:
    with pytest.raises(ValidationError, match=f"{name}"):
        Nodes.model_validate({"kubeletConfiguration": {name: False}})


@pytest.mark.parametrize(
    ("bootstrap", "takes"),
    [(None, True), (True, True), (False, False)],
)
def test_planes_take_nodes_unless_the_user_says_otherwise(bootstrap: bool | None, takes: bool) -> None:
    made = new_control_plane("demo", site="east")
    assert takes_nodes(with_spec(made, nodes=Nodes(bootstrap=bootstrap))) is takes


def operation(before: ControlPlane | None, after: ControlPlane) -> Operation:
    spec = OperationSpec(
        plane="demo",
        number=1,
        type=OperationType.APPLY,
        from_=operations.goal_of(before) if before is not None else None,
        to=operations.goal_of(after),
        requested_by="a test",
    )
    status = OperationStatus(phase=OperationPhase.PENDING)
    return Operation(metadata=Metadata(name="demo-apply-1"), spec=spec, status=status)


def test_a_change_has_succeeded_when_it_is_there_and_no_other_change_waits_for_it() -> None:
    def plane(nodes: Nodes | None = None, replicas: int = 3) -> ControlPlane:
        made = new_control_plane("demo", site="east")
        changes = {"nodes": nodes or Nodes(), "replicas": replicas, "placement": Placement(site="east")}
        return with_spec(made, **changes)

    assert asks_for_addons(operation(None, plane()))
    assert asks_for_addons(operation(None, plane(Nodes(bootstrap=False)))), "its administrators need their binding"
    assert asks_for_addons(operation(plane(), plane(Nodes(bootstrap=True))))
    assert not asks_for_addons(operation(plane(), plane(replicas=1)))
