"""No class of faults is in the searches for nothing: of each there is a planner with one thing wrong that passes while
nothing fails, and that a search with faults of this class alone catches, while they last.

No other class of faults catches it, but for those that leave the same behind (``Case.also``): to a driver they are one.
``python -m model.matrix`` shows that of every case.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest
from support.tiers import first_of_each

from model import narrow_mutations
from model.invariants import Broken
from model.kinds import Kind
from model.searches import Search
from model.walk import State
from quarterdeck.planner import planner


@dataclass(frozen=True)
class Case:
    """``breaks``: the number of the claim that then does not hold; ``also``: the other classes that catch it."""

    kind: Kind
    apply: Callable[[pytest.MonkeyPatch], None]
    breaks: int
    replicas: int = 1
    to: int = 1
    also: frozenset[Kind] = frozenset()

    def search(self, kinds: frozenset[Kind]) -> Search:
        """A search in which one fault of these classes happens, and lasts."""
        return Search(replicas=self.replicas, to=self.to, faults=1, data_loss=True, kinds=kinds, mended=False)

    def start(self, kinds: frozenset[Kind]) -> State:
        """Where it starts, as the planner as it is leads there."""
        return self.search(kinds).start()

    def __str__(self) -> str:
        return f"{self.kind.name}: {self.apply.__name__}"


#: To a planner two cuts differ in nothing but how soon the members notice.
CUTS = frozenset({Kind.CUT, Kind.CUT_ONE_WAY})
#: Loss of all data of one member.
LOSSES = frozenset({Kind.DATA_LOST, Kind.BLANK})
#: A leader that falls silent leads no more.
SILENT = frozenset({Kind.MACHINE_DIES, Kind.MACHINE_FREEZES, Kind.CRASH, Kind.STOPPED})
#: What has a change of the swap refused breaks it off as well.
REFUSES = LOSSES | SILENT | {Kind.LATE}

CASES = (
    Case(Kind.MACHINE_DIES, narrow_mutations.members_of_dead_machines_are_waited_for, 10),
    Case(Kind.MACHINE_FREEZES, narrow_mutations.members_of_machines_that_say_nothing_are_waited_for, 10),
    Case(Kind.CRASH, narrow_mutations.failed_controllers_stand_by, 11),
    Case(Kind.STOPPED, narrow_mutations.stopped_members_stay_stopped, 10, also=frozenset({Kind.LATE})),
    Case(Kind.CUT, narrow_mutations.the_name_never_goes_back, 5, replicas=3, to=1, also=CUTS - {Kind.CUT}),
    Case(
        Kind.CUT_ONE_WAY, narrow_mutations.the_name_never_goes_back, 5, replicas=3, to=1, also=CUTS - {Kind.CUT_ONE_WAY}
    ),
    Case(Kind.SITE_DIES, narrow_mutations.members_of_dead_sites_are_waited_for, 10),
    Case(Kind.EDGE_DIES, narrow_mutations.no_load_balancer_may_be_missing, 10),
    Case(Kind.UNSEEN_SUPERVISOR, narrow_mutations.machines_that_do_not_answer_are_down, 8),
    Case(Kind.UNSEEN_MEMBER, narrow_mutations.members_that_do_not_answer_are_down, 3, replicas=3, to=3),
    Case(Kind.UNSEEN_APISERVER, narrow_mutations.an_apiserver_that_does_not_answer_is_off, 5),
    Case(Kind.UNSEEN_MACHINE, narrow_mutations.machines_of_which_nothing_answers_are_down, 8),
    Case(Kind.UNSEEN_EDGE, narrow_mutations.balancers_that_do_not_answer_are_forgotten, 6),
    Case(Kind.UNSEEN_SITE, narrow_mutations.sites_of_which_nothing_answers_are_down, 8),
    Case(Kind.UNSEEN_DNS, narrow_mutations.an_unread_record_leads_where_it_did, 8),
    Case(Kind.UNREAD, narrow_mutations.unread_memberships_are_empty, 8, also=frozenset({Kind.UNSEEN_MEMBER})),
    Case(Kind.LEADER_MOVES, narrow_mutations.only_the_first_member_hands_over, 10, replicas=3, to=3, also=SILENT),
    Case(Kind.VOTER_LAGS, narrow_mutations.voters_that_lag_are_counted_on, 1),
    Case(Kind.SNAPSHOT, narrow_mutations.who_has_published_serves, 2),
    Case(Kind.CHECK_ERRS, narrow_mutations.a_load_balancer_that_finds_nobody_goes, 5, also=LOSSES),
    Case(Kind.DATA_LOST, narrow_mutations.lost_data_is_not_missed_where_etcd_has_failed, 10),
    Case(Kind.BLANK, narrow_mutations.lost_data_is_not_missed_where_nothing_runs, 9),
    Case(Kind.SOME_STEPS, narrow_mutations.names_are_counted, 7, replicas=3, to=3, also=LOSSES | {Kind.REFUSED}),
    Case(Kind.REFUSED, narrow_mutations.steps_that_fail_hold_up_all_others, 10),
    Case(Kind.SWAP_BROKEN_OFF, narrow_mutations.a_swap_is_not_finished, 10, also=REFUSES),
    Case(Kind.REPLY_LOST, narrow_mutations.no_address_may_be_remembered, 10, also=frozenset({Kind.LATE})),
    Case(Kind.LATE, narrow_mutations.strays_stay, 10, also=frozenset({Kind.LEARNER_ADDED})),
    Case(Kind.LEARNER_ADDED, narrow_mutations.strays_stay, 10, also=frozenset({Kind.LATE})),
    Case(Kind.VOTER_ADDED, narrow_mutations.voters_of_no_replica_are_overlooked, 1),
    Case(Kind.VOTER_RUNS, narrow_mutations.strangers_that_are_heard_of_are_counted_on, 3, replicas=3, to=3),
    Case(Kind.URLS_SWAPPED, narrow_mutations.who_displaces_each_other_waits, 20, replicas=1, to=3),
    Case(Kind.URL_TAKEN, narrow_mutations.who_is_displaced_gives_its_peer_url_up, 10),
    Case(Kind.AUTHENTICATES, narrow_mutations.authentication_is_no_matter, 15),
    Case(Kind.ALARMS, narrow_mutations.corrupt_is_no_matter, 15),
    Case(Kind.EDGE_LOOPS, narrow_mutations.what_does_not_run_is_not_there, 10),
    Case(Kind.MEMBER_UPDATED, narrow_mutations.members_stay_where_others_look_for_them, 20),
    Case(Kind.MEMBER_REMOVED, narrow_mutations.who_was_removed_may_join_again, 9, also=frozenset({Kind.FULL})),
    Case(Kind.TAKEOVER, narrow_mutations.a_record_is_stamped_beside_other_steps, 10),
    Case(Kind.SLOW, narrow_mutations.draining_counts_from_the_decision, 6, also=frozenset({Kind.REFUSED})),
    Case(
        Kind.OLD_LOOK, narrow_mutations.joiners_are_started_by_a_restart, 1, also=frozenset({Kind.BLANK, Kind.REFUSED})
    ),
    Case(Kind.FULL, narrow_mutations.room_is_never_made, 10),
    Case(Kind.DIFFERS, narrow_mutations.other_data_is_kept, 16, replicas=3, to=3),
    Case(Kind.MIXED_LOOK, narrow_mutations.who_is_heard_of_and_called_stopped_is_stopped, 1),
)


@pytest.mark.parametrize("case", first_of_each(CASES, lambda each: each.breaks), ids=str)
def test_what_a_class_of_faults_alone_brings_to_light(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = frozenset({case.kind})
    start = case.start(kinds)
    case.apply(monkeypatch)
    case.search(kinds).explorer(planner.plan).explore(replace(start, faults=0))
    with pytest.raises(Broken) as caught:
        case.search(kinds).explorer(planner.plan).explore(start)
    assert caught.value.number == case.breaks, str(caught.value)
