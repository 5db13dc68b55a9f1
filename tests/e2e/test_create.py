"""A plane is created by one command, and is highly available; contract/test_replica_processes.py has the rest."""

from __future__ import annotations

import pytest
from support.clients import Client
from support.conditions import until
from support.plane_lab import PlaneLab

pytestmark = [pytest.mark.smoke, pytest.mark.timeout(600)]


def test_one_command_makes_three_healthy_replicas_in_three_zones(demo: PlaneLab) -> None:
    fact = demo.printed_status("demo", code=0)
    assert fact["healthy"]
    assert (fact["voters"], fact["mayFail"], fact["quorumAt"]) == (3, 1, fact["site"])
    assert {member["zone"] for member in fact["members"]} == {"a", "b", "c"}
    assert {member["apiserver"] for member in fact["members"]} == {"ready"}
    assert fact["operation"] is fact["driver"] is None


def test_the_replicas_that_lead_controllers_and_scheduler_are_named(demo: PlaneLab) -> None:
    def leaders() -> dict[str, str]:
        seen: dict[str, str] = demo.status("demo")["leaders"]
        return seen if all(seen.values()) else {}

    leading = until(leaders, "both have a leader")
    fact = demo.status("demo")
    assert set(leading) == {"kube-controller-manager", "kube-scheduler"} == set(fact["leaderIdentities"])
    assert set(leading.values()) <= {member["replica"] for member in fact["members"]}
    shown = demo.run("status", "demo").out
    assert f"kube-scheduler led by {leading['kube-scheduler']}" in shown
    assert fact["leaderIdentities"]["kube-scheduler"] not in shown


def test_a_plane_that_is_as_wanted_has_nothing_to_do(demo: PlaneLab) -> None:
    assert "nothing to do" in demo.run("plan", "demo").out
    assert "is settled" in demo.run("wait", "demo").out


def allowed(client: Client, verb: str, resource: str) -> bool:
    """Whether RBAC lets a client do that everywhere, as ``kubectl auth can-i`` asks."""
    asked = {"resourceAttributes": {"group": "*" if resource == "*" else "", "verb": verb, "resource": resource}}
    with client.http() as http:
        answer = http.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", json={"spec": asked})
        answer.raise_for_status()
        return bool(answer.json()["status"]["allowed"])


def test_an_administrators_permissions_end_with_their_binding_and_break_glass_needs_none(demo: PlaneLab) -> None:
    def client(*argv: str) -> Client:
        path = demo.scratch()
        demo.run("kubeconfig", "demo", *argv, "--output-file", str(path))
        return Client(path)

    group, admin, glass = "quarterdeck:cluster-admins", client(), client("--break-glass", "--for", "10m")
    ada = client("--user", "ada", "--group", "readers", "--for", "10m")
    until(lambda: allowed(admin, "*", "*"), "an administrator may do everything")
    try:
        assert not allowed(ada, "list", "configmaps")
        demo.kubectl(admin, "create", "clusterrole", "readers", "--verb=get,list", "--resource=configmaps")
        demo.kubectl(admin, "create", "clusterrolebinding", "readers", "--clusterrole=readers", "--group=readers")
        until(lambda: allowed(ada, "list", "configmaps"), "the role of the group counts")
        assert not allowed(ada, "create", "configmaps")
        demo.kubectl(admin, "delete", "clusterrolebinding", group)
        until(lambda: not allowed(admin, "list", "configmaps"), "an administrator may do nothing")
        assert "is settled" in demo.run("wait", "demo").out
        demo.kubectl(admin, "get", "configmaps", code=1)
        assert allowed(glass, "*", "*")
    finally:
        demo.kubectl(glass, "create", "clusterrolebinding", group, "--clusterrole=cluster-admin", f"--group={group}")
        demo.kubectl(glass, "delete", "clusterrole/readers", "clusterrolebinding/readers", "--ignore-not-found")
    until(lambda: allowed(admin, "*", "*"), "the binding counts again")
    assert any(each["reason"] == "BreakGlass" for each in demo.run("events", "demo", "-o", "json").json)
