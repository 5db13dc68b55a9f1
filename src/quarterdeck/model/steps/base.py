"""What all steps have: a kind, where, why, in which words, what they claim, and what they leave in the memory.

A kind of step is one class, in the module of its family. Where else something is done by kind (``actions`` carries
steps out, ``planner.simulated`` has their effects), the tables are in modules of the same names.
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
    """A thing that a step changes: what kind of thing, and which one."""

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
    #: Nothing is done but that the step is written down.
    only_recorded: ClassVar[bool] = False
    #: The step is written down before it is done, as well as after: it may have happened as soon as it begins.
    recorded_first: ClassVar[bool] = False
    #: Plans for people show the step.
    shown: ClassVar[bool] = True

    @property
    def words(self) -> str:
        """What the step does, in a few words for people."""
        raise NotImplementedError(f"{type(self).__name__} has no words")

    @property
    def takes_long(self) -> str:
        """Why the step may take more than a few seconds, for people; "" for most."""
        return ""

    @property
    def claim(self) -> Claim | None:
        """What the step changes that another rule may want otherwise; None for nothing.

        As little as possible: that etcd of a replica cannot be started must not keep its apiserver from being stopped,
        which its removal waits for.
        """
        return None

    @property
    def facts(self) -> Mapping[str, str]:
        """What the journal keeps of the step beside its words: of a replica that is gone nothing else knows it."""
        return {}

    def remembered(self, memory: Memory, now: float) -> Memory:
        """The memory after the step, taken at ``now`` (seconds on its timeline); ``remember`` asks for it."""
        return memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Note(Step):
    """A step that only writes the plane's memory. The driver writes all notes of a plan in one go. Notes claim nothing:
    where the memory cannot be written nothing at all is done.
    """

    only_recorded: ClassVar[bool] = True
    shown: ClassVar[bool] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class OfCluster(Step):
    """A step about the members of one etcd cluster. What it leaves in the memory is told of the main one; of another
    one it is the same (``Memory.of``).
    """

    cluster: Cluster = Cluster.MAIN

    @property
    def new_members(self) -> tuple[str, ...]:
        """The replicas that have a member of the cluster from then on."""
        return ()

    @property
    @override
    def words(self) -> str:
        """What the step does to which cluster."""
        return self.told if self.cluster is Cluster.MAIN else f"{self.told} of {CALLED[self.cluster]}"

    @property
    def told(self) -> str:
        """What the step does, whatever the cluster."""
        raise NotImplementedError(f"{type(self).__name__} has no words")


@dataclass(frozen=True, slots=True, kw_only=True)
class OfUnit(Step):
    """A step about one program of a replica. It claims that unit alone, and not all of the replica."""

    replica: str
    component: Component

    @property
    @override
    def claim(self) -> Claim | None:
        return Claim("unit", f"{self.component} of {self.replica}")


def cluster_of(step: Step) -> Cluster:
    """The etcd cluster that a step is about: that of a member which starts or stops, too. The main one if it is about
    none.
    """
    if isinstance(step, OfUnit):
        return CLUSTER.get(step.component, Cluster.MAIN)
    return getattr(step, "cluster", Cluster.MAIN)
