"""How the objects of a plane differ between two moments of its backup."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from quarterdeck.backup.chain import BackupMoment
from quarterdeck.backup.contents import DatabaseMoment, DifferenceKind, KeyDifference, differences
from quarterdeck.components.stored_keys import PREFIX, ResourcePath, resource_path

#: What programs write all the time for themselves: most of what differs between two moments, and nobody's loss.
#: ``ranges`` are the allocators of addresses and ports, which an apiserver repairs by itself.
_CHURN: Final = frozenset({"events", "leases", "masterleases", "peerserverleases", "ranges"})
#: The resource of keys that are no objects.
_NO_OBJECT: Final = "keys"
_PODS: Final = "pods"


@dataclass(frozen=True, slots=True)
class ObjectChange:
    """What happened to an object. ``recreated``: it is CHANGED, and another one than before: it was deleted and created
    again in between.
    """

    kind: DifferenceKind
    path: ResourcePath
    recreated: bool = False

    @property
    def churn(self) -> bool:
        """Whether programs write such objects all the time for themselves."""
        return not self.path.group and self.path.resource in (*_CHURN, _NO_OBJECT)

    @property
    def new_pod(self) -> bool:
        """Whether it is a pod that did not exist before."""
        new = self.recreated or self.kind is DifferenceKind.ADDED
        return new and not self.path.group and self.path.resource == _PODS


@dataclass(frozen=True, slots=True)
class ComparedMoment:
    """A moment of a backup that was compared. ``at``: when its newest part was recorded."""

    epoch: int
    revision: int
    at: datetime


@dataclass(frozen=True, slots=True)
class MomentDifference:
    """What happened to the objects of a plane from one moment to another one, in the order of their keys."""

    before: ComparedMoment
    after: ComparedMoment
    changes: tuple[ObjectChange, ...]


def compared(moment: BackupMoment) -> ComparedMoment:
    """A moment as a comparison names it."""
    return ComparedMoment(moment.full.epoch, moment.revision, moment.at)


def object_changes(before: DatabaseMoment, after: DatabaseMoment) -> tuple[ObjectChange, ...]:
    """What happened to the objects between two databases. Blocks; raises as ``differences`` does."""
    return tuple(_change(each) for each in differences(before, after, prefix=f"{PREFIX}/".encode()))


def _change(difference: KeyDifference) -> ObjectChange:
    path = resource_path(difference.key)
    if path is None:
        path = ResourcePath("", _NO_OBJECT, "", difference.key.decode(errors="replace"))
    return ObjectChange(difference.kind, path, difference.recreated)
