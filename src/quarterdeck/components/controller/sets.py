"""Controller sets that migrate between managers: which of them each manager runs, and under which lock.

Two managers may run the same controller on different replicas only under the same lock. Stock managers have their
*main* lock, which has their name, and one additional *migration lock* (LeaderMigrationConfiguration), which they try to
take as soon as they hold the main one, whether or not they have controllers for it. So only the owner of a set is
configured with its lock, and the other manager has its controllers turned off. Where one of them can hold no migration
lock, no manager runs the set during the migration.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from quarterdeck.api.plane.controllers import ControllerProgram, ControllerSetSpec
from quarterdeck.api.revision import ControllerSetTemplate, Guard, ReplicaTemplate
from quarterdeck.components.controller.names import enabled, has
from quarterdeck.components.upstream_versions import holds_migration_locks, minor
from quarterdeck.model.components import Component

#: What ``--controllers`` names all controllers with that are not off by default.
ALL = "*"


def at_rest(sets: Sequence[ControllerSetSpec], kubernetes: str) -> tuple[ControllerSetTemplate, ...]:
    """The sets while none of them migrates: of those of one owner the first is under its own lock."""
    firsts = {each.owner: each.name for each in reversed(sets)}
    own = {each.name for each in sets if firsts[each.owner] == each.name and _has_locks(each.owner, kubernetes)}
    return tuple(_as(each, each.owner, Guard.SET if each.name in own else Guard.MANAGER) for each in sets)


def _has_locks(manager: ControllerProgram, kubernetes: str) -> bool:
    return manager is ControllerProgram.CLOUD or holds_migration_locks(kubernetes)


def own(sets: Sequence[ControllerSetTemplate], manager: ControllerProgram) -> ControllerSetTemplate | None:
    """The set that a manager must run under the set's own lock; None if there is none."""
    return next((each for each in sets if each.guard is Guard.SET and each.owner is manager), None)


def locks(template: ReplicaTemplate, component: Component) -> tuple[str, ...]:
    """The locks of sets that such a program of each replica tries to hold besides its own."""
    mine = (each for each in template.controller_sets or () if each.owner.component == component)
    return tuple(each.lock for each in mine if each.guard is Guard.SET)


def turned_off(sets: Sequence[ControllerSetTemplate], manager: ControllerProgram, kubernetes: str) -> tuple[str, ...]:
    """The controllers that a manager must not run: those of another one, and those that temporarily none runs. A
    manager exits when its flags name an unknown controller.
    """
    theirs = (each for each in sets if each.owner is not manager or each.guard is Guard.NONE)
    return tuple(name for each in theirs for name in each.controllers if _may_have(manager, kubernetes, name))


def _may_have(manager: ControllerProgram, kubernetes: str, name: str) -> bool:
    """Whether a manager can run a controller; what a cloud controller manager has was asked of its program."""
    return manager is ControllerProgram.CLOUD or has(manager, minor(kubernetes), name)


def changed_managers(before: ReplicaTemplate, after: ReplicaTemplate) -> frozenset[Component]:
    """The managers whose configuration of sets differs between two revisions."""

    def run_by(template: ReplicaTemplate, manager: ControllerProgram) -> object:
        sets = template.controller_sets or ()
        mine = own(sets, manager)
        off = turned_off(sets, manager, template.kubernetes_version)
        return bool(sets), mine and (mine.lock, mine.controllers), off

    return frozenset(each.component for each in ControllerProgram if run_by(before, each) != run_by(after, each))


def lock_of(template: ReplicaTemplate, manager: ControllerProgram, controller: str) -> str:
    """The lock under which a manager runs a controller; "" if it does not run it."""
    if manager is ControllerProgram.CLOUD and template.cloud_controller_manager is None:
        return ""
    for each in template.controller_sets or ():
        if controller in each.controllers:
            if each.owner is not manager or each.guard is Guard.NONE:
                return ""
            return each.lock if each.guard is Guard.SET else manager.value
    runs = enabled(flag_of(template, manager), controller, ())
    return manager.value if runs and _may_have(manager, template.kubernetes_version, controller) else ""


def flag_of(template: ReplicaTemplate, manager: ControllerProgram) -> str:
    """A manager's ``--controllers`` as set by the user."""
    cloud = template.cloud_controller_manager
    flags = (
        template.extra_args.kube_controller_manager
        if manager is ControllerProgram.KUBE
        else cloud.flags
        if cloud
        else {}
    )
    return flags.get("controllers", ALL)


def apart(one: ReplicaTemplate, other: ReplicaTemplate) -> bool:
    """Whether controllers of replicas of these two revisions must not run at the same time: two managers would run one
    controller under two locks. A conflict within one of the revisions does not count.
    """
    named = {name for each in (one, other) for one_set in each.controller_sets or () for name in one_set.controllers}
    return any(_overlap(one, other, name) for name in named)


def _overlap(one: ReplicaTemplate, other: ReplicaTemplate, controller: str) -> bool:
    kube, cloud = ([lock_of(each, manager, controller) for each in (one, other)] for manager in ControllerProgram)
    there = set(zip(kube, cloud, strict=True))
    across = {(kube[0], cloud[1]), (kube[1], cloud[0])}
    return any(all(pair) and pair[0] != pair[1] for pair in across - there)


def with_sets_of(start: ReplicaTemplate, goal: ReplicaTemplate) -> ReplicaTemplate:
    """The goal with all controller sets of both where ``start`` has them, under the main locks of their managers."""
    every = (*(goal.controller_sets or ()), *_gone(start, goal))
    kept = tuple(_as(each, _owner(start, each), Guard.MANAGER) for each in every) or None
    cloud = goal.cloud_controller_manager or start.cloud_controller_manager
    return goal.model_copy(update={"controller_sets": kept, "cloud_controller_manager": cloud})


def stops(start: ReplicaTemplate, goal: ReplicaTemplate) -> Iterator[ReplicaTemplate]:
    """Revisions by which sets migrate from where ``start`` has them to where the goal has them: the goal, with one set
    after the other where it was, alone, then under its lock there, or nowhere, then under its lock where it is to be.
    Sets migrate one after another: a manager has one migration lock.
    """
    first, gone = with_sets_of(start, goal), tuple(_gone(start, goal))
    now = {each.name: each for each in first.controller_sets or ()}
    for each in (*(goal.controller_sets or ()), *gone):
        before, after = now[each.name].owner, each.owner
        locks = all(_has_locks(owner, goal.kubernetes_version) for owner in (before, after))
        handed = [(before, Guard.SET), (after, Guard.SET)] if locks else [(before, Guard.NONE)]
        last = [(after, Guard.MANAGER)] if each in gone else []
        for owner, guard in ((before, Guard.MANAGER), *handed, *last):
            there = {**now, each.name: _as(each, owner, guard)}
            yield first.model_copy(update={"controller_sets": tuple(there.values())})
        now[each.name] = _as(each, after, Guard.MANAGER)


def _gone(start: ReplicaTemplate, goal: ReplicaTemplate) -> Iterator[ControllerSetTemplate]:
    """The sets that are no longer declared, each with the owner that follows from flags alone."""
    kept = {each.name for each in goal.controller_sets or ()}
    for each in start.controller_sets or ():
        if each.name not in kept:
            yield _as(each, _by_flags(goal, each), Guard.MANAGER)


def _owner(start: ReplicaTemplate, wanted: ControllerSetTemplate) -> ControllerProgram:
    """The manager that ran a set: as declared, else as flags say. Where both may have run it, it is the older one."""
    declared = {each.name: each.owner for each in start.controller_sets or ()}
    return declared.get(wanted.name) or _by_flags(start, wanted)


def _by_flags(template: ReplicaTemplate, one: ControllerSetSpec) -> ControllerProgram:
    return (
        ControllerProgram.KUBE
        if any(lock_of(template, ControllerProgram.KUBE, each) for each in one.controllers)
        else ControllerProgram.CLOUD
    )


def _as(each: ControllerSetSpec, owner: ControllerProgram, guard: Guard) -> ControllerSetTemplate:
    return ControllerSetTemplate(name=each.name, lock=each.lock, controllers=each.controllers, owner=owner, guard=guard)
