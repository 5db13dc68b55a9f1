"""Several members are asked one question: who is down, silent or a learner does not matter."""

from __future__ import annotations

import asyncio

import pytest
from support.golden import Golden

from quarterdeck.errors import PreconditionFailed, Unavailable
from quarterdeck.etcd.faults import EtcdFault, Reason, fault
from quarterdeck.etcd.several import hedged, in_turn

LONG = 60.0


class Members:
    """Answers by URL: a reason to fail with, "silent", or anything else as the answer."""

    def __init__(self, **answers: object) -> None:
        self.answers, self.asked, self.cancelled = answers, [], []

    async def ask(self, url: str) -> str:
        self.asked.append(url)
        answer = self.answers[url]
        if answer == "silent":
            try:
                await asyncio.sleep(LONG)
            except asyncio.CancelledError:
                self.cancelled.append(url)
                raise
        if isinstance(answer, Reason):
            raise fault("asking", answer, f"{answer}")
        return str(answer)


async def test_a_change_is_asked_of_one_member_after_the_other_until_one_does_it() -> None:
    members = Members(a=Reason.UNREACHABLE, b=Reason.NOT_FOR_LEARNERS, c="done", d="never asked")
    assert await in_turn("abcd", members.ask, "changing") == "done"
    assert members.asked == ["a", "b", "c"]


async def test_a_refused_change_is_not_asked_of_anybody_else() -> None:
    members = Members(a=Reason.TOO_MANY_LEARNERS, b="done")
    with pytest.raises(PreconditionFailed):
        await in_turn("ab", members.ask, "changing")
    assert members.asked == ["a"]


async def test_when_nobody_can_the_error_names_all_and_the_most_telling_reason(golden: Golden) -> None:
    members = Members(a=Reason.UNREACHABLE, b=Reason.UNHEALTHY, c=Reason.NOT_FOR_LEARNERS)
    with pytest.raises(Unavailable) as caught:
        await in_turn("abc", members.ask, "changing")
    assert isinstance(caught.value, EtcdFault)
    assert caught.value.reason is Reason.UNHEALTHY
    golden(caught.value.seen)
    assert "5 seconds" in caught.value.next_step


async def test_without_anybody_to_ask_it_says_so(golden: Golden) -> None:
    with golden.raises(Unavailable):
        await hedged([], Members().ask, "reading", stagger=1)


async def test_a_silent_member_only_costs_a_read_the_stagger() -> None:
    members = Members(a="silent", b="answer", c="not needed")
    async with asyncio.timeout(LONG / 2):
        assert await hedged("abc", members.ask, "reading", stagger=0.01) == "answer"
    assert members.asked == ["a", "b"]
    assert members.cancelled == ["a"]


async def test_a_failed_member_costs_a_read_nothing() -> None:
    members = Members(a=Reason.UNREACHABLE, b=Reason.NOT_FOR_LEARNERS, c="answer")
    async with asyncio.timeout(LONG / 2):
        assert await hedged("abc", members.ask, "reading", stagger=LONG) == "answer"


async def test_a_read_that_all_fail_tells_what_each_said(golden: Golden) -> None:
    members = Members(a=Reason.UNREACHABLE, b=Reason.NO_LEADER)
    with golden.raises(Unavailable):
        await hedged("ab", members.ask, "reading", stagger=0)


async def test_a_read_leaves_no_question_behind_when_it_is_cancelled() -> None:
    members = Members(a="silent", b="silent")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await hedged("ab", members.ask, "reading", stagger=0)
    assert sorted(members.cancelled) == ["a", "b"]
