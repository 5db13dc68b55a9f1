"""Which edges clients may be led to, and when one is given up, as far as one process has seen them."""

from __future__ import annotations

from dataclasses import replace

from quarterdeck.engine.observation.observe_traffic import PATIENCE, Edges
from quarterdeck.model.edges import EdgeSeen, amiss, joined
from quarterdeck.model.endpoints import BalancerStatus, NameFact

SERVES = BalancerStatus(running=True, backends=frozenset({"a"}), healthy=frozenset({"a"}))
NOWHERE = BalancerStatus(running=True)
BOTH = frozenset({"192.0.2.1", "192.0.2.2"})
ONE = frozenset({"192.0.2.1"})
LIFETIME = 6.0


def look(*statuses: BalancerStatus | None) -> tuple[EdgeSeen, ...]:
    return tuple(
        EdgeSeen(name=f"edge-{number}", address=f"192.0.2.{number}", status=status)
        for number, status in enumerate(statuses, 1)
    )


def test_an_edge_that_is_silent_for_long_is_given_up_while_another_leads_somewhere() -> None:
    edges = Edges()
    assert not edges.judged(look(SERVES, None), BOTH, LIFETIME, 0.0)[1].given_up, "it may have just gone"
    assert not edges.judged(look(SERVES, None), BOTH, LIFETIME, PATIENCE - 0.1)[1].given_up
    assert [each.given_up for each in edges.judged(look(SERVES, None), BOTH, LIFETIME, PATIENCE)] == [False, True]
    assert not edges.judged(look(NOWHERE, None), BOTH, LIFETIME, PATIENCE)[1].given_up, "there is nobody else"
    assert not edges.judged(look(None, None), BOTH, LIFETIME, PATIENCE)[1].given_up
    edges.judged(look(SERVES, SERVES), BOTH, LIFETIME, PATIENCE + 1)
    assert not edges.judged(look(SERVES, None), BOTH, LIFETIME, 2 * PATIENCE)[1].given_up, "counted again"


def test_an_address_may_be_used_until_no_answer_has_had_it_for_as_long_as_clients_may_hold_it() -> None:
    edges = Edges()
    edges.judged(look(SERVES, None), BOTH, LIFETIME, 10.0)
    assert edges.judged(look(SERVES, None), ONE, LIFETIME, 10.0 + LIFETIME - 0.1)[1].may_be_used
    assert not edges.judged(look(SERVES, None), ONE, LIFETIME, 10.0 + LIFETIME)[1].may_be_used
    assert edges.judged(look(SERVES, None), None, LIFETIME, 20.0)[1].may_be_used, "some server may hand it out"
    assert edges.judged(look(SERVES, None), ONE, LIFETIME, 20.0 + LIFETIME - 0.1)[1].may_be_used
    assert not edges.judged(look(SERVES, None), ONE, LIFETIME, 20.0 + LIFETIME)[1].may_be_used


def test_who_comes_new_does_not_know_who_was_led_where_before() -> None:
    edges = Edges()
    assert edges.judged(look(SERVES, None), ONE, LIFETIME, 0.0)[1].may_be_used
    assert not edges.judged(look(SERVES, None), ONE, LIFETIME, LIFETIME)[1].may_be_used


AWAY = replace(SERVES, at_home=False)


def floating(*statuses: BalancerStatus | None) -> tuple[EdgeSeen, ...]:
    return tuple(replace(each, floats=True) for each in look(*statuses))


def may_be_used(edges: Edges, at: float, *statuses: BalancerStatus | None) -> list[bool]:
    return [each.may_be_used for each in edges.judged(floating(*statuses), ONE, LIFETIME, at)]


def test_an_edge_whose_address_is_elsewhere_is_told_everything_and_may_be_named() -> None:
    edges = Edges()
    for at in (0.0, PATIENCE):
        fact = joined("east", edges.judged(floating(SERVES, AWAY), BOTH, LIFETIME, at), [*BOTH])
        assert fact.reachable
        assert not fact.silent
        assert all(each.named for each in fact.edges), "it is served there all the same"


def test_a_silent_edge_may_have_any_address_that_is_not_seen_to_be_with_its_own() -> None:
    edges = Edges()
    assert may_be_used(edges, 0.0, SERVES, None) == [True, True]
    assert may_be_used(edges, LIFETIME, SERVES, None) == [True, False], "whoever is named has its address itself"
    assert may_be_used(edges, LIFETIME, AWAY, None) == [True, True], "the silent one may have taken it"
    assert may_be_used(edges, LIFETIME, None, None) == [True, True]
    fixed = edges.judged(look(AWAY, None), ONE, LIFETIME, LIFETIME)
    assert [each.may_be_used for each in fixed] == [True, False], "none floats"


def sharing(*statuses: BalancerStatus | None) -> tuple[EdgeSeen, ...]:
    """Edges of one address: the first that is at home has it."""
    return tuple(replace(each, address="192.0.2.1") for each in floating(*statuses))


def test_of_edges_that_share_an_address_one_that_is_silent_stands_by_while_another_is_seen_to_have_it() -> None:
    edges = Edges()
    judged = edges.judged(sharing(SERVES, None), ONE, LIFETIME, 0.0)
    assert [each.may_be_used for each in judged] == [True, False]
    assert joined("east", judged, ["192.0.2.1"]).reachable, "changes need not wait for it"
    judged = edges.judged(sharing(AWAY, SERVES, None), ONE, LIFETIME, 0.0)
    assert [each.may_be_used for each in judged] == [False, True, False]
    judged = edges.judged(sharing(AWAY, None), ONE, LIFETIME, 0.0)
    assert [each.may_be_used for each in judged] == [True, True], "the silent one may have it"
    assert not joined("east", judged, ["192.0.2.1"]).reachable


def test_an_address_that_another_edge_is_seen_to_have_is_not_with_the_silent_one_whose_it_is() -> None:
    dead, both = floating(None, SERVES)
    other = replace(both, has=ONE)
    edges = Edges()
    assert [each.may_be_used for each in edges.judged((dead, both), BOTH, LIFETIME, 0.0)] == [True, True]
    judged = edges.judged((dead, other), BOTH, LIFETIME, 0.0)
    assert [each.may_be_used for each in judged] == [False, True]
    assert joined("east", judged, [*BOTH]).reachable, "changes need not wait for it"
    edges.judged((dead, other), frozenset(), LIFETIME, LIFETIME)
    assert [each.may_be_used for each in edges.judged((dead, other), ONE, LIFETIME, LIFETIME)] == [False, True]


def test_a_shared_address_stays_in_the_name_when_one_edge_of_it_is_given_up() -> None:
    edges = Edges()
    edges.judged(sharing(SERVES, None), ONE, LIFETIME, 0.0)
    judged = edges.judged(sharing(SERVES, None), ONE, LIFETIME, PATIENCE)
    assert [each.given_up for each in judged] == [False, True], "each is counted by itself"
    name = NameFact(site="east", addresses=("192.0.2.1",), handed_out=ONE)
    assert not amiss(name, judged, joined("east", judged, ["192.0.2.1"]))
