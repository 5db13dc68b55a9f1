"""What all steps have: where, why, in which words, and what each leaves in the plane's memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from quarterdeck.model.clusters import CALLED, Cluster
from quarterdeck.model.memory import Memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """What all steps have. ``site`` is "" for steps that only write the plane's status or its DNS record; ``why`` is
    one sentence for a person.
    """

    site: str
    why: str
    undoable: ClassVar[bool] = True

    @property
    def words(self) -> str:
        """What the step does, in a few words for people."""
        raise NotImplementedError(f"{type(self).__name__} has no words")

    @property
    def takes_long(self) -> str:
        """Why the step may take more than a few seconds, for people; "" for most."""
        return ""

    def remembered(self, memory: Memory, now: float) -> Memory:
        """The memory after the step, taken at ``now`` (seconds on its timeline); ``remember`` asks for it."""
        return memory


@dataclass(frozen=True, slots=True, kw_only=True)
class OfCluster(Base):
    """A step about the members of one etcd cluster. What it leaves in the memory is told of the main one; of another
    one it is the same (``Memory.of``).
    """

    cluster: Cluster = Cluster.MAIN

    @property
    def new_members(self) -> tuple[str, ...]:
        """The replicas that have a member of the cluster from then on."""
        return ()

    @property
    def words(self) -> str:
        """What the step does to which cluster."""
        return self.told if self.cluster is Cluster.MAIN else f"{self.told} of {CALLED[self.cluster]}"

    @property
    def told(self) -> str:
        """What the step does, whatever the cluster."""
        raise NotImplementedError(f"{type(self).__name__} has no words")
