"""Machines die for good, or stand still and come back, where volumes outlive them: members go on elsewhere with their
data, whatever becomes of who drives meanwhile, and no epoch is begun.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from support.tiers import sized

from loop import mishaps
from loop.calls import Call
from loop.faults import CHANGES, Kind
from loop.lives import EAST3, EAST3_APART, Life, Story, many, spread
from quarterdeck.stores.port import EntryOutcome

STILL = Story("3 as they are, reattachable", EAST3, EAST3, reattachable=True)
APART = Story("3 apart as they are, reattachable", EAST3_APART, EAST3_APART, reattachable=True)
#: The call at which a machine is lost, and the seconds for which one stands still: until long after it was given up.
FIRST, LONG = 5, 60.0
#: Of the changes that follow so many are tried, spread over all.
MOST = sized(smoke=1, full=2, soak=40)


@dataclass(frozen=True, slots=True)
class Losses:
    """Machines are lost at calls one after the other; the driver dies after call ``dies``."""

    kinds: tuple[Kind, ...]
    dies: int | None = None

    def of(self, call: Call, number: int) -> Kind | None:
        if number == self.dies:
            return Kind.DIES_AFTER
        at = number - FIRST
        return self.kinds[at] if 0 <= at < len(self.kinds) else None


@pytest.fixture(autouse=True, scope="module")
def cheap() -> Iterator[None]:
    with many(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(mishaps, "LASTS", (LONG,))
        yield


def done(life: Life) -> list[str]:
    return [
        entry.kind for entry in life.world.store._journal if entry.outcome in (EntryOutcome.NOTED, EntryOutcome.DONE)
    ]


def new(life: Life) -> set[str]:
    """What was done since the plane was made."""
    steps = done(life)
    return {*steps[len(steps) - steps[::-1].index("note-members") :]}


def attached(life: Life) -> list[int]:
    """The calls that had volumes attached elsewhere."""
    calls = ((call, what) for _, _, call, what in life.books.tale)
    return [int(what) for call, what in calls if call is not None and call.method == "attach_volume"]


def changed(life: Life) -> list[int]:
    """The calls since the first of these that changed anything but the store."""
    outside = set[str]().union(*(CHANGES[port] for port in CHANGES if port != "store"))
    calls = ((call, what) for _, _, call, what in life.books.tale)
    numbers = [int(what) for call, what in calls if call is not None and call.method in outside and what.isdigit()]
    return [each for each in numbers if each >= attached(life)[0]]


@pytest.mark.parametrize(
    ("story", "kinds"),
    [
        (STILL, (Kind.LOST_MACHINE,)),
        (APART, (Kind.MACHINE_FREEZES,)),
        (STILL, (Kind.LOST_MACHINE, Kind.LOST_MACHINE)),
    ],
    ids=["one dies", "one with events apart stands still", "two die"],
)
def test_members_go_on_elsewhere_with_their_data(story: Story, kinds: tuple[Kind, ...]) -> None:
    life = Life(story=story, faults=Losses(kinds)).run()
    assert done(life).count("attach-volumes") == len(kinds)
    assert len(attached(life)) == len(kinds) * (2 if story.start_apart else 1)
    assert not {"mark-for-replacement", "add-learner", "begin-epoch", "restore-member"} & new(life)


def test_whoever_drives_dies_at_any_moment_of_that() -> None:
    kinds = (Kind.MACHINE_FREEZES,)
    calls = changed(Life(story=APART, faults=Losses(kinds)).run())
    for number in spread(calls, MOST):
        life = Life(story=APART, faults=Losses(kinds, dies=number)).run()
        assert not {"mark-for-replacement", "begin-epoch"} & new(life)
