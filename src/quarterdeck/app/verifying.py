"""Whether two managers ever ran the same controllers of a plane, from what locks and audit logs say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from quarterdeck.actions.audit_lines import AuditLog, audit_logs
from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.operation import Operation
from quarterdeck.api.plane.controllers import ControllerSet, Manager
from quarterdeck.app.duties import duties, placed
from quarterdeck.engine.controller_sets.handing import sets_of
from quarterdeck.engine.workspace import operations
from quarterdeck.engine.workspace.home import Home
from quarterdeck.engine.workspace.open_plane import open_plane
from quarterdeck.errors import NotFound, PreconditionFailed
from quarterdeck.handover.acts import Act, read, texts_of
from quarterdeck.handover.judging import SLACK, judged
from quarterdeck.handover.policies import left_out
from quarterdeck.handover.tenures import LEFT, TAKEN, tenures_of
from quarterdeck.handover.verdicts import Finding, Verdict
from quarterdeck.stores.port import Store

_LAST = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """What was found of each set of a plane's controllers from ``since`` to ``until``: the time of an ``operation``, if
    it names one.
    """

    plane: str
    operation: str
    since: datetime
    until: datetime
    verdicts: tuple[Verdict, ...]

    @property
    def finding(self) -> Finding:
        """The worst of them."""
        found = {each.finding for each in self.verdicts}
        return next(each for each in (Finding.BROKEN, Finding.UNKNOWN, Finding.PROVEN) if each in found)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    operation: str
    since: datetime
    until: datetime
    sets: tuple[ControllerSet, ...]
    before: Mapping[str, Manager]


async def verified(
    home: Home, name: str, *, since: timedelta | None, operation: str | None, slack: float = SLACK
) -> Verification:
    """See ``Looks.verify``."""
    resource = await operations.existing(home.store, name)
    asked = await _asked(home.store, resource, since, operation)
    if not asked.sets:
        raise PreconditionFailed(
            f"verifying who ran controllers of plane {name}", "it declares no sets of them", "see spec.controllerSets"
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
        duties=await duties(home.store, resource, asked.sets),
        missing=missing,
        slack=slack,
    )
    return Verification(plane=name, operation=asked.operation, since=asked.since, until=asked.until, verdicts=verdicts)


async def _asked(store: Store, plane: ControlPlane, since: timedelta | None, operation: str | None) -> _Asked:
    """Which time is looked at, and whose the sets were then. Raises NotFound."""
    found = await operations.operations_of(store, plane.name)
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
    return _Asked(
        operation=name, since=begins, until=ends, sets=sets, before={each.name: each.owner for each in before}
    )


def _chosen(plane: str, begun: Sequence[Operation], operation: str | None) -> Operation | None:
    if operation is None:
        return next((each for each in reversed(begun) if _hands_over(each)), None)
    named = next((each for each in begun if each.metadata.name == operation), None)
    if named is None:
        doing = f"verifying who ran controllers of plane {plane}"
        raise NotFound(doing, f"no operation {operation} has begun", f"see 'history {plane}'")
    return named


def _hands_over(operation: Operation) -> bool:
    before = {each.name: each.owner for each in sets_of(operation.spec.from_)}
    return any(before.get(each.name, each.owner) is not each.owner for each in sets_of(operation.spec.to))


def _acts(logs: Sequence[AuditLog]) -> tuple[list[Act], list[str]]:
    """What was done by all of the logs, and what of them is missing."""
    acts: list[Act] = []
    missing = [each.missing for each in logs if each.missing]
    for log in logs:
        found = read(log.lines, log.replica_at)
        acts += found.acts
        if found.unreadable:
            names = ", ".join(dict.fromkeys(each.replica for each in log.replicas))
            missing.append(f"lines of the audit log of {names} are no events: {found.unreadable} of them")
    return acts, missing
