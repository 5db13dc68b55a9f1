"""Whose write of what a line of an audit log is."""

from __future__ import annotations

import pytest
from pydantic import JsonValue
from support.lock_histories import ACCOUNT, CCM, CLOUD_AGENT, KCM, SET, ZERO, line

from quarterdeck.api.plane.controllers import ControllerSetSpec
from quarterdeck.handover.acts import Act, read, texts_of
from quarterdeck.handover.clients import client_of

CLOUD: dict[str, JsonValue] = {"user": {"username": "system:cloud-controller-manager"}, "userAgent": CLOUD_AGENT}
TAINTS: JsonValue = {"metadata": {"resourceVersion": "1"}, "spec": {"taints": None}}
LABELS: JsonValue = {"metadata": {"labels": {"zone": "a"}}}
IPAM, LIFECYCLE = "node-ipam-controller", "node-lifecycle-controller"
CLOUD_NODE, CLOUD_LIFECYCLE = "cloud-node-controller", "cloud-node-lifecycle-controller"


def one(**more: JsonValue) -> Act:
    found = read([line(5.0, **more)], lambda _: "demo-1")
    assert found.unreadable == 0
    (only,) = found.acts
    return only


def thing(resource: str, subresource: str = "", **more: JsonValue) -> JsonValue:
    return {"resource": resource, "name": "x", **({"subresource": subresource} if subresource else {}), **more}


def test_a_patch_of_a_nodes_addresses_for_pods_is_ipams() -> None:
    assert one() == Act(
        controllers=(IPAM,), component=KCM, replica="demo-1", begun=ZERO + 4.99, at=ZERO + 5.0, verb="patch",
        object="nodes/worker-1",
    )  # fmt: skip
    assert one(**CLOUD).component is CCM


@pytest.mark.parametrize(
    ("more", "controllers"),
    [
        ({"requestObject": TAINTS}, (LIFECYCLE,)),
        ({"requestObject": LABELS}, (LIFECYCLE,)),
        ({"requestObject": None}, (IPAM, LIFECYCLE)),
        ({"objectRef": thing("nodes", "status"), "verb": "update", "requestObject": None}, (LIFECYCLE,)),
        ({"objectRef": thing("pods", namespace="a"), "verb": "delete"}, ("taint-eviction-controller",)),
        ({"objectRef": thing("pods", "status")}, (LIFECYCLE, "taint-eviction-controller")),
        ({**CLOUD, "requestObject": TAINTS}, (CLOUD_LIFECYCLE,)),
        ({**CLOUD, "requestObject": LABELS}, (CLOUD_NODE,)),
        ({**CLOUD, "requestObject": None}, (CLOUD_NODE, CLOUD_LIFECYCLE, IPAM)),
        ({**CLOUD, "verb": "update", "requestObject": {"spec": {"podCIDR": "10.1.0.0/24"}}}, (CLOUD_NODE,)),
        ({**CLOUD, "verb": "delete", "requestObject": None}, (CLOUD_LIFECYCLE,)),
        ({**CLOUD, "objectRef": thing("nodes", "status")}, (CLOUD_NODE,)),
        (
            {**CLOUD, "objectRef": thing("nodes", "status"), "userAgent": "ccm/v1/route-controller"},
            ("node-route-controller",),
        ),
        (
            {**CLOUD, "objectRef": thing("nodes", "status"), "userAgent": "ccm/v1/my-controller"},
            (CLOUD_NODE, "node-route-controller"),
        ),
        (
            {**CLOUD, "objectRef": thing("services", "status"), "userAgent": "ccm/v1/service-controller"},
            ("service-lb-controller",),
        ),
    ],
)
def test_controllers_that_share_a_client_are_told_apart_by_what_they_write(
    more: dict[str, JsonValue], controllers: tuple[str, ...]
) -> None:
    assert one(**more).controllers == controllers


def test_a_controller_of_a_name_of_its_own_is_known_by_its_account_whatever_its_agent_says() -> None:
    mine: JsonValue = {"username": "system:serviceaccount:kube-system:attachdetach-controller"}
    found = one(user=mine, objectRef=thing("volumeattachments"), userAgent="kube-controller-manager/v1 (x)/other")
    assert found.controllers == ("persistentvolume-attach-detach-controller",)
    new: JsonValue = {"username": "system:serviceaccount:kube-system:some-new-controller"}
    assert one(user=new, objectRef=thing("pods")).controllers == ("some-new-controller",)


def test_service_accounts_are_used_by_both_managers_which_differ_by_their_programs() -> None:
    assert one(userAgent=f"fake-ccm/v0.0.0 (linux/amd64) kubernetes/abc/{ACCOUNT}").component is CCM


@pytest.mark.parametrize(
    "more",
    [
        {"responseStatus": {"code": 409}},
        {"responseStatus": None},
        {"stage": "ResponseStarted"},
        {"stage": "Panic"},
        {"verb": "get"},
        {"user": {"username": "jane"}},
        {"user": {"username": "system:kube-scheduler"}},
        {"objectRef": None},
        {**CLOUD, "objectRef": thing("leases", namespace="kube-system"), "verb": "update"},
    ],
)
def test_what_is_no_acknowledged_write_of_a_controller_is_no_act(more: dict[str, JsonValue]) -> None:
    found = read([line(1.0, **more)], lambda _: "demo-1")
    assert (found.acts, found.unreadable) == ((), 0)


def test_lines_that_are_no_events_are_counted() -> None:
    found = read(["", "half a li", line(1.0), '{"kind": "Event"}'], lambda _: "demo-1")
    assert (len(found.acts), found.unreadable) == (1, 3)


def test_what_is_looked_for_is_in_each_line_that_matters_and_in_few_others() -> None:
    attaching = ControllerSetSpec(
        name="a", lock="a", controllers=("persistentvolume-attach-detach-controller",), owner=KCM
    )
    texts = texts_of((SET, attaching))
    assert texts == (
        '"system:cloud-controller-manager"',
        '"system:kube-controller-manager"',
        '"system:serviceaccount:kube-system:attachdetach-controller"',
        '"system:serviceaccount:kube-system:node-controller"',
    )
    for found, expected in ((line(1.0), True), (line(1.0, **CLOUD), True), (line(1.0, user={"username": "x"}), False)):
        assert any(text in found for text in texts) is expected
    assert client_of("job-controller") == "job-controller"
