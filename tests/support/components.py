"""Programs of replicas, for tests that say of revisions which programs they have."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath

from quarterdeck.api.values import DEFAULT_ETCD_VERSION, DEFAULT_KUBERNETES_VERSION
from quarterdeck.components.catalogue import CATALOGUE
from quarterdeck.components.record import Flags
from quarterdeck.model.components import NAMED, Component, ReplicaPrograms

#: The programs that every replica has, and the controllers among them.
ALWAYS = ReplicaPrograms().of("")
CONTROLLERS = tuple(each for each in ALWAYS if each.is_controller)


def having(*, events: Iterable[str] = (), cloud: Iterable[str] = ()) -> ReplicaPrograms:
    """Programs of replicas of which those of the revisions ``events`` keep events apart, and those of ``cloud`` have a
    cloud controller manager.
    """
    optional = {Component.EVENTS_ETCD: frozenset(events), Component.CLOUD_CONTROLLER_MANAGER: frozenset(cloud)}
    names = sorted(frozenset[str]().union(*optional.values()))
    has = {name: tuple(each for each in NAMED if name in optional.get(each, {name})) for name in names}
    return ReplicaPrograms(NAMED, tuple(has.items()))


def programs_in(folder: str, *kubernetes: str) -> dict[tuple[Component, str], PurePosixPath]:
    """The paths of all programs, in the default versions and these of Kubernetes."""
    versions = (DEFAULT_KUBERNETES_VERSION, DEFAULT_ETCD_VERSION, *kubernetes)
    return {(each, version): PurePosixPath(folder) / each for each in NAMED for version in versions}


def rules_of(component: Component) -> Flags:
    """What is said of users' flags of a program."""
    flags = CATALOGUE[component].flags
    assert flags is not None
    return flags
