"""Whether two processes ever ran a controller set at once: the lock history compared with audited writes.

Times of tenures are by the clocks of the lock holders, times of writes by those of apiservers; each manager uses the
apiserver of its own replica, on its own machine. Two machines' clocks may differ, so a difference within ``slack`` is
not an overlap.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations

from quarterdeck.api.plane.controllers import ControllerProgram, ControllerSetSpec
from quarterdeck.handover.acts import Act
from quarterdeck.handover.tenures import Assignment, History, Tenure, UnwatchedSpan, unwatched

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
    assignments: Sequence[Assignment] = (),
    missing: Sequence[str] = (),
    slack: float = SLACK,
) -> tuple[SetVerdict, ...]:
    """A verdict for each of the sets. ``before``: the owner of a set (by its name) at ``since``, where it differs from
    the present one. ``assignments``: the known configurations of managers. ``missing``: sentences about the parts of
    the audit logs that could not be read.
    """
    owners = before or {}
    return tuple(
        _judged(
            History(
                of=each,
                before=owners.get(each.name, each.owner),
                assignments=tuple(assignments),
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
    """Times without a holder of the set; unobserved times are unknown."""
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
                begins=begins,
                ends=ends,
                first=first.description,
                second=second.description,
                what=_how(history, first, second),
            )


def _how(history: History, first: Tenure, second: Tenure) -> str:
    if first.lock == second.lock:
        return f"{second.description} took {first.lock} while {first.description} renewed it"
    if history.of.lock not in (first.lock, second.lock):
        return f"both had the set under their managers' main locks, {first.lock} and {second.lock}"
    return f"{first.description} held {first.lock} while {second.description} held {second.lock}"


def _acting_beside(history: History, held: Sequence[Tenure], acts: Sequence[Act]) -> Iterator[Overlap]:
    """Writes of a process while another one had the set, reported once for each process."""
    reported = set()
    known = [each for each in held if each.known]
    for act in acts:
        for other in known if act.replica else ():
            beside = other.begins + history.slack < act.at < other.until(history.until) - history.slack
            if beside and other.process != act.process and (act.process, other) not in reported:
                reported.add((act.process, other))
                what = f"{act.description} wrote {act.object} ({act.verb}) while {other.description} held {other.lock}"
                yield Overlap(begins=act.at, ends=act.at, first=other.description, second=act.description, what=what)


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
                second = between[0]
                yield Overlap(
                    begins=first.at,
                    ends=last.at,
                    first=first.description,
                    second=second.description,
                    what=f"{second.description} wrote {second.object} between two writes of {first.description}",
                )


def _outside(
    history: History, held: Sequence[Tenure], acts: Sequence[Act], unseen: Sequence[UnwatchedSpan]
) -> Iterator[UnguardedWrite]:
    for act in acts:
        if history.guard(act) is None and not _unplaced(history, act, unseen):
            taken = [each for each in held if each.begins < act.at and each.process != act.process]
            yield UnguardedWrite(act=act, after=taken[-1].description if taken else "")


def _unplaced(history: History, act: Act, unseen: Sequence[UnwatchedSpan]) -> bool:
    """Whether a lock under which it may have acted had an unknown holder then."""
    locks = (history.of.lock, act.component.value)
    hidden = any(each.lock in locks and each.begins <= act.at and act.begun <= each.ends for each in unseen)
    return hidden or not act.replica or history.nameless(act)


def _unseen(history: History, held: Sequence[Tenure], acts: Iterable[Act]) -> tuple[UnwatchedSpan, ...]:
    """When the holder of a relevant lock was not observed: of the set's own lock, if that was ever held, and of the
    locks of the managers that acted for it, or own it without its own.
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
        yield f"the holder of {each.lock} was not observed for {each.ends - each.begins:.1f} s"
    for tenure in held:
        if tenure.unseen:
            yield f"it was not observed how {tenure.description} lost {tenure.lock}"
    if nameless := sorted({each.holder for each in held if not each.known}):
        yield f"the replicas of these holders are unknown: {', '.join(nameless)}"
    if unplaced := sum(history.guard(each) is None and _unplaced(history, each, unseen) for each in mine):
        yield f"the locks held during {unplaced} of its {len(mine)} writes are unknown"
    others = [each for each in perhaps if history.guard(each) not in held]
    if others:
        writers = ", ".join(sorted({each.description for each in others}))
        yield (f"writes of {writers} may be of it ({len(others)} of them): the audit log does not say what they set")


# What is found of a set of controllers: its holders over time, and whether two ever held it at once.


class Judgement(StrEnum):
    """The result."""

    PROVEN = "no overlap"
    BROKEN = "overlap"
    UNKNOWN = "unknown"


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
    """The set had no holder from ``begins`` to ``ends``. ``heard``: when the last holder renewed its lock, which was
    never released: it may have done nothing since then.
    """

    begins: float
    ends: float
    heard: float | None = None

    @property
    def seconds(self) -> float:
        """How long no process could have acted."""
        return self.ends - self.begins

    @property
    def at_most(self) -> float:
        """How long possibly no process acted."""
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
    """A write of the set by a process without a lock that guards it. ``after``: the holder by then."""

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
        """The result. An observed fault counts, whatever else is unknown."""
        if self.overlaps or self.outside:
            return Judgement.BROKEN
        return Judgement.UNKNOWN if self.unknown else Judgement.PROVEN
