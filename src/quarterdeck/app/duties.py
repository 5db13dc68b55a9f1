"""What the managers of a plane's replicas were told of sets of controllers, and from when on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from quarterdeck.actions.audit_lines import Placed
from quarterdeck.api.controllers import ControllerSet, Manager
from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.revision import ReplicaRevision, ReplicaTemplate
from quarterdeck.components.controller_sets import lock_of
from quarterdeck.handover.holding import Duty
from quarterdeck.stores.port import JournalEntry, Outcome, Store


async def placed(store: Store, plane: str) -> tuple[Placed, ...]:
    """Where replicas were put, those too that are gone."""
    released = {each.replica: each.time for each in await _done(store, plane, "ReleaseReplica")}
    put = [each for each in await _done(store, plane, "PlaceReplica") if {"site", "machine"} <= each.detail.keys()]
    return tuple(
        Placed(
            each.replica, str(each.detail["site"]), str(each.detail["machine"]), each.time, released.get(each.replica)
        )
        for each in put
    )


async def duties(store: Store, plane: ControlPlane, sets: Sequence[ControllerSet]) -> tuple[Duty, ...]:
    """Of all replicas, those too that are gone: by the revisions that they ran, as far as these are still kept."""
    kinds = ("PlaceReplica", "AdoptRevision")
    given = [each for kind in kinds for each in await _done(store, plane.name, kind) if "revision" in each.detail]
    runs = [(each.replica, each.time, str(each.detail["revision"])) for each in given]
    told = {each.replica for each in given}
    runs += [(each.name, 0.0, each.revision) for each in plane.status.memory.replicas if each.name not in told]
    kept = {each.name: each.spec for each in await store.list(ReplicaRevision)}
    return tuple(
        Duty(manager.value, replica, since, _locks(kept.get(revision), manager, sets))
        for replica, since, revision in runs
        for manager in Manager
    )


async def _done(store: Store, plane: str, kind: str) -> list[JournalEntry]:
    taken = (Outcome.DONE, Outcome.NOTED)  # what is only written down has no beginning
    return [each for each in await store.journal(plane, kind=kind) if each.outcome in taken]


def _locks(
    template: ReplicaTemplate | None, manager: Manager, sets: Sequence[ControllerSet]
) -> Mapping[str, str] | None:
    """The lock under which a manager runs each of the sets; None where it is not known."""
    if template is None:
        return None
    found = {each.name: {lock_of(template, manager, name) for name in each.controllers} - {""} for each in sets}
    return {name: min(locks, default="") for name, locks in found.items()}
