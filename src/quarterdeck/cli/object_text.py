"""How the objects of a plane differ between two moments of its backup, for people and programs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from quarterdeck.api.output.backups import BackupDifference, ChangedObject, ComparedPoint, RestoreLosses
from quarterdeck.backup.contents import DifferenceKind
from quarterdeck.backup.kubernetes.object_changes import ComparedMoment, MomentDifference, ObjectChange
from quarterdeck.cli.output import Column
from quarterdeck.cli.readable import when

#: So many names of each kind are shown to people.
_SHOWN = 3
#: What a restore does to objects, by what happened to them since the moment.
_UNDONE: Mapping[DifferenceKind, str] = {
    DifferenceKind.ADDED: "deleted",
    DifferenceKind.CHANGED: "set back",
    DifferenceKind.REMOVED: "brought back",
}

COLUMNS: tuple[Column[ChangedObject], ...] = (
    Column("change", lambda row: f"{row.change} (recreated)" if row.recreated else row.change),
    Column("resource", lambda row: row.resource),
    Column("group", lambda row: row.group, wide=True),
    Column("namespace", lambda row: row.namespace),
    Column("name", lambda row: row.name),
)


@dataclass(frozen=True, slots=True)
class Sorted:
    """The changes that people look for, and those of objects that programs write all the time."""

    wanted: tuple[ObjectChange, ...]
    churn: tuple[ObjectChange, ...]


def sort_out(changes: Iterable[ObjectChange], *, everything: bool = False) -> Sorted:
    """Leave out what programs write all the time, except with ``everything``."""
    wanted: list[ObjectChange] = []
    churn: list[ObjectChange] = []
    for each in changes:
        (churn if each.churn and not everything else wanted).append(each)
    return Sorted(tuple(wanted), tuple(churn))


def difference_result(plane: str, found: MomentDifference, chosen: Sorted) -> BackupDifference:
    """What ``backup diff`` prints."""
    return BackupDifference(
        plane=plane,
        before=_point(found.before),
        after=_point(found.after),
        objects=tuple(map(_row, chosen.wanted)),
        left_out=len(chosen.churn),
    )


def difference_lines(found: MomentDifference, chosen: Sorted) -> Iterator[str]:
    """The sentences for people beside the table."""
    yield f"from {_named(found.before)} to {_named(found.after)}"
    if chosen.churn:
        counts = ", ".join(f"{resource} {len(changes)}" for resource, changes in _by_resource(chosen.churn).items())
        yield f"left out: {counts}; --all lists them"


def losses_result(found: MomentDifference) -> RestoreLosses:
    """The losses of a restore."""
    wanted = sort_out(found.changes).wanted
    return RestoreLosses(
        newest=_point(found.after),
        objects=tuple(map(_row, wanted)),
        pods_created_later=tuple(_name(each) for each in wanted if each.new_pod),
    )


def losses_lines(found: MomentDifference) -> Iterator[str]:
    """The losses of a restore, by what it does to objects and by their kinds."""
    wanted = sort_out(found.changes).wanted
    if not wanted:
        yield f"objects: the same as at the newest moment of the backup ({_named(found.after)})"
        return
    yield f"objects, compared with the newest moment of the backup ({_named(found.after)}):"
    for kind, done in _UNDONE.items():
        for resource, changes in _by_resource(each for each in wanted if each.kind is kind).items():
            yield f"  {done}: {resource} {len(changes)} ({_few(changes)})"
    if pods := [each for each in wanted if each.new_pod]:
        yield (
            f"pods that were created since: {len(pods)} ({_few(pods)}); they go on running on their nodes, and the"
            " restored plane does not know them"
        )


def _by_resource(changes: Iterable[ObjectChange]) -> Mapping[str, list[ObjectChange]]:
    found: defaultdict[str, list[ObjectChange]] = defaultdict(list)
    for each in changes:
        path = each.path
        found[f"{path.resource}.{path.group}" if path.group else path.resource].append(each)
    return dict(sorted(found.items()))


def _few(changes: list[ObjectChange]) -> str:
    names = [_name(each) for each in changes[:_SHOWN]]
    return ", ".join((*names, *(["..."] if len(changes) > _SHOWN else [])))


def _name(change: ObjectChange) -> str:
    path = change.path
    return f"{path.namespace}/{path.name}" if path.namespace else path.name


def _named(moment: ComparedMoment) -> str:
    return f"revision {moment.revision:,} of epoch {moment.epoch}, backed up by {when(moment.at)}"


def _point(moment: ComparedMoment) -> ComparedPoint:
    return ComparedPoint(epoch=moment.epoch, revision=moment.revision, backed_up_at=moment.at)


def _row(change: ObjectChange) -> ChangedObject:
    path = change.path
    return ChangedObject(
        name=path.name,
        change=change.kind.value,
        recreated=change.recreated,
        resource=path.resource,
        group=path.group or None,
        namespace=path.namespace or None,
    )
