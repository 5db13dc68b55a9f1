"""When a member that does not answer counts as down."""

from __future__ import annotations

from dataclasses import replace

import pytest

from quarterdeck.engine.observation.silence import AWAY, GRACE, LONGEST_LOOK, LOOKS, PAUSE, Silence, Word
from quarterdeck.model.membership import Health

OWES = Word(leader=1, term=2, match=10, committed=11)


def looked(
    silence: Silence, seconds: float, word: Word | None = OWES, *, every: float = 0.5, each_takes: float = 0.0
) -> Silence:
    """Failed looks, one after the other, for that long."""
    began = 100.0 if silence.looks == 0 else silence.until + every
    end = began + seconds
    while began <= end:
        silence = silence.after(began, began + each_takes, word)
        began += each_takes + every
    return silence


def test_one_that_is_silent_and_owes_its_leader_an_answer_for_the_grace_is_down() -> None:
    assert looked(Silence(), GRACE - 1).health is Health.SUSPECT
    assert looked(Silence(), GRACE).health is Health.DOWN


def test_one_look_says_nothing_however_long_it_takes() -> None:
    silence = Silence().after(100.0, 100.0 + LONGEST_LOOK, OWES)
    assert silence.after(106.0, 106.0 + LONGEST_LOOK, OWES).seconds >= GRACE
    assert silence.after(106.0, 106.0 + LONGEST_LOOK, OWES).health is Health.SUSPECT
    assert LOOKS == 3


def test_silence_that_the_leader_says_nothing_of_is_unreachable() -> None:
    assert looked(Silence(), 60.0, None).health is Health.UNREACHABLE


def test_one_that_the_leader_hears_is_unreachable_for_as_long_as_it_is_silent_to_us() -> None:
    silence = Silence()
    for second in range(60):
        word = replace(OWES, match=10 + second, committed=11 + second)  # always one behind, and never standing still
        silence = looked(silence, 0.5, word)
        assert silence.health in (Health.SUSPECT, Health.UNREACHABLE)
    assert silence.health is Health.UNREACHABLE


def test_where_nothing_is_written_standing_still_says_nothing() -> None:
    silence = looked(Silence(), 60.0, replace(OWES, committed=10))
    assert silence.health is Health.UNREACHABLE
    assert silence.says_nothing
    assert not looked(silence, 0.5).says_nothing


def test_an_answer_is_owed_for_the_whole_grace_and_not_just_now() -> None:
    """An entry of this instant cannot have been acknowledged yet, wherever the member is."""
    silence = looked(Silence(), 60.0, replace(OWES, committed=10))
    assert looked(silence, 1.0).health is Health.UNREACHABLE
    assert looked(silence, GRACE).health is Health.DOWN


def test_a_new_leader_is_believed_only_after_the_grace_of_its_own() -> None:
    silence = looked(Silence(), 60.0)
    assert silence.health is Health.DOWN
    for another in (
        Word(leader=3, term=3, match=0, committed=12),
        replace(OWES, leader=3, term=3),
        replace(OWES, term=4),  # the same one, which has led again
    ):
        assert looked(silence, 1.0, another).health is Health.UNREACHABLE
        assert looked(silence, GRACE, another).health is Health.DOWN


def test_one_that_is_sent_a_whole_database_owes_nothing_yet() -> None:
    sending = replace(OWES, match=0, sending=True)
    assert looked(Silence(), 60.0, sending).health is Health.UNREACHABLE
    assert not looked(Silence(), 60.0, sending).says_nothing


def test_a_leader_that_does_not_answer_for_one_look_takes_its_word_back_for_that_long() -> None:
    silence = looked(Silence(), GRACE)
    unheard = looked(silence, 0.0, None)
    assert unheard.health is Health.UNREACHABLE
    assert looked(unheard, 0.0).health is Health.DOWN


@pytest.mark.parametrize("asleep", [AWAY + 1, 3_600.0])
def test_a_driver_that_was_frozen_begins_again(asleep: float) -> None:
    silence = looked(Silence(), GRACE - 1)
    woken = silence.after(silence.until + asleep, silence.until + asleep, OWES)
    assert woken == Silence().after(woken.until, woken.until, OWES)
    assert looked(woken, GRACE - 1).health is Health.SUSPECT


def test_what_lies_between_two_looks_counts_only_a_little() -> None:
    silence = Silence().after(100.0, 100.0, OWES)
    for _ in range(LOOKS):
        silence = silence.after(silence.until + AWAY, silence.until + AWAY, OWES)
    assert silence.seconds == LOOKS * PAUSE
    assert silence.health is Health.SUSPECT


def test_a_look_that_took_longer_than_its_deadline_tells_of_the_observer() -> None:
    silence = looked(Silence(), GRACE)
    assert silence.after(silence.until + 0.1, silence.until + 0.2 + LONGEST_LOOK, OWES).health is Health.SUSPECT


def test_looks_that_each_wait_for_their_deadline_come_to_the_same_end() -> None:
    """A frozen member, on a frozen machine: 3 s for the member, 2 s for the machine's supervisor."""
    assert looked(Silence(), 13.0, every=2.0, each_takes=3.0).health is Health.DOWN
