"""From the journal's entries to steps, phases and moments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from pydantic import JsonValue

from quarterdeck.handover.tenures import LEFT, TAKEN
from quarterdeck.model.clusters import Cluster
from quarterdeck.model.steps.members import Promote, RemoveMember, Swap, TransferLeadership
from quarterdeck.model.steps.placement import ReleaseReplica
from quarterdeck.model.steps.traffic import (
    LeadTo,
    NoteDraining,
    NoteRecord,
    NoteUnsettled,
    RemoveRecord,
    SetBackends,
    SetRecord,
    StopBalancer,
)
from quarterdeck.model.steps.units import StartUnit, StopUnit
from quarterdeck.report.schema import BalancerState, MemberState, Moment, Phase, PhaseSpan, Role, StepOutcome, StepSpan
from quarterdeck.stores.port import EntryOutcome, JournalEntry

OBSERVED = "Observed"
_OUTCOMES = {EntryOutcome.DONE: StepOutcome.DONE, EntryOutcome.FAILED: StepOutcome.FAILED}
_PHASES = {
    TransferLeadership.kind: Phase.SWAP,
    Swap.kind: Phase.SWAP,
    SetBackends.kind: Phase.SERVE,
    SetRecord.kind: Phase.SERVE,
    LeadTo.kind: Phase.SERVE,
    NoteRecord.kind: Phase.SERVE,
    NoteUnsettled.kind: Phase.SERVE,
    NoteDraining.kind: Phase.DRAIN,
    StopUnit.kind: Phase.DRAIN,
    RemoveMember.kind: Phase.RELEASE,
    ReleaseReplica.kind: Phase.RELEASE,
    StopBalancer.kind: Phase.RELEASE,
    RemoveRecord.kind: Phase.RELEASE,
}


def steps_of(entries: Sequence[JournalEntry], started: float) -> tuple[StepSpan, ...]:
    """The steps by their start. ``started`` is the wall clock's zero of the report, in seconds."""
    open_steps: dict[tuple[str, str], JournalEntry] = {}
    steps: list[StepSpan] = []
    for entry in entries:
        key = (entry.kind, entry.text)
        if entry.kind in (OBSERVED, TAKEN, LEFT):
            continue
        if entry.outcome is EntryOutcome.STARTED:
            if key in open_steps:  # the driver died during the step, and took it again
                steps.append(_step(open_steps[key], None, started))
            open_steps[key] = entry
        elif entry.outcome is EntryOutcome.NOTED:
            steps.append(_step(entry, entry, started))
        else:
            steps.append(_step(open_steps.pop(key, entry), entry, started))
    steps += [_step(entry, None, started) for entry in open_steps.values()]
    return tuple(sorted(steps, key=lambda step: step.start))


def _step(begin: JournalEntry, end: JournalEntry | None, started: float) -> StepSpan:
    why = str(begin.detail.get("why", ""))
    outcome = StepOutcome.UNFINISHED
    if end is not None:
        outcome = _OUTCOMES.get(end.outcome, StepOutcome.NOTED)
    return StepSpan(
        start=_seconds(begin.time - started),
        end=None if end is None else _seconds(end.time - started),
        kind=begin.kind,
        text=begin.text.removesuffix(f": {why}"),
        why=why,
        phase=_phase(begin),
        site=begin.site,
        replica=begin.replica,
        outcome=outcome,
        error="" if end is None else str(end.detail.get("error", "")),
    )


def _phase(entry: JournalEntry) -> Phase:
    if entry.kind == StartUnit.kind and " etcd" not in entry.text:
        return Phase.SERVE
    return _PHASES.get(entry.kind, Phase.JOIN)


def phases_of(steps: Sequence[StepSpan]) -> tuple[PhaseSpan, ...]:
    """From the first to the last step of each phase. Notes take no time and so form no phase."""
    spans: dict[Phase, PhaseSpan] = {}
    for step in steps:
        if step.outcome is not StepOutcome.NOTED:
            end = step.start if step.end is None else step.end
            span = spans.get(step.phase, PhaseSpan(phase=step.phase, start=step.start, end=end))
            spans[step.phase] = PhaseSpan(phase=step.phase, start=min(span.start, step.start), end=max(span.end, end))
    return tuple(sorted(spans.values(), key=lambda span: span.start))


def moments_of(entries: Sequence[JournalEntry], started: float) -> tuple[Moment, ...]:
    """The observations, and the membership after each change of a swap, between which there is no observation."""
    sites = {entry.replica: entry.site for entry in entries if entry.replica and entry.site}
    moments: list[Moment] = []
    for entry in entries:
        last = moments[-1] if moments else None
        if entry.kind == OBSERVED:
            moments.append(_observed(entry, started, sites, last))
        elif _is_swap(entry) and last is not None:
            moments += _swapped(entry, started, last)
    return tuple(sorted(moments, key=lambda moment: moment.at))


def _observed(entry: JournalEntry, started: float, sites: Mapping[str, str], last: Moment | None) -> Moment:
    detail = entry.detail
    known = bool(detail.get("membershipKnown"))
    leader = detail.get("leader")
    members = tuple(
        MemberState(
            replica=replica,
            site=str(member.get("site") or sites.get(replica, "")),
            role=Role(str(member.get("role"))),
            healthy=member.get("health") == "healthy",
            leader=replica == leader,
        )
        for replica, member in _objects(detail.get("members"))
    )
    connections = dict(_pairs(detail.get("connections")))
    balancers = tuple(
        BalancerState(
            site=site,
            backends=tuple(map(str, backends)) if isinstance(backends, list) else (),
            connections=count if isinstance(count := connections.get(site), int) else None,
        )
        for site, backends in _pairs(detail.get("backends"))
    )
    record = detail.get("record")
    return Moment(
        at=_seconds(entry.time - started),
        membership_known=known,
        members=members if known or last is None else last.members,
        balancers=balancers,
        record=str(record) if record is not None else None,
    )


def _is_swap(entry: JournalEntry) -> bool:
    """Whether members of the main cluster were swapped: voters of the events' etcd are not reported here."""
    of_main = entry.detail.get("cluster", Cluster.MAIN.value) == Cluster.MAIN.value
    return entry.kind == Swap.kind and entry.outcome is EntryOutcome.DONE and of_main


def _swapped(entry: JournalEntry, started: float, before: Moment) -> Iterator[Moment]:
    """``changes`` are [kind, replica, seconds since the swap began]."""
    whole = entry.detail.get("whole")
    changes = entry.detail.get("changes")
    if not isinstance(whole, float) or not isinstance(changes, list):
        return
    moment = before
    for change in changes:
        if isinstance(change, list) and len(change) == 3 and isinstance(after := change[2], int | float):
            members = tuple(_changed(moment.members, str(change[0]), str(change[1])))
            at = _seconds(entry.time - whole + after - started)
            moment = moment.model_copy(update={"at": at, "members": members})
            yield moment


def _changed(members: Sequence[MemberState], kind: str, replica: str) -> Iterator[MemberState]:
    for member in members:
        if member.replica != replica:
            yield member
        elif kind == Promote.kind:
            yield member.model_copy(update={"role": Role.VOTER})


def swap_window(entries: Sequence[JournalEntry], moments: Sequence[Moment]) -> float | None:
    """Seconds for which no site had a quorum by itself: as swaps measured it, plus the observed ones.

    None when the members' sites are not known, or all are one.
    """
    sites = {member.site for moment in moments for member in moment.members}
    if len(sites) < 2 or "" in sites:
        return None
    swaps = [entry.detail for entry in entries if _is_swap(entry)]
    if swaps:
        return sum(_number(detail.get("homeless")) for detail in swaps)
    return sum(later.at - moment.at for moment, later in pairwise(moments) if _homeless(moment))


def _homeless(moment: Moment) -> bool:
    voters = Counter(member.site for member in moment.members if member.role is Role.VOTER)
    return bool(voters) and max(voters.values()) < voters.total() // 2 + 1


def _objects(value: JsonValue | None) -> Iterator[tuple[str, dict[str, JsonValue]]]:
    for name, inner in _pairs(value):
        if isinstance(inner, dict):
            yield name, inner


def _pairs(value: JsonValue | None) -> Iterator[tuple[str, JsonValue]]:
    if isinstance(value, dict):
        yield from value.items()


def _number(value: JsonValue | None) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _seconds(value: float) -> float:
    return round(value, 4)
