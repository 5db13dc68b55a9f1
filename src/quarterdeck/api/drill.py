"""Drill: a failure that was made on purpose, and what came of it. Made by quarterdeck; the last few are kept."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import AwareDatetime, Field

from quarterdeck.api.base import Model, Resource
from quarterdeck.api.operation import PlaneName
from quarterdeck.model.faults import Fail


class DrillPhase(StrEnum):
    """How far it is. ``INTERRUPTED``: whoever made it ended, or met what it could not go on from; the fault is undone
    all the same.
    """

    RUNNING = "Running"
    PASSED = "Passed"
    FAILED = "Failed"
    INTERRUPTED = "Interrupted"


class DrillSpec(Model):
    """What was to fail. ``number`` counts the plane's drills; ``struck`` says what was struck, in sentences; ``hold``:
    for how many seconds at most.
    """

    plane: PlaneName
    number: Annotated[int, Field(ge=0)]
    fail: Fail
    struck: tuple[str, ...] = ()
    hold: float
    dangerous: bool = False
    scheduled: bool = False
    requested_by: str = ""


class DrillStatus(Model):
    """What came of it. Times are seconds from the failure on; None: it did not come to that. ``detected``: a look found
    that the plane is not as it was, or, of a slow disk, that its manager tells of it. ``served_again``: clients were
    answered for good (0: they always were). ``last_failure``: the last request that failed had done so;
    ``last_failed_sent``: it was sent, of those that were not under way when it began; ``failures``: the first of them,
    in words. ``undone``: the failure was taken back (None: it is over by itself). ``redundant``: the plane was as
    before, and survived all that it did. ``message``: why it is not passed, or not to its end; ``left`` what is left of
    it, in sentences.
    """

    phase: DrillPhase = DrillPhase.RUNNING
    started_at: AwareDatetime | None = None
    finished_at: AwareDatetime | None = None
    detected: float | None = None
    served_again: float | None = None
    last_failure: float | None = None
    last_failed_sent: float | None = None
    undone: float | None = None
    redundant: float | None = None
    requests: int = 0
    failed: int = 0
    failures: tuple[str, ...] = ()
    longest_stall_milliseconds: float = 0.0
    acknowledged: int = 0
    lost: int = 0
    missed: int = 0
    message: str = ""
    left: tuple[str, ...] = ()


class Drill(Resource):
    """A drill."""

    kind: Literal["Drill"] = "Drill"
    spec: DrillSpec
    status: DrillStatus = DrillStatus()
