"""What the managers of a plane's replicas were told of sets of controllers, and from when on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from quarterdeck.actions.audit_lines import Placed
from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.plane.controllers import ControllerSet, Manager
from quarterdeck.api.revision import ReplicaRevision, ReplicaTemplate
from quarterdeck.components.controller.sets import lock_of
from quarterdeck.handover.holding import Duty
from quarterdeck.model.steps.placing import PlaceReplica, ReleaseReplica
from quarterdeck.model.steps.revisions import AdoptRevision
from quarterdeck.stores.port import JournalEntry, Outcome, Store


async def placed(store: Store, plane: str) -> tuple[Placed, ...]:
    """Where replicas were put, those too that are gone."""
    released = {each.replica: each.time for each in await _done(store, plane, ReleaseReplica.kind)}
    put = [each for each in await _done(store, plane, PlaceReplica.kind) if {"site", "machine"} <= each.detail.keys()]
    return tuple(
        Placed(
            each.replica, str(each.detail["site"]), str(each.detail["machine"]), each.time, released.get(each.replica)
        )
        for each in put
    )


async def duties(store: Store, plane: ControlPlane, sets: Sequence[ControllerSet]) -> tuple[Duty, ...]:
    """Of all replicas, those too that are gone: by the revisions that they ran, as far as these are known, and kept."""
    kept = {each.name: each.spec for each in await store.list(ReplicaRevision)}
    return tuple(
        Duty(manager.value, replica, since, _locks(kept.get(revision), manager, sets))
        for replica, since, revision in await _runs(store, plane)
        for manager in Manager
    )


async def _runs(store: Store, plane: ControlPlane) -> list[tuple[str, float, str]]:
    """Each replica with what it ran, and from when on; "": that is not known, as before the first that is told of."""
    now = {each.name: each.revision for each in plane.status.memory.replicas}
    told = [each for kind in (PlaceReplica.kind, AdoptRevision.kind) for each in await _done(store, plane.name, kind)]
    told.sort(key=lambda each: each.time)
    last = {each.replica: each.id for each in told}
    runs = [(name, 0.0, "" if name in last else revision) for name, revision in now.items()]
    for each in told:
        newest = now.get(each.replica, "") if last[each.replica] == each.id else ""
        runs.append((each.replica, each.time, str(each.detail.get("revision") or newest)))
    return runs


async def _done(store: Store, plane: str, kind: str) -> list[JournalEntry]:
    """Those that were taken; what only writes to the plane's status is noted."""
    return [each for each in await store.journal(plane, kind=kind) if each.outcome in (Outcome.DONE, Outcome.NOTED)]


def _locks(
    template: ReplicaTemplate | None, manager: Manager, sets: Sequence[ControllerSet]
) -> Mapping[str, str] | None:
    """The lock under which a manager runs each of the sets; None where it is not known."""
    if template is None:
        return None
    found = {each.name: {lock_of(template, manager, name) for name in each.controllers} - {""} for each in sets}
    return {name: min(locks, default="") for name, locks in found.items()}
