"""What the rules make of an observation: who counts, who is in doubt, which site holds the quorum, and where to go."""

from __future__ import annotations

from dataclasses import replace

import pytest
from model.observations import Seen, learner, seen, viewed
from model.stories import led_by, with_membership, with_memory
from model.worlds import wanted

from quarterdeck.model.membership import Health
from quarterdeck.model.seats import Slot
from quarterdeck.model.units import MachineState, UnitState
from quarterdeck.planner.slots import lent
from quarterdeck.planner.view import View, view

DOWN = MachineState.DOWN
CUT_OFF = MachineState.UNREACHABLE
ABSENT, STOPPED, FAILED = UnitState.ABSENT, UnitState.STOPPED, UnitState.FAILED


def east(count: int = 3) -> tuple[Seen, ...]:
    return tuple(Seen(f"east-{index}") for index in range(1, count + 1))


def alone(one: Seen) -> View:
    return viewed(one, to="east", count=1)


def names(view: View) -> list[str]:
    return [record.name for record in view.wanted]


# --- who counts -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "counts"),
    [
        (Seen("east-1"), True),
        (Seen("east-1", member=False), False),
        (Seen("east-1", learner=True), False),
        *((Seen("east-1", health=health), False) for health in Health if health is not Health.HEALTHY),
    ],
)
def test_for_a_quorum_counts_who_is_a_voter_and_healthy(one: Seen, counts: bool) -> None:
    assert alone(one).is_healthy_voter(one.record) is counts


@pytest.mark.parametrize(
    ("one", "off"),
    [
        *((Seen("east-1", apiserver=state), state in (ABSENT, STOPPED)) for state in UnitState),
        (Seen("east-1", machine=DOWN), True),
        (Seen("east-1", machine=DOWN, member=False), True),
        (Seen("east-1", machine=CUT_OFF), False),
        (Seen("east-1", machine=CUT_OFF, member=False), False),
        (Seen("east-1", machine=CUT_OFF, health=Health.UNREACHABLE), False),
        (Seen("east-1", machine=CUT_OFF, health=Health.SUSPECT), False),
        (Seen("east-1", machine=CUT_OFF, health=Health.DOWN), True),
        (Seen("east-1", health=Health.DOWN), False),
    ],
)
def test_an_apiserver_is_off_only_when_somebody_who_can_know_says_so(one: Seen, off: bool) -> None:
    """Its machine, if that answers; who switched the machine off; or the cluster. That we see nothing says nothing."""
    assert alone(one).apiserver_off(one.record) is off
    assert alone(one).serves_nobody(one.record) is off, "any other one may serve clients"


@pytest.mark.parametrize(("lag", "has"), [(None, False), (0, True), (1_000, True), (1_001, False)])
def test_a_member_has_the_data_when_its_lag_is_known_and_within_the_bound(lag: int | None, has: bool) -> None:
    one = Seen("east-1", lag=lag)
    assert alone(one).has_the_data(one.record) is has
    assert alone(one).caught_up(one.record) is has
    assert not alone(replace(one, health=Health.SUSPECT)).caught_up(one.record)


def test_who_is_no_member_has_no_data_to_be_counted_on() -> None:
    one = Seen("east-1", member=False)
    assert not alone(one).has_the_data(one.record)
    assert not alone(one).caught_up(one.record)


@pytest.mark.parametrize(
    ("changed", "counts"),
    [
        (Seen("east-3"), True),
        (Seen("east-3", lag=1_001), False),
        (Seen("east-3", lag=None), False),
        (Seen("east-3", health=Health.SUSPECT), False),
    ],
)
def test_no_quorum_hangs_on_who_lags_nor_on_who_is_not_healthy(changed: Seen, counts: bool) -> None:
    """The leader may know that a member has the data which does not answer."""
    up_to_date = viewed(*east(2), changed, to="east", count=3).up_to_date
    assert {voter.replica for voter in up_to_date if voter.healthy} == {"east-1", "east-2", *(["east-3"] * counts)}


def test_the_dead_and_the_lost_need_no_farewell() -> None:
    west = (
        Seen("west-1", health=Health.DOWN),
        Seen("west-2", has_data=False),
        Seen("west-3", health=Health.UNREACHABLE, machine=CUT_OFF),
        Seen("west-4"),
        Seen("west-5", member=False, listed=False),
    )
    dead_but_wanted = Seen("east-3", health=Health.DOWN)
    assert viewed(*east(2), dead_but_wanted, *west, to="east", count=3).gone == {"west-1", "west-2"}


def test_a_fixed_address_is_the_door_wherever_the_plane_goes() -> None:
    world = seen(*east(), to="west", count=3)
    assert view(world).door == "west"
    assert view(replace(world, front="east")).door == "east"


@pytest.mark.parametrize(
    ("one", "lost"),
    [
        (Seen("east-1"), False),
        (Seen("east-1", member=False), True),
        (Seen("east-1", member=False, listed=False), False),
        (Seen("east-1", has_data=False), True),
        (Seen("east-1", has_data=None), False),
        (Seen("east-1", has_data=False, started=False), False),
    ],
)
def test_a_replica_is_lost_when_it_was_removed_or_its_data_is_seen_to_be_gone(one: Seen, lost: bool) -> None:
    world = seen(one, to="east", count=1)
    assert view(world).lost == ({"east-1"} if lost else set())
    assert not view(replace(world, membership=None)).lost, "as long as nobody knows who is a member, nobody is lost"
    assert names(view(world)) == ([] if lost else ["east-1"])


# --- who is in doubt ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("health", "doubtful"),
    [(Health.HEALTHY, ()), (Health.SUSPECT, ("west-1",)), (Health.UNREACHABLE, ("west-1",)), (Health.DOWN, ())],
)
def test_in_doubt_is_a_voter_that_is_neither_well_nor_known_to_be_down(
    health: Health, doubtful: tuple[str, ...]
) -> None:
    voter = Seen("west-1", health=health)
    assert viewed(*east(), voter, to="east", count=3).doubtful == doubtful
    assert viewed(*east(), replace(voter, learner=True), to="east", count=3).doubtful == ()


@pytest.mark.parametrize(
    ("health", "quorum_site", "likely"),
    [
        (Health.HEALTHY, "west", "west"),
        (Health.SUSPECT, None, "west"),
        (Health.UNREACHABLE, None, "west"),
        (Health.DOWN, None, None),
    ],
)
def test_a_site_may_hold_the_quorum_although_we_do_not_see_it(
    health: Health, quorum_site: str | None, likely: str | None
) -> None:
    """But not with members that are down: then a swap was broken off, and is to be finished."""
    west = (Seen("west-1"), Seen("west-2"), Seen("west-3", health=health))
    now = viewed(*east(2), *west, to="west", count=3)
    assert (now.quorum_site, now.likely_quorum_site) == (quorum_site, likely)


# --- who carries the traffic ----------------------------------------------------------------------------------------


def coming(*, ready: bool | None = True, learner: bool = True) -> tuple[Seen, ...]:
    """Three of five voters at east: another promotion would leave no site with a quorum."""
    west = (Seen("west-1", ready=ready), Seen("west-2"), Seen("west-3", learner=learner, ready=None))
    return (*east(), *west)


def test_wanted_replicas_carry_the_traffic_when_all_that_can_vote_before_the_swap_do() -> None:
    assert viewed(*coming(), to="west", count=3).takeover


@pytest.mark.parametrize("ready", [False, None])
def test_every_one_of_them_is_to_be_ready(ready: bool | None) -> None:
    assert not viewed(*coming(ready=ready), to="west", count=3).takeover


def test_there_must_be_one_that_can_serve() -> None:
    west = (learner("west-1"), learner("west-2"), learner("west-3"))
    assert not viewed(Seen("east-1"), *west, to="west", count=3).takeover


def test_a_slot_that_nobody_fills_is_waited_for() -> None:
    assert not viewed(*coming(), to="west", count=4).takeover


def test_who_was_placed_and_is_no_member_yet_is_waited_for() -> None:
    absent = Seen("west-4", member=False, listed=False, started=False)
    assert not viewed(*coming(), absent, to="west", count=4).takeover


def test_a_learner_is_waited_for_as_long_as_it_can_become_a_voter_before_the_swap() -> None:
    west = (Seen("west-1"), Seen("west-2", learner=True, ready=None))
    assert not viewed(*east(), *west, to="west", count=2).takeover


def test_amid_a_swap_no_learner_is_waited_for() -> None:
    """No site holds a quorum, so nobody is promoted but by the swap."""
    dead = Seen("east-3", health=Health.DOWN, machine=DOWN)
    now = viewed(*east(2), dead, *coming()[3:], to="west", count=3)
    assert now.quorum_site is None
    assert now.takeover


def test_a_promotion_keeps_the_quorum_site_when_the_same_site_holds_the_quorum_after_it() -> None:
    few, many = (*coming()[:4], learner("west-2")), coming()
    for replicas, keeps in ((few, True), (many, False), ((Seen("east-1"), learner("east-2")), True)):
        assert viewed(*replicas, to="west", count=3).keeps_quorum_site(replicas[-1].record) is keeps


# --- where to go ----------------------------------------------------------------------------------------------------


def test_a_plane_whose_membership_is_not_known_goes_where_it_is_wanted() -> None:
    now = view(replace(seen(*coming(), to="west", count=3), membership=None))
    assert (now.quorum_site, now.heading, names(now)) == (None, "west", ["west-1", "west-2", "west-3"])
    assert [record.name for record in now.unwanted] == ["east-1", "east-2", "east-3"]
    one = view(replace(seen(*east(1), Seen("west-1"), to="west", count=1), membership=None))
    assert not one.missing, "nothing is lent before it is known who is a member"


@pytest.mark.parametrize(
    ("west", "heading"),
    [
        ((Seen("west-1", health=Health.DOWN), Seen("west-2", health=Health.DOWN)), "east"),
        ((Seen("west-1", health=Health.DOWN), Seen("west-2", health=Health.UNREACHABLE)), "west"),
        ((Seen("west-1", health=Health.DOWN), Seen("west-2")), "west"),
        ((Seen("west-1"), Seen("west-2")), "west"),
        ((), "west"),
        ((Seen("west-1", health=Health.DOWN), Seen("west-2", member=False)), "east"),
        ((Seen("west-1", member=False), Seen("west-2", member=False)), "west"),
        ((Seen("west-1", health=Health.DOWN, learner=True),), "east"),
        ((Seen("west-1", health=Health.DOWN, learner=True, started=False),), "west"),
        ((Seen("west-1", health=Health.DOWN), Seen("west-2", learner=True, started=False)), "east"),
    ],
)
def test_a_plane_goes_back_when_all_that_it_had_at_its_goal_are_down(west: tuple[Seen, ...], heading: str) -> None:
    """Those that are just joining have not been well yet, and say nothing of the site."""
    assert viewed(*east(), *west, to="west", count=3).heading == heading


def test_on_its_way_back_a_plane_wants_the_members_that_it_has_there() -> None:
    there = (
        *east(),
        Seen("east-4", has_data=False),
        Seen("east-5", member=False, listed=False),
        Seen("west-1", health=Health.DOWN),
        Seen("north-1"),
    )
    now = viewed(*there, to="west", count=3)
    assert (now.heading, names(now), now.missing) == ("east", ["east-1", "east-2", "east-3"], ())
    assert {record.name for record in now.unwanted} == {"east-4", "east-5", "west-1", "north-1"}


def test_where_two_other_sites_have_voters_the_plane_goes_back_to_the_one_that_holds_the_quorum() -> None:
    assert viewed(*east(), Seen("west-1"), to="north", count=3).heading == "east"
    assert viewed(*east(), to="north", count=3).heading == "north"
    assert viewed(*east(), Seen("north-1"), to="north", count=3).heading == "north"
    assert viewed(Seen("east-1"), *(Seen(f"west-{each}") for each in (1, 2, 3)), to="north", count=3).heading == "west"


def test_a_plane_that_is_where_it_is_wanted_goes_nowhere_whoever_votes_elsewhere() -> None:
    now = viewed(*east(), Seen("west-1"), Seen("north-1"), to="east", count=4)
    assert now.heading == "east"
    assert len(now.missing) == 1, "it is filled up like any other"


def test_where_three_other_sites_have_voters_too() -> None:
    assert viewed(*east(4), Seen("west-1"), Seen("south-1"), to="north", count=3).heading == "east"


def down(name: str) -> Seen:
    return Seen(name, health=Health.DOWN, machine=DOWN)


@pytest.mark.parametrize(
    ("replicas", "served", "heading"),
    [
        # the one with the most healthy voters
        ((*east(2), down("east-3"), Seen("west-1"), Seen("west-2"), Seen("west-3")), "east", "west"),
        ((*east(3), Seen("west-1"), Seen("west-2"), down("west-3")), "west", "east"),
        # then the one that the name led to
        ((*east(2), Seen("west-1"), Seen("west-2")), "east", "east"),
        ((*east(2), Seen("west-1"), Seen("west-2")), "west", "west"),
        # then any
        ((*east(2), Seen("west-1"), Seen("west-2")), "north", "east"),
        # but never the goal by this rule, and never one with nobody who is well
        ((*east(2), Seen("west-1"), Seen("north-1"), Seen("north-2"), Seen("north-3")), "north", "east"),
        ((down("east-1"), down("east-2"), down("west-1"), Seen("north-1")), "east", "north"),
        # even when the goal is down
        ((*east(2), Seen("west-1"), Seen("west-2"), down("north-1")), "west", "west"),
    ],
)
def test_where_none_of_two_other_sites_holds_the_quorum_the_stronger_one_is_to(
    replicas: tuple[Seen, ...], served: str, heading: str
) -> None:
    world = seen(*replicas, to="north", count=3)
    now = view(with_memory(world, served_site=served))
    assert now.quorum_site is None
    assert now.heading == heading


# --- what is lent ---------------------------------------------------------------------------------------------------

LENT = lent("west")
BEGUN = Seen("west-2")


def lends(*replicas: Seen, count: int = 1) -> bool:
    now = viewed(*replicas, to="west", count=count)
    there = [record for record in now.wanted if record.site == "west"]
    return LENT in now.missing or len(there) > count


def test_what_is_lent_is_a_second_place_at_the_target_in_any_zone() -> None:
    assert Slot(site="west", zone="") == LENT


def test_a_second_replica_is_lent_to_a_move_from_one_to_one() -> None:
    assert lends(Seen("east-1"))
    assert lends(Seen("east-1"), Seen("west-1", learner=True), BEGUN)


def test_none_is_lent_where_it_helps_nobody() -> None:
    assert not lends(*east()), "the source has voters enough to hold a quorum while the target's one joins"
    assert not lends(Seen("east-1"), count=3), "the target's own hold a quorum"
    assert not lends(Seen("east-1"), count=2)
    assert not lends(Seen("west-1")), "the plane is there"


def test_what_was_lent_stays_until_the_last_voter_elsewhere_is_gone() -> None:
    """Amid the swap, too: no site holds a quorum then."""
    assert lends(Seen("east-1"), Seen("west-1"), replace(BEGUN, learner=True))
    assert not lends(Seen("east-1"), Seen("west-1"), Seen("west-2"), BEGUN), "the target holds the quorum"


def test_nothing_is_lent_again_amid_a_swap() -> None:
    assert not lends(Seen("east-1"), Seen("west-1"))
    elsewhere = Seen("east-2", learner=True)
    assert not lends(Seen("east-1"), Seen("west-1"), elsewhere), "what was lent to a move to another site is none"


def test_nobody_is_exchanged_at_the_target_before_the_plane_is_there() -> None:
    world = seen(*east(), Seen("west-1"), Seen("west-2"), to="west", count=2)
    spare = replace(world.machines[-1], name="west-a2", zone="a")
    world = replace(world, slots=(Slot(site="west", zone="a"),) * 2, machines=(*world.machines, spare))
    assert (names(view(world)), view(world).missing) == (["west-1", "west-2"], ())


# --- who fills which slot -------------------------------------------------------------------------------------------


def zones(now: View) -> list[str]:
    return [slot.zone for slot in now.missing]


def test_the_slots_of_other_zones_are_left_by_a_replica_that_fills_one() -> None:
    """At the target of a move, where nobody stands in for what is to be placed."""
    now = viewed(Seen("east-1"), BEGUN, to="west", count=5)
    assert (names(now), zones(now)) == (["west-2"], ["a", "c", "a", "b"])


@pytest.mark.parametrize(
    ("worse", "why"),
    [
        (Seen("east-1", learner=True), "it only listens"),
        (Seen("east-1", health=Health.DOWN), "it is down"),
        (Seen("east-1", machine=MachineState.DOWN), "its machine is off"),
        (Seen("east-1", apiserver=UnitState.STOPPED, ready=False), "it is on its way out"),
        (Seen("east-1"), "the other one leads"),
    ],
)
def test_of_two_that_fit_the_one_stays_that_is_better(worse: Seen, why: str) -> None:
    better = Seen("east-4", slot=wanted("east", 1)[0])
    leader = "east-4" if why == "the other one leads" else "east-1"
    world = led_by(seen(worse, better, to="east", count=1), leader)
    assert names(view(world)) == ["east-4"], why


def test_of_two_that_fit_the_one_stays_that_is_not_draining_or_that_is_cordoned_or_has_the_revision() -> None:
    world = led_by(seen(Seen("east-1"), Seen("east-4", slot=wanted("east", 1)[0]), to="east", count=1), "east-1")
    assert names(view(world)) == ["east-1"]
    assert names(view(with_memory(world, draining=(("east-1", 0.0),)))) == ["east-4"]
    assert names(view(replace(world, cordoned=("east-4",)))) == ["east-4"]
    former = replace(world, memory=world.memory.with_replica("east-1", lambda each: replace(each, revision="former")))
    assert names(view(former)) == ["east-4"]


def test_of_two_that_are_equal_the_older_one_stays() -> None:
    first, second = Seen("east-1"), Seen("east-4", slot=wanted("east", 1)[0])
    world = seen(first, second, to="east", count=1)
    assert names(view(with_membership(world, leader=None))) == ["east-1"]
