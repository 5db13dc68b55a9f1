"""No class of faults is in the searches for nothing: of each there is a planner with one thing wrong that passes while
nothing fails, and that a search with faults of this class alone catches.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from model import narrow
from model.faults import Kind
from model.invariants import Broken
from model.searches import Search
from quarterdeck.planner import planner


@dataclass(frozen=True)
class Case:
    """``breaks``: the number of the claim that then does not hold."""

    kind: Kind
    apply: Callable[[pytest.MonkeyPatch], None]
    breaks: int
    replicas: int = 1
    to: int = 1

    def __str__(self) -> str:
        return f"{self.kind.name}: {self.apply.__name__}"


CASES = (
    Case(Kind.MACHINE_DIES, narrow.the_dead_are_waited_for, 10),
    Case(Kind.MACHINE_FREEZES, narrow.suspects_are_down, 8),
    Case(Kind.CRASH, narrow.failed_controllers_stand_by, 11),
    Case(Kind.STOPPED, narrow.stopped_members_stay_stopped, 10),
    Case(Kind.SITE_DIES, narrow.the_dead_are_waited_for, 10),
    Case(Kind.EDGE_DIES, narrow.no_load_balancer_may_be_missing, 10),
    Case(Kind.UNSEEN_SUPERVISOR, narrow.unreachable_machines_are_down, 8),
    Case(Kind.UNSEEN_MEMBER, narrow.unreachable_members_are_down, 3, replicas=3, to=3),
    Case(Kind.UNSEEN_APISERVER, narrow.an_apiserver_that_does_not_answer_is_off, 5),
    Case(Kind.UNSEEN_MACHINE, narrow.unreachable_members_are_down, 8),
    Case(Kind.UNSEEN_EDGE, narrow.balancers_that_do_not_answer_are_forgotten, 6),
    Case(Kind.UNSEEN_SITE, narrow.unreachable_members_are_down, 8),
    Case(Kind.UNSEEN_DNS, narrow.an_unread_record_leads_where_it_did, 8),
    Case(Kind.UNREAD, narrow.unread_memberships_are_empty, 8),
    Case(Kind.LEADER_MOVES, narrow.only_the_first_member_hands_over, 10, replicas=3, to=3),
    Case(Kind.VOTER_LAGS, narrow.voters_that_lag_are_counted_on, 1),
    Case(Kind.SNAPSHOT, narrow.who_has_published_serves, 2),
    Case(Kind.CHECK_ERRS, narrow.a_load_balancer_that_finds_nobody_goes, 5),
    Case(Kind.DATA_LOST, narrow.lost_data_is_not_missed, 10),
    Case(Kind.BLANK, narrow.lost_data_is_not_missed, 9),
    Case(Kind.SOME_STEPS, narrow.names_are_counted, 7, replicas=3, to=3),
    Case(Kind.SWAP_BROKEN_OFF, narrow.a_swap_is_not_finished, 10),
    Case(Kind.REPLY_LOST, narrow.only_replicas_with_data_are_released, 10),
    Case(Kind.LATE, narrow.strays_stay, 10),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_a_class_of_faults_alone_brings_to_light(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    search = Search(replicas=case.replicas, to=case.to, faults=1, data_loss=True, kinds=frozenset({case.kind}))
    start = search.start()
    case.apply(monkeypatch)
    search.explorer(planner.plan).explore(replace(start, faults=0))
    with pytest.raises(Broken) as caught:
        search.explorer(planner.plan).explore(start)
    assert caught.value.number == case.breaks, str(caught.value)
