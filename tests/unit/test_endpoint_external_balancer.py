"""What is known of a load balancer that can be looked at from outside alone, and what a person is told of it."""

from __future__ import annotations

import random

import pytest
from support.golden import Golden

from quarterdeck.endpoint.balancers.external import ConnectionSample, Nobody, enough, unsure
from quarterdeck.model.edges import EdgeSeen, joined
from quarterdeck.model.endpoints import BackendAddress, BackendsMust, BalancerStatus

THREE = ("r1", "r2", "r3")


def sample(*led: str | Nobody, newest: int | None = None) -> ConnectionSample:
    return ConnectionSample(led=led, newest=len(led) if newest is None else newest)


def test_enough_connections_are_more_the_more_backends_there_may_be() -> None:
    assert [enough(each) for each in (0, 1, 2, 3, 6)] == [1, 1, 20, 35, 76]


@pytest.mark.parametrize("backends", [2, 3, 6])
def test_so_many_connections_at_random_miss_none(backends: int) -> None:
    dice = random.Random(backends)
    for _ in range(2000):
        assert len({dice.randrange(backends) for _ in range(enough(backends))}) == backends


def test_what_too_few_connections_did_not_lead_to_is_unknown() -> None:
    few = sample(*["r1", "r2"] * 10)
    assert unsure(few, THREE, None) == {"r3"}
    assert not unsure(sample(*["r1", "r2"] * 18), THREE, None)


def test_one_that_shows_the_same_client_the_same_backend_says_nothing_of_the_others() -> None:
    one = sample(*["r1"] * 40)
    assert unsure(one, THREE, frozenset(THREE)) == {"r2", "r3"}
    assert unsure(one, THREE, None) == {"r2", "r3"}
    assert not unsure(one, THREE, frozenset({"r1"})), "nobody wants to know"
    assert not unsure(sample("r1"), ("r1",), None)


def test_a_sample_says_what_it_saw(golden: Golden) -> None:
    mixed = sample("r1", Nobody.REFUSED, "r2", Nobody.SILENT, newest=1)
    golden(mixed.describe())
    assert mixed.silent
    assert not mixed.leads
    golden(sample(Nobody.REFUSED).describe())


def test_what_it_may_send_to_has_not_drained_and_is_not_counted_on() -> None:
    status = BalancerStatus(
        running=True, backends=frozenset({"r1"}), healthy=frozenset({"r1"}), unsure=frozenset({"r2"})
    )
    fact = joined("east", [EdgeSeen(name="lb", address="192.0.2.1", status=status)], ["192.0.2.1"])
    assert fact.backends == {"r1", "r2"}
    assert (fact.everywhere, fact.listed) == (frozenset(), {"r1"})
    assert status.without({"r2"}).unsure == frozenset()


def test_a_person_is_told_the_backends_and_how_each_is_checked(golden: Golden) -> None:
    at = (BackendAddress("192.0.2.1", 6443),)
    wanted = (("r1", BackendAddress("192.0.2.9", 6443)),)
    must = BackendsMust(name="demo", at=at, wanted=wanted, check="check it", seen="3 connections led to r2")
    assert must.lines == ("192.0.2.9:6443  r1", "check it")
    golden(str(must))
    nobody = BackendsMust(name="demo", at=at, wanted=(), check="", seen="")
    golden(nobody.wish)
    assert nobody.lines == ()
