"""What all steps have: kind, site, reason, words, claim, and change of the memory.

A kind of step is one class, in the module of its family. Other tables by kind (``actions`` carries steps out,
``planner.simulated`` has their effects) are in modules of the same names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from typing_extensions import override

from quarterdeck.model.clusters import CALLED, CLUSTER, Cluster
from quarterdeck.model.components import Component
from quarterdeck.model.memory import Memory


@dataclass(frozen=True, slots=True)
class Claim:
    """A thing that a step changes: its kind, and which one."""

    kind: str
    of: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step. ``site`` is "" for steps that only write the plane's status or its DNS record; ``why`` is one sentence
    for a person.
    """

    site: str
    why: str
    #: The name of the kind in stored and public data. It never changes, whatever the class is called.
    kind: ClassVar[str]
    undoable: ClassVar[bool] = True
    #: The step only writes a record.
    only_recorded: ClassVar[bool] = False
    #: The step is recorded before it is carried out as well as after: it may take effect as soon as it begins.
    recorded_first: ClassVar[bool] = False
    #: Plans for people show the step.
    shown: ClassVar[bool] = True

    @property
    def words(self) -> str:
        """The action of the step, in a few words for people."""
        raise NotImplementedError(f"{type(self).__name__} has no words")

    @property
    def takes_long(self) -> str:
        """Why the step may take more than a few seconds, for people; "" for most."""
        return ""

    @property
    def claim(self) -> Claim | None:
        """The thing that the step changes and that another rule may want to change as well; None for none.

        As small as possible: an etcd that cannot be started must not keep the apiserver of its replica from being
        stopped, for which the replica's removal waits.
        """
        return None

    @property
    def facts(self) -> Mapping[str, str]:
        """Facts for the journal besides the words: after the replica is released nothing else has them."""
        return {}

    def remembered(self, memory: Memory, now: float) -> Memory:
        """The memory after the step, taken at ``now`` (seconds on its timeline); called by ``remember``."""
        return memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Note(Step):
    """A step that only writes the plane's memory. The driver writes all notes of a plan at once. Notes claim nothing:
    where the memory cannot be written no step is taken.
    """

    only_recorded: ClassVar[bool] = True
    shown: ClassVar[bool] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class OfCluster(Step):
    """A step about the members of one etcd cluster. Its change of the memory is written for the main cluster, and
    applies to the other one in the same way (``Memory.of``).
    """

    cluster: Cluster = Cluster.MAIN

    @property
    def new_members(self) -> tuple[str, ...]:
        """The replicas that have a member of the cluster after the step."""
        return ()

    @property
    @override
    def words(self) -> str:
        """The action of the step, with the cluster."""
        return self.description if self.cluster is Cluster.MAIN else f"{self.description} of {CALLED[self.cluster]}"

    @property
    def description(self) -> str:
        """The action of the step, without the cluster."""
        raise NotImplementedError(f"{type(self).__name__} has no words")


@dataclass(frozen=True, slots=True, kw_only=True)
class OfUnit(Step):
    """A step about one program of a replica. It claims only that unit, not the replica."""

    replica: str
    component: Component

    @property
    @override
    def claim(self) -> Claim | None:
        return Claim("unit", f"{self.component} of {self.replica}")


def cluster_of(step: Step) -> Cluster:
    """The etcd cluster that a step is about, also for steps that start or stop a member. The main one for other
    steps.
    """
    if isinstance(step, OfUnit):
        return CLUSTER.get(step.component, Cluster.MAIN)
    return getattr(step, "cluster", Cluster.MAIN)
