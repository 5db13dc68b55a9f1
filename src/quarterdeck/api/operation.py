"""Operation: a planned change with a name. It changes a plane's spec; the planner does the rest."""

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
    """What was asked for."""

    CREATE = "Create"
    MIGRATE = "Migrate"
    SCALE = "Scale"
    APPLY = "Apply"
    REPLACE = "Replace"
    ABORT = "Abort"
    DELETE = "Delete"


class OperationPhase(StrEnum):
    """How far it is.

    ``FAILED``: its driver met what no retry mends, and ended. Its goal still is the plane's: whoever drives the plane
    next goes on with it, and it can be aborted. Everything else that fails is tried again while it is ``RUNNING``.
    """

    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    ABORTED = "Aborted"

    @property
    def over(self) -> bool:
        """It will not change any more."""
        return self in (OperationPhase.SUCCEEDED, OperationPhase.ABORTED)


def operation_reason(kind: OperationType, phase: OperationPhase) -> str:
    """The reason of the event that an operation of this type got into a phase, such as ``MigrateSucceeded``."""
    return f"{kind.value}{phase.value}"


class Goal(Model):
    """A plane's spec, before an operation (put ``from`` back to undo it) or as it wants it; whether the plane is paused
    is no part of it. ``revision``: what its replicas were rendered from, files included. ``addon_manifests``: what its
    add-ons were ("": none).
    """

    placement: Placement
    replicas: ReplicaCount
    spec: ControlPlaneSpec
    revision: str
    addon_manifests: str


class OperationSpec(Model):
    """What was asked for, and by whom. ``from_`` is ``from`` outside Python. ``number`` counts what was asked for of
    planes of that name: clocks may be set back.
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
        undone = (OperationType.MIGRATE, OperationType.SCALE, OperationType.REPLACE, OperationType.ABORT)
        if self.from_ is None and self.type in undone:
            problems.append(("from", f"required for {self.type.value}"))
        if self.to is None and self.type in (*undone, OperationType.CREATE):
            problems.append(("to", f"required for {self.type.value}"))
        if self.type is OperationType.MIGRATE and self.from_ is not None and self.to is not None:
            site = self.to.placement.site
            if site == self.from_.placement.site:
                problems.append(("to.placement.site", f"{site!r} is the site that it is to leave"))
        refuse_if_any(problems)
        return self


class OperationStatus(Model):
    """How it went. ``error`` is the kind of the error that it failed with, such as "timed-out" ("": it has not failed);
    ``report`` is the path of the report's JSON file.
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
