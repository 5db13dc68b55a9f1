"""What steps claim: where a step is put aside since it fails again and again, no later rule touches what it claims.

No rule assumes that an earlier one has done its work, so that this makes nothing safe that was not. It keeps order:
what an earlier rule wants done to a thing is done before what a later one wants done to it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from quarterdeck.model.steps import (
    AddLearner,
    AttachVolumes,
    Compact,
    Defragment,
    DeleteKept,
    Disarm,
    LeadTo,
    LeaveMachine,
    PlaceReplica,
    Promote,
    ReaddressMember,
    ReleaseMember,
    ReleaseReplica,
    ReloadUnit,
    RemoveMember,
    RemoveRecord,
    RestartUnit,
    RestoreMember,
    ReviveUnit,
    SetBackends,
    SetRecord,
    StartUnit,
    Step,
    StopUnit,
    Swap,
    TransferLeadership,
    WithdrawConsent,
)
from quarterdeck.model.waiting import Wait
from quarterdeck.model.world import Failing
from quarterdeck.planner.outcome import Outcome

#: What follows on a step that failed.
_AGAIN = "quarterdeck tries it again by itself within seconds; if it goes on failing, mend what the error names"


@dataclass(frozen=True, slots=True)
class Claim:
    """A thing that a step changes: what kind of thing, and which one."""

    kind: str
    of: str = ""


def claim(step: Step) -> Claim | None:
    """What a step changes that another rule may want otherwise. Each etcd cluster has a membership of its own.

    A unit, not all of its replica: that etcd of a replica cannot be started must not keep its apiserver from being
    stopped, which its removal waits for. Nobody waits for what a load balancer is to be told to let it go. Notes claim
    nothing: where the memory cannot be written nothing at all is done.
    """
    match step:
        case AddLearner() | Promote() | ReaddressMember() | RemoveMember() | TransferLeadership() | Swap():
            return Claim("membership", step.cluster)
        case Compact() | Defragment() | Disarm():
            return Claim("room", step.cluster)
        case StartUnit() | StopUnit() | RestartUnit() | ReviveUnit() | ReloadUnit():
            return Claim("unit", f"{step.component} of {step.replica}")
        case AttachVolumes() | LeaveMachine() | PlaceReplica() | ReleaseReplica() | ReleaseMember():
            return Claim("replica", step.replica)
        case RestoreMember() | DeleteKept():
            return Claim("replica", step.replica)
        case WithdrawConsent():
            return Claim("consent")
        case SetBackends():
            return Claim("backends", step.site)
        case SetRecord() | LeadTo() | RemoveRecord():
            return Claim("record")
        case _:
            return None


def bare(step: Step) -> Step:
    """A step without its reason: the same one is the same, whatever it is planned for."""
    if isinstance(step, Swap):
        return replace(step, why="", changes=tuple(replace(change, why="") for change in step.changes))
    return replace(step, why="")


@dataclass(frozen=True, slots=True)
class Aside:
    """The steps that are put aside, and what is ``held`` back for those of the rules that were asked so far."""

    failing: tuple[Failing, ...] = ()
    held: frozenset[Claim] = frozenset()

    def told(self, step: Step) -> str | None:
        """Why a step is put aside; None if it is not."""
        same = bare(step)
        return next((each.told for each in self.failing if each.step == same), None)

    def sort(self, outcome: Outcome) -> tuple[Outcome, Aside]:
        """What a rule says without the steps that are put aside, and without those that would touch what is held back;
        and what is held back from then on. Steps of one rule do not wait for one another.
        """
        if not self.failing:
            return outcome, self
        told = {step: why for step in outcome.steps if (why := self.told(step)) is not None}
        now = tuple(step for step in outcome.steps if step not in told and claim(step) not in self.held)
        mine = {what for step in told if (what := claim(step)) is not None}
        failed = (Wait(each, _AGAIN) for each in told.values())
        return Outcome(now, (*outcome.waiting, *failed)), replace(self, held=self.held | mine)
