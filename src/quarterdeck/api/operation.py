"""Operation: a named change of a plane's spec, which the planner carries out."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import AfterValidator, AwareDatetime, Field, model_validator

from quarterdeck.api.base import Model, Resource
from quarterdeck.api.controlplane import ControlPlaneSpec, Placement, ReplicaCount
from quarterdeck.api.names import PLANE_NAME_MAX, label_within
from quarterdeck.api.schema import label, refuse_if_any
from quarterdeck.api.values import AbsolutePath

PlaneName = Annotated[str, AfterValidator(label_within(PLANE_NAME_MAX)), label(PLANE_NAME_MAX)]


class OperationType(StrEnum):
    """The kind of request."""

    CREATE = "Create"
    MIGRATE = "Migrate"
    FAILOVER = "Failover"
    SCALE = "Scale"
    UPGRADE = "Upgrade"
    APPLY = "Apply"
    REPLACE = "Replace"
    ROTATE = "Rotate"
    ABORT = "Abort"
    DELETE = "Delete"


#: The kinds that bring a plane to another site.
MOVING = frozenset({OperationType.MIGRATE, OperationType.FAILOVER})


class OperationPhase(StrEnum):
    """The progress of an operation.

    ``FAILED``: its driver met an error that no retry can fix, and stopped. Its goal still is the plane's: the next
    driver of the plane continues with it, and it can be aborted. All other errors are retried while it is ``RUNNING``.
    """

    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    ABORTED = "Aborted"

    @property
    def over(self) -> bool:
        """Whether it is final."""
        return self in (OperationPhase.SUCCEEDED, OperationPhase.ABORTED)


def operation_reason(kind: OperationType, phase: OperationPhase) -> str:
    """The reason of the event that an operation of this type got into a phase, such as ``MigrateSucceeded``."""
    return f"{kind.value}{phase.value}"


class Goal(Model):
    """A plane's spec, before an operation (restore ``from`` to undo it) or as its result; the pause of a plane is not
    part of it. ``revision``: the template of its replicas, files included. ``addon_manifests``: its add-ons ("": none).
    """

    placement: Placement
    replicas: ReplicaCount
    spec: ControlPlaneSpec
    revision: str
    addon_manifests: str


class OperationSpec(Model):
    """The request, and its requester. ``from_`` is ``from`` outside Python. ``number`` counts the operations of planes
    of that name: clocks may be set back.
    """

    plane: PlaneName
    number: Annotated[int, Field(ge=0)] = 0
    type: OperationType
    from_: Annotated[Goal | None, Field(alias="from")] = None
    to: Goal | None = None
    requested_by: str = ""

    @model_validator(mode="after")
    def _goals_fit_the_type(self) -> OperationSpec:
        problems: list[tuple[str, str]] = []
        changing = {
            *MOVING,
            OperationType.SCALE,
            OperationType.UPGRADE,
            OperationType.REPLACE,
            OperationType.ROTATE,
            OperationType.ABORT,
        }
        if self.from_ is None and self.type in changing:
            problems.append(("from", f"required for {self.type.value}"))
        if self.to is None and self.type in {*changing, OperationType.CREATE}:
            problems.append(("to", f"required for {self.type.value}"))
        if self.type in MOVING and self.from_ is not None and self.to is not None:
            site = self.to.placement.site
            if site == self.from_.placement.site:
                problems.append(("to.placement.site", f"{site!r} is its current site"))
        refuse_if_any(problems)
        return self


class OperationStatus(Model):
    """The outcome. ``error`` is the kind of its error, such as "timed-out" ("": none); ``report`` is the path of the
    report's JSON file.
    """

    phase: OperationPhase = OperationPhase.PENDING
    started_at: AwareDatetime | None = None
    finished_at: AwareDatetime | None = None
    message: str = ""
    error: str = ""
    report: AbsolutePath | None = None


class Operation(Resource):
    """An operation."""

    kind: Literal["Operation"] = "Operation"
    spec: OperationSpec
    status: OperationStatus = OperationStatus()
