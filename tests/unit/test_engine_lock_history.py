"""What a history of locks is made of: each tenure once, and nothing that nobody saw."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from quarterdeck.engine.controller_sets.lock_history import Left, Taken, Tenures
from quarterdeck.handover.tenures import LEFT, TAKEN
from quarterdeck.kube.port import SeenLease
from quarterdeck.stores.port import JournalEntry

LOCK = "migration"


def lease(holder: str, token: int, renewed: float = 100.0, **changes: Any) -> SeenLease:
    known = SeenLease(
        name=LOCK,
        holder=holder,
        renewed=renewed,
        duration=15.0,
        resource_version="1",
        acquired=90.0,
        transitions=token,
    )
    return replace(known, **changes)


def entry(kind: str, token: int, number: int, holder: str = "a") -> JournalEntry:
    detail = {"lock": LOCK, "holder": holder, "token": token}
    return JournalEntry(plane="demo", time=1.0, kind=kind, text="", detail=detail, id=number)


def test_a_tenure_begins_once_however_often_it_is_renewed_and_ends_with_its_last_renewal() -> None:
    known = Tenures()
    assert known.see(lease("a", 4)) == (Taken(lease("a", 4)),)
    assert known.see(lease("a", 4, 102.0)) == ()
    assert known.see(lease("b", 5, 120.0)) == (Left(lease("a", 4, 102.0), False), Taken(lease("b", 5, 120.0)))


def test_a_holder_that_lets_go_is_told_of_and_nobody_takes_it_until_somebody_does() -> None:
    known = Tenures()
    known.see(lease("a", 4))
    assert known.see(lease("", 4, 101.0, duration=1.0)) == (Left(lease("a", 4, 101.0), True),)
    assert known.see(lease("", 4, 101.0, duration=1.0)) == ()
    assert known.see(lease("a", 5)) == (Taken(lease("a", 5)),)


def test_what_an_emptied_lease_does_not_say_about_renewals_is_what_was_seen_before() -> None:
    known = Tenures()
    known.see(lease("a", 4, 105.0))
    (left,) = known.see(lease("", 4, renewed=None))
    assert left.detail == {
        "lock": LOCK,
        "holder": "a",
        "token": 4,
        "renewed": 105.0,
        "duration": 15.0,
        "released": True,
    }


def test_tenures_that_nobody_saw_are_counted_and_not_made_up() -> None:
    known = Tenures()
    known.see(lease("a", 4))
    left, taken = known.see(lease("d", 7))
    assert left == Left(lease("a", 4), False)
    assert taken == Taken(lease("d", 7), missed=2)
    assert taken.detail["missed"] == 2
    assert "missed" not in Taken(lease("a", 4)).detail


def test_tenures_between_an_end_that_was_seen_late_and_the_next_holder_are_counted_too() -> None:
    known = Tenures()
    known.see(lease("a", 4))
    assert known.see(lease("", 6)) == (Left(lease("a", 4), False),)
    assert known.see(lease("d", 7)) == (Taken(lease("d", 7), missed=2),)


def test_of_a_lock_that_nobody_ever_watched_nothing_is_missed() -> None:
    assert Tenures().see(lease("a", 40)) == (Taken(lease("a", 40), missed=0),)
    assert Tenures().see(lease("", 40)) == ()


@pytest.mark.parametrize("token", [0, 4, 5])
def test_the_deletion_of_a_lease_ends_its_tenure(token: int) -> None:
    """client-go counts from 0 then, and who knew it before goes on."""
    known = Tenures()
    known.see(lease("a", 4))
    assert known.see(lease("a", 4, deleted=True)) == (Left(lease("a", 4), False),)
    assert known.see(lease("b", token)) == (Taken(lease("b", token), missed=0),)
    assert known.see(lease("c", token + 1)) == (Left(lease("b", token), False), Taken(lease("c", token + 1)))


@pytest.mark.parametrize(
    ("entries", "seen", "transitions"),
    [
        pytest.param([(TAKEN, 4)], lease("a", 4), (), id="it goes on"),
        pytest.param([(TAKEN, 4)], lease("", 4), (Left(lease("a", 4), True),), id="it was let go"),
        pytest.param([(TAKEN, 4)], lease("b", 5), (Taken(lease("b", 5)),), id="how it ended nobody saw"),
        pytest.param([(TAKEN, 4)], lease("", 6), (), id="nor this one"),
        pytest.param([(TAKEN, 4)], lease("b", 7), (Taken(lease("b", 7), 2),), id="others had it meanwhile"),
        pytest.param([(TAKEN, 4), (LEFT, 4)], lease("", 4), (), id="that was told"),
        pytest.param([(TAKEN, 4), (LEFT, 4)], lease("a", 5), (Taken(lease("a", 5)),), id="the next one"),
        pytest.param([(TAKEN, 4)], lease("a", 0), (Taken(lease("a", 0)),), id="somebody made it again"),
        pytest.param([(TAKEN, 4)], lease("a", 4, deleted=True), (), id="somebody deleted it"),
    ],
)
def test_who_begins_to_watch_goes_on_from_the_journal(
    entries: list[tuple[str, int]], seen: SeenLease, transitions: tuple[Taken | Left, ...]
) -> None:
    known = Tenures.of(entry(kind, token, number) for number, (kind, token) in enumerate(entries, 1))
    assert known.see(seen) == transitions
    assert known.see(seen) == (), "and not twice"


def test_entries_are_read_in_the_order_in_which_they_were_written() -> None:
    known = Tenures.of([entry(LEFT, 4, 2), entry(TAKEN, 5, 3, "b"), entry(TAKEN, 4, 1)])
    assert known.see(lease("b", 5)) == ()


def test_a_tenure_of_which_nobody_found_out_whose_it_is_is_told_of_once_more() -> None:
    unknown = entry(TAKEN, 4, 1)
    unknown = replace(unknown, detail={**unknown.detail, "component": "", "replica": ""})
    known = Tenures.of([unknown])
    assert known.see(lease("a", 4)) == (Taken(lease("a", 4)),)
    assert known.see(lease("a", 4, 102.0)) == ()
