"""Whether two processes ever had a set of controllers at once: what locks say, held against what was written.

Times of tenures are by the clocks of those who held the locks, times of writes by those of apiservers; each manager
asks the apiserver of its own replica, on its own machine. Two machines' clocks may differ, so nothing counts as an
overlap that ``slack`` explains.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations

from quarterdeck.api.plane.controllers import ControllerProgram, ControllerSetSpec
from quarterdeck.handover.acts import Act
from quarterdeck.handover.tenures import Duty, History, Tenure, UnwatchedSpan, unwatched

#: Seconds.
SLACK = 0.05


def judged(
    sets: Sequence[ControllerSetSpec],
    tenures: Sequence[Tenure],
    acts: Sequence[Act],
    since: float,
    until: float,
    *,
    before: Mapping[str, ControllerProgram] | None = None,
    duties: Sequence[Duty] = (),
    missing: Sequence[str] = (),
    slack: float = SLACK,
) -> tuple[SetVerdict, ...]:
    """A verdict for each of the sets. ``before``: the owner that a set (by its name) had at ``since``, where it is
    another than now. ``duties``: what managers were told, as far as that is known. ``missing`` says in sentences what
    of the audit logs could not be read.
    """
    owners = before or {}
    return tuple(
        _judged(
            History(
                of=each,
                before=owners.get(each.name, each.owner),
                duties=tuple(duties),
                tenures=tuple(tenures),
                since=since,
                until=until,
                slack=slack,
            ),
            acts,
            tuple(missing),
        )
        for each in sets
    )


def _judged(history: History, acts: Sequence[Act], missing: tuple[str, ...]) -> SetVerdict:
    within = [each for each in acts if history.since <= each.at and each.begun <= history.until]
    names = set(history.of.controllers)
    mine = sorted((each for each in within if names >= set(each.controllers)), key=lambda each: each.at)
    perhaps = [each for each in within if names & set(each.controllers) and not names >= set(each.controllers)]
    held = history.holding(mine)
    unseen = _unseen(history, held, (*mine, *perhaps))
    outside = tuple(_outside(history, held, mine, unseen))
    return SetVerdict(
        name=history.of.name,
        lock=history.of.lock,
        controllers=history.of.controllers,
        since=history.since,
        until=history.until,
        slack=history.slack,
        holders=_holders(history, held, mine),
        gaps=_gaps(history, held, unseen),
        overlaps=(*_locks_at_once(history, held), *_acting_beside(history, held, mine), *_interleaved(history, mine)),
        outside=outside,
        acts=len(mine),
        perhaps=len(perhaps),
        unwatched=unseen,
        unknown=(*missing, *_unknown(history, held, mine, perhaps, unseen)),
    )


def _holders(history: History, held: Sequence[Tenure], acts: Sequence[Act]) -> tuple[SetTenure, ...]:
    counts = Counter(history.guard(each) for each in acts)
    return tuple(
        SetTenure(
            tenure=each,
            begins=max(each.begins, history.since),
            ends=each.ends if each.ends is not None and each.ends < history.until else None,
            acts=counts[each],
        )
        for each in held
    )


def _gaps(history: History, held: Sequence[Tenure], unseen: Sequence[UnwatchedSpan]) -> tuple[Gap, ...]:
    """When nobody had the set; of a time in which nobody watched that is not known."""
    gaps: list[Gap] = []
    end, heard = history.since, None
    for begins, ends, last_heard in (
        *((each.begins, each.until(history.until), None if each.released else each.renewed) for each in held),
        (history.until, history.until, None),
    ):
        if begins > end:
            gaps.append(Gap(begins=end, ends=begins, heard=heard))
        if ends >= end:
            end, heard = ends, last_heard
    return tuple(each for each in gaps if not any(_meet(each, hidden) for hidden in unseen))


def _meet(gap: Gap, hidden: UnwatchedSpan) -> bool:
    return hidden.begins < gap.ends and gap.begins < hidden.ends


def _locks_at_once(history: History, held: Sequence[Tenure]) -> Iterator[Overlap]:
    for first, second in combinations(held, 2):
        begins = max(second.begins, history.since)
        ends = min(first.until(history.until), second.until(history.until))
        if first.is_another(second) and ends - begins > history.slack:
            yield Overlap(
                begins=begins, ends=ends, first=first.who, second=second.who, what=_how(history, first, second)
            )


def _how(history: History, first: Tenure, second: Tenure) -> str:
    if first.lock == second.lock:
        return f"{second.who} took {first.lock} while {first.who} renewed it"
    if history.of.lock not in (first.lock, second.lock):
        return f"both had the set under their managers' own locks, {first.lock} and {second.lock}"
    return f"{first.who} held {first.lock} while {second.who} held {second.lock}"


def _acting_beside(history: History, held: Sequence[Tenure], acts: Sequence[Act]) -> Iterator[Overlap]:
    """Writes of a process while another one had the set. Those of one and the same process are told once."""
    told = set()
    known = [each for each in held if each.known]
    for act in acts:
        for other in known if act.replica else ():
            beside = other.begins + history.slack < act.at < other.until(history.until) - history.slack
            if beside and other.process != act.process and (act.process, other) not in told:
                told.add((act.process, other))
                what = f"{act.who} wrote {act.object} ({act.verb}) while {other.who} held {other.lock}"
                yield Overlap(begins=act.at, ends=act.at, first=other.who, second=act.who, what=what)


def _interleaved(history: History, acts: Sequence[Act]) -> Iterator[Overlap]:
    """Writes of a process between two of another one: an overlap whatever the locks say. What a process does in one
    tenure and in the next one are two things, since others may have the set in between.
    """
    spans: dict[tuple[tuple[str, str], Tenure | None], list[Act]] = {}
    for act in acts:
        if act.replica:
            spans.setdefault((act.process, history.guard(act)), []).append(act)
    for (process, _), theirs in spans.items():
        first, last = theirs[0], theirs[-1]
        for (other, _), others in spans.items():
            between = [each for each in others if first.at + history.slack < each.at < last.at - history.slack]
            if between and process != other:
                yield Overlap(
                    begins=first.at,
                    ends=last.at,
                    first=first.who,
                    second=between[0].who,
                    what=f"{between[0].who} wrote {between[0].object} between two writes of {first.who}",
                )


def _outside(
    history: History, held: Sequence[Tenure], acts: Sequence[Act], unseen: Sequence[UnwatchedSpan]
) -> Iterator[UnguardedWrite]:
    for act in acts:
        if history.guard(act) is None and not _unplaced(history, act, unseen):
            taken = [each for each in held if each.begins < act.at and each.process != act.process]
            yield UnguardedWrite(act=act, after=taken[-1].who if taken else "")


def _unplaced(history: History, act: Act, unseen: Sequence[UnwatchedSpan]) -> bool:
    """Whether a lock by which it may have acted was held by nobody knows whom then."""
    locks = (history.of.lock, act.component.value)
    hidden = any(each.lock in locks and each.begins <= act.at and act.begun <= each.ends for each in unseen)
    return hidden or not act.replica or history.nameless(act)


def _unseen(history: History, held: Sequence[Tenure], acts: Iterable[Act]) -> tuple[UnwatchedSpan, ...]:
    """When nobody saw who held a lock that matters: the set's own, if anybody ever did; those of the managers that
    acted for it, or own it without its own.
    """
    own = history.of.lock
    known = {each.lock for each in history.tenures}
    locks = {each.component.value for each in acts} | {each.lock for each in held} | (known & {own})
    if not any(each.lock == own for each in held):
        locks |= {owner.value for _, owner in history.owners}
    spans = (unwatched(history.tenures, lock, history.since, history.until) for lock in sorted(locks))
    return tuple(each for found in spans for each in found)


def _unknown(
    history: History,
    held: Sequence[Tenure],
    mine: Sequence[Act],
    perhaps: Sequence[Act],
    unseen: Sequence[UnwatchedSpan],
) -> Iterator[str]:
    for each in unseen:
        yield f"nobody saw who held {each.lock} for {each.ends - each.begins:.1f} s"
    for tenure in held:
        if tenure.unseen:
            yield f"nobody saw how {tenure.who} lost {tenure.lock}"
    if nameless := sorted({each.holder for each in held if not each.known}):
        yield f"it is not known whose replica's these holders are: {', '.join(nameless)}"
    if unplaced := sum(history.guard(each) is None and _unplaced(history, each, unseen) for each in mine):
        yield f"it is not known what locks were held by those who wrote {unplaced} of its {len(mine)} writes"
    others = [each for each in perhaps if history.guard(each) not in held]
    if others:
        yield (
            f"writes of {', '.join(sorted({each.who for each in others}))} may be of it ({len(others)} of them):"
            " the audit log does not say what they set"
        )


# What is found of a set of controllers: who had it when, and whether two ever had it at once.


class Judgement(StrEnum):
    """What it comes to."""

    PROVEN = "no overlap"
    BROKEN = "overlap"
    UNKNOWN = "cannot be told"


@dataclass(frozen=True, slots=True, kw_only=True)
class SetTenure:
    """A process had the set by a tenure, within the time that was looked at: ``ends`` is None for one that goes on.
    ``acts``: how many of its writes are of the set.
    """

    tenure: Tenure
    begins: float
    ends: float | None
    acts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Nobody had the set from ``begins`` to ``ends``. ``heard``: when who had it last renewed its lock, which was never
    released: it may have done nothing since then.
    """

    begins: float
    ends: float
    heard: float | None = None

    @property
    def seconds(self) -> float:
        """How long nobody could have acted."""
        return self.ends - self.begins

    @property
    def at_most(self) -> float:
        """How long it may be that nobody did."""
        return self.ends - (self.begins if self.heard is None else self.heard)


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlap:
    """Two processes (or their writes) had the set at once, from ``begins`` to ``ends``; ``what`` says how."""

    begins: float
    ends: float
    first: str
    second: str
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UnguardedWrite:
    """A write of the set by a process that held no lock which guards it. ``after``: who had taken over by then."""

    act: Act
    after: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetVerdict:
    """One set from ``since`` to ``until`` (seconds since the epoch). ``acts`` counts writes that are of its
    controllers, ``perhaps`` those that may be. ``unknown`` says in sentences why nothing is proven. ``slack``: seconds
    by which clocks of two machines may differ before anything counts as an overlap.
    """

    name: str
    lock: str
    controllers: tuple[str, ...]
    since: float
    until: float
    slack: float
    holders: tuple[SetTenure, ...]
    gaps: tuple[Gap, ...]
    overlaps: tuple[Overlap, ...]
    outside: tuple[UnguardedWrite, ...]
    acts: int
    perhaps: int
    unwatched: tuple[UnwatchedSpan, ...]
    unknown: tuple[str, ...]

    @property
    def finding(self) -> Judgement:
        """What it comes to. What was seen to be wrong is so whatever is not known besides."""
        if self.overlaps or self.outside:
            return Judgement.BROKEN
        return Judgement.UNKNOWN if self.unknown else Judgement.PROVEN
