"""The programs of a replica, the programs of each revision, and the effect of a change of revision."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Self


class Component(str):
    """The name of a program of a replica, with the facts that the planner uses. Equal names are the same program;
    ``components.catalogue`` has a row with everything else for each.

    ``depends``: the programs of its own replica that it uses; an apiserver uses only its own members of etcd, and
    controllers only their own apiserver. ``optional``: not every revision has it. ``manages``: it can run controllers
    that another program of this kind can run as well.
    """

    __slots__ = ("depends", "manages", "optional")

    depends: tuple[Component, ...]
    optional: bool
    manages: bool

    ETCD: ClassVar[Component]
    EVENTS_ETCD: ClassVar[Component]
    APISERVER: ClassVar[Component]
    CONTROLLER_MANAGER: ClassVar[Component]
    SCHEDULER: ClassVar[Component]
    CLOUD_CONTROLLER_MANAGER: ClassVar[Component]

    def __new__(
        cls, name: str, *, depends: tuple[Component, ...] = (), optional: bool = False, manages: bool = False
    ) -> Self:
        """A program of that name."""
        made = super().__new__(cls, name)
        made.depends, made.optional, made.manages = depends, optional, manages
        return made

    @property
    def is_controller(self) -> bool:
        """Whether it needs an apiserver, and does not serve clients."""
        return Component.APISERVER in self.depends


Component.ETCD = Component("etcd")
Component.EVENTS_ETCD = Component("etcd-events", optional=True)
Component.APISERVER = Component("kube-apiserver", depends=(Component.ETCD, Component.EVENTS_ETCD))
Component.CONTROLLER_MANAGER = Component("kube-controller-manager", depends=(Component.APISERVER,), manages=True)
Component.SCHEDULER = Component("kube-scheduler", depends=(Component.APISERVER,))
Component.CLOUD_CONTROLLER_MANAGER = Component(
    "cloud-controller-manager", depends=(Component.APISERVER,), optional=True, manages=True
)

#: The programs that code names, in the order in which they start. The catalogue may have others.
NAMED = (
    Component.ETCD,
    Component.EVENTS_ETCD,
    Component.APISERVER,
    Component.CONTROLLER_MANAGER,
    Component.SCHEDULER,
    Component.CLOUD_CONTROLLER_MANAGER,
)


@dataclass(frozen=True, slots=True)
class ReplicaPrograms:
    """``every`` program that a replica may have, in start order, and the programs of each revision, in the same order.
    A revision that is not named has all programs that are not optional.
    """

    every: tuple[Component, ...] = NAMED
    by_revision: tuple[tuple[str, tuple[Component, ...]], ...] = ()

    def of(self, revision: str) -> tuple[Component, ...]:
        """The programs that replicas of a revision have."""
        for name, has in self.by_revision:
            if name == revision:
                return has
        return tuple(each for each in self.every if not each.optional)

    def having(self, component: Component) -> frozenset[str]:
        """The revisions that have a program."""
        return frozenset(name for name, has in self.by_revision if component in has)

    @property
    def controllers(self) -> tuple[Component, ...]:
        """All programs that need an apiserver and do not serve clients."""
        return tuple(each for each in self.every if each.is_controller)

    @property
    def managers(self) -> frozenset[Component]:
        """The programs that can run the same controllers."""
        return frozenset(each for each in self.every if each.manages)

    def with_dependents(self, components: Iterable[Component]) -> frozenset[Component]:
        """These, and all that depend on any of them."""
        found = set(components)
        for each in self.every:  # in the order in which they start
            if found.intersection(each.depends):
                found.add(each)
        return frozenset(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaChange:
    """The change that brings a replica from one revision to another: a replacement (``exchange``: another replica takes
    its place), restarts of programs, or only new files for programs that reload them while they run (``reload``: none
    of those that stop). ``downgrade``: the programs of the new revision are of an older minor version of Kubernetes,
    or lack an encryption key, and must be able to read everything that is stored.
    """

    exchange: bool = False
    restart: frozenset[Component] = frozenset()
    reload: frozenset[Component] = frozenset()
    downgrade: bool = False
