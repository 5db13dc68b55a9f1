"""Whether two managers ever ran the same controllers of a plane, from locks, audit logs, and the configuration of the
managers of its replicas.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from quarterdeck.actions.audit import AuditLog, Placed, audit_logs
from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.operation import Operation
from quarterdeck.api.plane.controllers import ControllerProgram, ControllerSetSpec
from quarterdeck.api.revision import ReplicaRevision, ReplicaTemplate
from quarterdeck.components.controller.sets import lock_of
from quarterdeck.engine.controller_sets.handover_checks import sets_of
from quarterdeck.engine.workspace import recorded
from quarterdeck.engine.workspace.home import Home
from quarterdeck.engine.workspace.open_plane import open_plane
from quarterdeck.errors import NotFound, PreconditionFailed
from quarterdeck.handover.acts import Act, read, texts_of
from quarterdeck.handover.judgement import SLACK, Judgement, SetVerdict, judged
from quarterdeck.handover.policies import left_out
from quarterdeck.handover.tenures import LEFT, TAKEN, Assignment, tenures_of
from quarterdeck.model.steps.placement import PlaceReplica, ReleaseReplica
from quarterdeck.model.steps.units import AdoptRevision
from quarterdeck.stores.port import EntryOutcome, JournalEntry, Store

_LAST = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """The findings for each set of a plane's controllers from ``since`` to ``until``: the time of an ``operation``, if
    it names one.
    """

    plane: str
    operation: str
    since: datetime
    until: datetime
    verdicts: tuple[SetVerdict, ...]

    @property
    def finding(self) -> Judgement:
        """The worst of them."""
        found = {each.finding for each in self.verdicts}
        return next(each for each in (Judgement.BROKEN, Judgement.UNKNOWN, Judgement.PROVEN) if each in found)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Question:
    operation: str
    since: datetime
    until: datetime
    sets: tuple[ControllerSetSpec, ...]
    before: Mapping[str, ControllerProgram]


async def verified(
    home: Home, name: str, *, since: timedelta | None, operation: str | None, slack: float = SLACK
) -> Verification:
    """See ``Looks.verify``."""
    resource = await recorded.existing(home.store, name)
    asked = await _asked(home.store, resource, since, operation)
    if not asked.sets:
        raise PreconditionFailed(
            f"verifying the controllers of plane {name}", "it declares no sets of them", "see spec.controllerSets"
        )
    begins, ends = asked.since.timestamp(), asked.until.timestamp()
    async with open_plane(home, name) as plane:
        logs = await audit_logs(plane, texts_of(asked.sets), begins, await placed(home.store, name))
        policies = {plane.template_of(each).audit.policy for each in plane.memory.replicas}
    acts, missing = _acts(logs)
    missing += sorted({line for policy in policies for line in left_out(policy, asked.sets)})
    locks = [entry for kind in (TAKEN, LEFT) for entry in await home.store.journal(name, kind=kind)]
    verdicts = judged(
        asked.sets,
        tenures_of(locks),
        acts,
        begins,
        ends,
        before=asked.before,
        assignments=await assignments_of(home.store, resource, asked.sets),
        missing=missing,
        slack=slack,
    )
    return Verification(plane=name, operation=asked.operation, since=asked.since, until=asked.until, verdicts=verdicts)


async def _asked(store: Store, plane: ControlPlane, since: timedelta | None, operation: str | None) -> _Question:
    """The time that is verified, and the owners of the sets at that time. Raises NotFound."""
    found = await recorded.operations_of(store, plane.name)
    begun = [each for each in found if each.status.started_at is not None]
    now = datetime.now(UTC)
    chosen = _chosen(plane.name, begun, operation) if since is None else None
    if chosen is not None and chosen.status.started_at is not None:
        begins, ends = chosen.status.started_at, chosen.status.finished_at or now
        before, after = sets_of(chosen.spec.from_), sets_of(chosen.spec.to)
        name = chosen.metadata.name
    else:
        begins, ends, name = now - (since or _LAST), now, ""
        later = [each for each in begun if each.status.started_at is not None and each.status.started_at >= begins]
        before = sets_of(later[0].spec.from_) if later else plane.spec.controller_sets
        after = plane.spec.controller_sets
    sets = after or before or plane.spec.controller_sets
    return _Question(
        operation=name, since=begins, until=ends, sets=sets, before={each.name: each.owner for each in before}
    )


def _chosen(plane: str, begun: Sequence[Operation], operation: str | None) -> Operation | None:
    if operation is None:
        return next((each for each in reversed(begun) if _hands_over(each)), None)
    named = next((each for each in begun if each.metadata.name == operation), None)
    if named is None:
        doing = f"verifying the controllers of plane {plane}"
        raise NotFound(doing, f"no operation {operation} has begun", f"see 'history {plane}'")
    return named


def _hands_over(operation: Operation) -> bool:
    before = {each.name: each.owner for each in sets_of(operation.spec.from_)}
    return any(before.get(each.name, each.owner) is not each.owner for each in sets_of(operation.spec.to))


def _acts(logs: Sequence[AuditLog]) -> tuple[list[Act], list[str]]:
    """The actions in all of the logs, and which logs are missing or incomplete."""
    acts: list[Act] = []
    missing = [each.missing for each in logs if each.missing]
    for log in logs:
        found = read(log.lines, log.replica_at)
        acts += found.acts
        if found.unreadable:
            names = ", ".join(dict.fromkeys(each.replica for each in log.replicas))
            missing.append(f"{found.unreadable} lines of the audit log of {names} are not events")
    return acts, missing


async def placed(store: Store, plane: str) -> tuple[Placed, ...]:
    """The placements of replicas, deleted ones included."""
    released = {each.replica: each.time for each in await _done(store, plane, ReleaseReplica.kind)}
    put = [each for each in await _done(store, plane, PlaceReplica.kind) if {"site", "machine"} <= each.detail.keys()]
    return tuple(
        Placed(
            each.replica, str(each.detail["site"]), str(each.detail["machine"]), each.time, released.get(each.replica)
        )
        for each in put
    )


async def assignments_of(
    store: Store, plane: ControlPlane, sets: Sequence[ControllerSetSpec]
) -> tuple[Assignment, ...]:
    """The sets that the managers of replicas were configured with, and from when on, deleted ones included: from the
    revisions that they ran, as far as these are known, and kept.
    """
    kept = {each.name: each.spec for each in await store.list(ReplicaRevision)}
    return tuple(
        Assignment(manager.value, replica, since, _locks(kept.get(revision), manager, sets))
        for replica, since, revision in await _runs(store, plane)
        for manager in ControllerProgram
    )


async def _runs(store: Store, plane: ControlPlane) -> list[tuple[str, float, str]]:
    """Each replica with the revisions it ran, and from when on; "": not known, as before the first recorded one."""
    now = {each.name: each.revision for each in plane.status.memory.replicas}
    entries = [
        each for kind in (PlaceReplica.kind, AdoptRevision.kind) for each in await _done(store, plane.name, kind)
    ]
    entries.sort(key=lambda each: each.time)
    last = {each.replica: each.id for each in entries}
    runs = [(name, 0.0, "" if name in last else revision) for name, revision in now.items()]
    for each in entries:
        newest = now.get(each.replica, "") if last[each.replica] == each.id else ""
        runs.append((each.replica, each.time, str(each.detail.get("revision") or newest)))
    return runs


async def _done(store: Store, plane: str, kind: str) -> list[JournalEntry]:
    """The steps that were taken; what only writes to the plane's status is recorded as a note."""
    return [
        each
        for each in await store.journal(plane, kind=kind)
        if each.outcome in (EntryOutcome.DONE, EntryOutcome.NOTED)
    ]


def _locks(
    template: ReplicaTemplate | None, manager: ControllerProgram, sets: Sequence[ControllerSetSpec]
) -> Mapping[str, str] | None:
    """The lock of the manager of each set; None where it is not known."""
    if template is None:
        return None
    found = {each.name: {lock_of(template, manager, name) for name in each.controllers} - {""} for each in sets}
    return {name: min(locks, default="") for name, locks in found.items()}
