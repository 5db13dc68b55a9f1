"""From what watchers of locks wrote down to who held which when."""

from __future__ import annotations

from pydantic import JsonValue
from support.lock_histories import ZERO

from quarterdeck.handover.tenures import LEFT, TAKEN, UnwatchedSpan, tenures_of, unwatched
from quarterdeck.stores.port import JournalEntry

LOCK = "ipam-migration"


def taken(at: float, holder: str, token: int, *, acquired: float | None = None, **more: JsonValue) -> JournalEntry:
    detail: dict[str, JsonValue] = {
        "lock": LOCK, "holder": holder, "component": "kube-controller-manager", "replica": holder, "token": token,
        "acquired": ZERO + (at if acquired is None else acquired), **more,
    }  # fmt: skip
    return JournalEntry(plane="demo", time=ZERO + at, kind="LockTaken", text="", detail=detail)


def left(at: float, holder: str, token: int, *, renewed: float, released: bool, duration: float = 15.0) -> JournalEntry:
    detail: dict[str, JsonValue] = {
        "lock": LOCK, "holder": holder, "token": token, "renewed": ZERO + renewed, "duration": duration,
        "released": released,
    }  # fmt: skip
    return JournalEntry(plane="demo", time=ZERO + at, kind="LockLeft", text="", detail=detail)


def spans(*entries: JournalEntry) -> list[tuple[str, float, float | None, bool]]:
    return [
        (each.holder, each.begins - ZERO, None if each.ends is None else each.ends - ZERO, each.released)
        for each in tenures_of(entries)
    ]


def test_a_tenure_ends_when_it_was_released_or_when_it_ran_out() -> None:
    assert spans(
        taken(0, "a", 0, acquired=-50),
        left(10, "a", 0, renewed=9, released=True),
        taken(11, "b", 1),
        left(40, "b", 1, renewed=20, released=False),
        taken(40, "c", 2, acquired=39.5),
    ) == [("a", -50, 10, True), ("b", 11, 35, False), ("c", 39.5, None, False)]


def test_a_lock_that_was_released_was_free_when_the_next_took_it_however_late_that_was_seen() -> None:
    entries = (
        taken(0, "a", 0),
        left(10.25, "a", 0, renewed=9, released=True),
        taken(10.5, "b", 1, acquired=10.125),
    )
    assert [(end, begin) for _, begin, end, _ in spans(*entries)] == [(10.125, 0), (None, 10.125)]
    early = (*entries[:2], taken(10.5, "b", 1, acquired=8))
    assert spans(*early)[0][2] == 9, "it had been renewed after that"


def test_how_a_tenure_ended_that_was_followed_before_it_ran_out_is_not_known() -> None:
    for entries in (
        (taken(0, "a", 0), left(10, "a", 0, renewed=9, released=False), taken(10, "b", 1, acquired=9.5)),
        (taken(0, "a", 0), taken(10, "b", 1, acquired=9.5)),
    ):
        first, second = tenures_of(entries)
        assert (first.ends, first.unseen, second.unseen) == (ZERO + 9.5, True, False)


def test_the_journal_has_them_by_the_names_that_are_documented() -> None:
    """Journals that are there have them, too."""
    assert (TAKEN, LEFT) == ("LockTaken", "LockLeft")


def test_what_several_watchers_tell_is_one_tenure() -> None:
    first, again = taken(0, "a", 3, component="", replica=""), taken(5, "a", 3, acquired=0)
    (one,) = tenures_of((first, again, left(9, "a", 3, renewed=8, released=True)))
    assert (one.component, one.replica, one.begins, one.ends) == ("kube-controller-manager", "a", ZERO, ZERO + 9)


def test_a_tenure_of_which_only_the_end_was_seen_is_there() -> None:
    assert spans(left(9, "a", 3, renewed=8, released=True)) == [("a", 8, 9, True)]


def test_nobody_saw_who_held_a_lock_before_the_first_holder_that_was_not_the_first_ever() -> None:
    seen = tenures_of((taken(5, "a", 3),))
    assert unwatched(seen, LOCK, ZERO, ZERO + 60) == (UnwatchedSpan(LOCK, ZERO, ZERO + 5),)
    assert unwatched(seen, LOCK, ZERO + 6, ZERO + 60) == ()
    assert unwatched(tenures_of((taken(5, "a", 0),)), LOCK, ZERO, ZERO + 60) == ()
    assert unwatched((), LOCK, ZERO, ZERO + 60) == (UnwatchedSpan(LOCK, ZERO, ZERO + 60),)


def test_a_number_that_is_left_out_is_a_holder_that_nobody_saw() -> None:
    seen = tenures_of((taken(0, "a", 3), left(9, "a", 3, renewed=8, released=True), taken(20, "b", 5)))
    assert unwatched(seen, LOCK, ZERO, ZERO + 60) == (UnwatchedSpan(LOCK, ZERO + 9, ZERO + 20),)
    assert unwatched(seen, LOCK, ZERO, ZERO + 15) == (UnwatchedSpan(LOCK, ZERO + 9, ZERO + 15),)
