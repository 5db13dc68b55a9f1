"""A program is crash looping when it exits repeatedly, and not for having ended now and then in its life."""

from __future__ import annotations

from quarterdeck.engine.observation.observe_sites import ENDS, WINDOW, CrashLoops


def test_one_that_ends_again_and_again_is_crash_looping() -> None:
    seen = CrashLoops()
    assert [seen.note("etcd", restarts, float(restarts)) for restarts in range(ENDS + 2)] == [
        *[False] * ENDS,
        True,
        True,
    ]


def test_one_that_ended_now_and_then_is_not() -> None:
    seen = CrashLoops()
    assert not any(seen.note("etcd", restarts, restarts * WINDOW) for restarts in range(10))


def test_one_that_ended_often_before_we_looked_is_not() -> None:
    seen = CrashLoops()
    assert not seen.note("etcd", 100, 0.0)
    assert not seen.note("etcd", 100, 1.0)


def test_one_that_was_started_on_purpose_is_counted_again() -> None:
    seen = CrashLoops()
    assert [seen.note("etcd", restarts, time) for time, restarts in enumerate((0, 1, 2, 0, 1))] == [
        False,
        False,
        True,
        False,
        False,
    ]


def test_each_is_counted_by_itself() -> None:
    seen = CrashLoops()
    assert not any(seen.note(str(each), each, 0.0) for each in range(5))
