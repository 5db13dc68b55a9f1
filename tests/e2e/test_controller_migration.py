"""node-ipam-controller goes from the stock kube-controller-manager to a stock cloud-controller-manager, and back."""

from __future__ import annotations

import json
import threading

import pytest
from support.client_view import watched
from support.conditions import until
from support.controller_migration import (
    CLOUD,
    KUBE,
    LOCK,
    NAME,
    SET,
    STRIKES,
    NodeMaker,
    declared,
    frozen,
    guarding,
    held_by,
    move,
    nodes_come,
    owner_now,
    pid_of,
    shown,
)
from support.plane_lab import Command, PlaneLab, managed, started

from quarterdeck.api.operation import OperationPhase

pytestmark = pytest.mark.timeout(600)


def test_every_node_gets_one_pod_cidr_while_the_controller_goes_to_another_manager_and_back(lab: PlaneLab) -> None:
    lab.run("apply", "-f", declared(lab, owner=KUBE, replicas=3))
    with watched(lab, NAME, "handed"), nodes_come(lab):
        for owner in (CLOUD, KUBE):
            done = lab.run(*move(owner))
            assert owner_now(lab) == owner, str(done)
            (held,) = shown(lab, "list", NAME)
            assert (held["owner"], held["manager"], held["heldByOwner"]) == (owner, owner, True), held
            _is_proven(lab)
    assert lab.operation(NAME).status.phase is OperationPhase.SUCCEEDED


@pytest.mark.soak  # tests/model hands over one replica and three; the test before has two moves of three
@pytest.mark.parametrize("replicas", [3, 1])
def test_a_hand_over_is_rolled_back_at_once(lab: PlaneLab, replicas: int) -> None:
    lab.run("apply", "-f", declared(lab, owner=KUBE, replicas=replicas))
    with watched(lab, NAME, "rolled-back"), nodes_come(lab):
        lab.run(*move(CLOUD))
        lab.run("controllers", "rollback", NAME, "--set", SET, "--downtime-allowed", "--yes")
        assert owner_now(lab) == KUBE
        _is_proven(lab)


def _is_proven(lab: PlaneLab) -> None:
    """That no two managers acted in the last hand-over. (Who held a lock too shortly to be asked may not be known; for
    how long nobody ran the set is measured by bench/handing.py.)
    """
    verified = json.loads(lab.start("controllers", "verify", NAME, "-o", "json").end().out)
    (verdict,) = verified["sets"]
    assert verdict["finding"] == "no overlap" or verdict["reasons"], verified
    assert verdict["overlaps"] == verdict["outside"] == [], verified


@pytest.mark.soak  # tests/model (HANDED) has changes of mind and faults at any moment of a hand-over
def test_the_controller_goes_to_another_manager_while_the_plane_goes_to_another_site(lab: PlaneLab) -> None:
    lab.run("apply", "-f", declared(lab, owner=KUBE, replicas=3))
    with watched(lab, NAME, "moved"), nodes_come(lab):
        lab.run("apply", "-f", declared(lab, owner=CLOUD, replicas=3, site="west"))
        assert owner_now(lab) == CLOUD
        _is_proven(lab)
    fact = lab.status(NAME, code=0)
    assert fact["site"] == fact["quorumAt"] == fact["nameLeadsTo"] == "west"


@pytest.mark.soak  # tests/unit/test_handover_judgement.py has what is judged
def test_two_managers_that_run_one_controller_under_two_locks_are_found(lab: PlaneLab) -> None:
    """Nobody has said which of them is to: both give Nodes their pod CIDRs, each from its own book."""
    lab.run("apply", "-f", declared(lab, owner="", replicas=1))
    maker = NodeMaker(lab.client(NAME))
    maker.create(60)
    until(lambda: not maker.lacking(), "every Node has a pod CIDR", seconds=60)
    lab.run("apply", "-f", declared(lab, owner=KUBE, replicas=1))
    verified = shown(lab, "verify", NAME, "--since", "5m", code=1)
    (verdict,) = verified["sets"]
    assert verdict["finding"] == "overlap", verified
    assert verdict["overlaps"], verified
    maker.create(20)
    until(lambda: not maker.lacking(), "every Node has a pod CIDR", seconds=60)


#: Steps of a hand-over of three replicas: all of them are stopped and started once or twice.
MOMENTS = (1, 4, 8, 12)


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("strike", STRIKES)
def test_whatever_strikes_while_it_is_handed_over_every_node_gets_one_pod_cidr(lab: PlaneLab, strike: str) -> None:
    lab.run("apply", "-f", declared(lab, owner=KUBE, replicas=3))
    with nodes_come(lab) as nodes:
        for moment in MOMENTS:
            driver = _under_way(lab, moment)
            STRIKES[strike](lab)
            done = driver.end()
            assert done.code == 0, str(done)
            nodes.check()


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_a_holder_that_stands_still_for_longer_than_its_lease_is_stopped_before_that_is_over(lab: PlaneLab) -> None:
    """Also when the hand-over is done, and before the next one."""
    lab.run("apply", "-f", declared(lab, owner=KUBE, replicas=3))
    with managed(lab), nodes_come(lab) as nodes:
        for moment in MOMENTS:
            driver = _under_way(lab, moment)
            holder = until(lambda: guarding(lab), "somebody holds a lock", seconds=60)
            assert holder is not None
            with frozen(pid_of(lab, *holder), seconds=20):
                pass
            done = driver.end()
            assert done.code == 0, str(done)
            nodes.check()


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_what_one_did_that_stood_still_while_nobody_kept_the_plane_is_found(lab: PlaneLab) -> None:
    lab.run("apply", "-f", declared(lab, owner=KUBE, replicas=3))
    holder = until(lambda: guarding(lab), "somebody holds a lock", seconds=60)
    assert holder is not None
    maker = NodeMaker(lab.client(NAME))
    thread = threading.Thread(target=maker.run)
    thread.start()
    try:
        with frozen(pid_of(lab, *holder), seconds=20):
            pass
        until(lambda: not maker.lacking(), "every Node has a pod CIDR", seconds=60)
    finally:
        maker.stop()
        thread.join()
    lab.run("wait", NAME)
    verified = shown(lab, "verify", NAME, "--since", "5m", code=1)
    (verdict,) = verified["sets"]
    assert verdict["finding"] == "overlap", verified


#: The last minor version whose kube-controller-manager can hold a migration lock; the newest one is what has it not.
WITH_LOCKS = "v1.35.4"


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("replicas", [3, 1])
def test_where_both_managers_can_hold_the_set_s_lock_it_goes_over_in_one_pass(lab: PlaneLab, replicas: int) -> None:
    lab.run("apply", "-f", declared(lab, owner=KUBE, replicas=replicas, kubernetes=WITH_LOCKS), deadline=1200)
    until(lambda: held_by(lab, LOCK), "kube-controller-manager has it", seconds=60)
    with watched(lab, NAME, "handed"), nodes_come(lab):
        for owner in (CLOUD, KUBE, CLOUD):
            lab.run(*move(owner))
            holder = held_by(lab, LOCK)
            assert holder is not None
            assert holder[1] == owner
            assert lab.plane(NAME).status.via == ()


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_who_hands_it_over_dies_again_and_again(lab: PlaneLab) -> None:
    lab.run("apply", "-f", declared(lab, owner=KUBE, replicas=3))
    with nodes_come(lab):
        for moment in MOMENTS:
            _under_way(lab, moment).kill()
            lab.run("wait", NAME)


def _under_way(lab: PlaneLab, moment: int) -> Command:
    """A hand-over to the other manager, of which so many steps have begun."""
    wanted, after = CLOUD if owner_now(lab) == KUBE else KUBE, lab.last_entry(NAME)
    driver = lab.start(*move(wanted))
    lab.journal(NAME, lambda seen: started(seen) >= moment, f"step {moment} begins", after=after, during=driver)
    return driver
