"""A plane is created by one command, and is highly available; contract/test_replica_processes.py has the rest."""

from __future__ import annotations

import pytest
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
