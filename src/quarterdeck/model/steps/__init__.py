"""Steps: the only things that the engine ever does, as data.

Each names the one site that it touches, why it is taken (one sentence for a person), what it does in a few words,
whether it can be undone, and what it leaves in the plane's memory. They come in families, a module each; what is
simulated of them, and how they are carried out, is in modules of the same names (``planner.simulated``, ``actions``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from quarterdeck.model.clusters import CLUSTER, Cluster
from quarterdeck.model.steps.attaching import AttachVolumes, LeaveMachine
from quarterdeck.model.steps.clusters import (
    DecideBootstrap,
    ForgetCluster,
    NoteCluster,
    NoteCreated,
    NoteMembers,
    ReleaseMember,
)
from quarterdeck.model.steps.healing import Condemn, CordonMachine, NoteAiling, NoteDown, Pardon
from quarterdeck.model.steps.members import (
    AddLearner,
    Promote,
    ReaddressMember,
    RemoveMember,
    Swap,
    TransferLeadership,
)
from quarterdeck.model.steps.placing import PlaceReplica, ReleaseReplica
from quarterdeck.model.steps.recovery import BeginEpoch, DeleteKept, NoteQuorum, RestoreMember, WithdrawConsent
from quarterdeck.model.steps.revisions import AdoptRevision, NoteProven, NoteUnready, RejectRevision, RetryRevision
from quarterdeck.model.steps.traffic import (
    LeadTo,
    NoteDraining,
    NoteLifetime,
    NoteRecord,
    NoteUnsettled,
    RemoveRecord,
    SetBackends,
    SetRecord,
    StopBalancer,
)
from quarterdeck.model.steps.units import ReloadUnit, RestartUnit, ReviveUnit, StartUnit, StopUnit
from quarterdeck.model.steps.upkeep import Compact, Defragment, Disarm, NoteDiffering, NoteFull
from quarterdeck.model.waiting import Wait

Step: TypeAlias = (
    PlaceReplica
    | DecideBootstrap
    | NoteCreated
    | NoteCluster
    | NoteMembers
    | AdoptRevision
    | NoteProven
    | NoteUnready
    | RejectRevision
    | RetryRevision
    | NoteDown
    | NoteAiling
    | ReviveUnit
    | Condemn
    | Pardon
    | CordonMachine
    | StartUnit
    | StopUnit
    | RestartUnit
    | ReloadUnit
    | AttachVolumes
    | LeaveMachine
    | AddLearner
    | Promote
    | TransferLeadership
    | ReaddressMember
    | RemoveMember
    | Swap
    | NoteFull
    | NoteDiffering
    | Compact
    | Defragment
    | Disarm
    | SetBackends
    | StopBalancer
    | SetRecord
    | LeadTo
    | RemoveRecord
    | NoteRecord
    | NoteUnsettled
    | NoteLifetime
    | NoteDraining
    | ForgetCluster
    | ReleaseMember
    | ReleaseReplica
    | NoteQuorum
    | BeginEpoch
    | RestoreMember
    | WithdrawConsent
    | DeleteKept
)


def cluster_of(step: Step) -> Cluster:
    """The etcd cluster that a step is about: that of a member which starts or stops, too. The main one if it is about
    none.
    """
    if isinstance(step, StartUnit | StopUnit | RestartUnit | ReviveUnit):
        return CLUSTER.get(step.component, Cluster.MAIN)
    return getattr(step, "cluster", Cluster.MAIN)


#: Steps that only write the plane's memory. The driver writes all that a plan has in one go.
NOTES = (
    DecideBootstrap,
    NoteCreated,
    NoteCluster,
    NoteMembers,
    NoteFull,
    NoteDiffering,
    NoteRecord,
    NoteUnsettled,
    NoteLifetime,
    NoteDraining,
    NoteUnready,
    NoteProven,
    RetryRevision,
    NoteDown,
    NoteAiling,
    Condemn,
    Pardon,
    AdoptRevision,
    ForgetCluster,
    NoteQuorum,
    BeginEpoch,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to do now (all at once), what is waited for, and what will be cleaned up when its machine is back."""

    now: tuple[Step, ...] = ()
    waiting: tuple[Wait, ...] = ()
    leftovers: tuple[str, ...] = ()

    @property
    def done(self) -> bool:
        """Nothing to do and nothing to wait for. ``leftovers`` may remain on machines that do not answer."""
        return not self.now and not self.waiting


__all__ = [
    "NOTES",
    "AddLearner",
    "AdoptRevision",
    "AttachVolumes",
    "BeginEpoch",
    "Compact",
    "Condemn",
    "CordonMachine",
    "DecideBootstrap",
    "Defragment",
    "DeleteKept",
    "Disarm",
    "ForgetCluster",
    "LeadTo",
    "LeaveMachine",
    "NoteAiling",
    "NoteCluster",
    "NoteCreated",
    "NoteDiffering",
    "NoteDown",
    "NoteDraining",
    "NoteFull",
    "NoteLifetime",
    "NoteMembers",
    "NoteProven",
    "NoteQuorum",
    "NoteRecord",
    "NoteUnready",
    "NoteUnsettled",
    "Pardon",
    "PlaceReplica",
    "Plan",
    "Promote",
    "ReaddressMember",
    "RejectRevision",
    "ReleaseMember",
    "ReleaseReplica",
    "ReloadUnit",
    "RemoveMember",
    "RemoveRecord",
    "RestartUnit",
    "RestoreMember",
    "RetryRevision",
    "ReviveUnit",
    "SetBackends",
    "SetRecord",
    "StartUnit",
    "Step",
    "StopBalancer",
    "StopUnit",
    "Swap",
    "TransferLeadership",
    "WithdrawConsent",
    "cluster_of",
]
