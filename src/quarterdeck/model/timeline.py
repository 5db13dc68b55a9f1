"""Times that outlive the process that took them, and a wall clock that jumps. Pure.

A time to live and a drain are counted from moments in the plane's memory. If those were wall times, a step of the wall
clock would end a wait too early, or never. So they are taken by the clock of one boot of one host, which nobody sets
and which all its processes share: a driver that comes after one that was killed goes on counting where that one was.
In another boot, or on another host, nobody can know how long ago they were: then the driver waits the full time once
more. So nothing is let go early, and nothing is kept for longer than that after a driver has begun.
"""

from __future__ import annotations

from dataclasses import replace

from quarterdeck.model.clusters import Full
from quarterdeck.model.memory import Memory, Timeline


def adopted(memory: Memory, *, boot: str, steady: float, wall: float) -> Memory:
    """The memory as a driver in ``boot`` counts by it, whose clocks show ``steady`` and ``wall`` (seconds) now.

    Unchanged if its times were taken in the same boot. Otherwise they count from now, which is ``wall`` on the timeline
    that begins. A time that lies ahead (of a host that was set back to an earlier state) counts from now as well.
    """
    timeline = memory.timeline
    if timeline is None or timeline.boot != boot:
        return _at_most(replace(memory, timeline=Timeline(boot=boot, ahead=wall - steady)), None, wall)
    now = steady + timeline.ahead
    return _at_most(memory, now, now)


def _at_most(memory: Memory, newest: float | None, now: float) -> Memory:
    """All times that are after ``newest`` (None: all) become ``now``."""

    def at_most(since: float) -> float:
        return since if newest is not None and since <= newest else now

    def counted(entries: tuple[tuple[str, float], ...]) -> tuple[tuple[str, float], ...]:
        return tuple((name, at_most(since)) for name, since in entries)

    longer = memory.longer
    if longer is not None and longer.until is not None:
        longer = replace(longer, until=at_most(longer.until))
    (full, events) = (_full_at_most(each, newest, now) for each in (memory.full, memory.events.full))
    return replace(
        memory,
        full=full,
        events=replace(memory.events, full=events),
        held=counted(memory.held),
        draining=counted(memory.draining),
        unready=counted(memory.unready),
        down=counted(memory.down),
        healed=counted(memory.healed),
        ailing=counted(memory.ailing),
        revived=counted(memory.revived),
        longer=longer,
        quorum_lost=at_most(memory.quorum_lost) if memory.quorum_lost is not None else None,
    )


def _full_at_most(full: Full | None, newest: float | None, now: float) -> Full | None:
    if full is None or (newest is not None and full.since <= newest):
        return full
    return replace(full, since=now)
