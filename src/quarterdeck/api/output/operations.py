"""Operations, what changed by a command, and plans of changes."""

from __future__ import annotations

from typing_extensions import override

from quarterdeck.api.output.base import Instant, Message, NamedOutput, OutputModel


class OperationRow(NamedOutput):
    """An operation on a plane."""

    #: The operation's name.
    name: str
    #: The plane.
    plane: str
    #: `Create`, `Migrate`, `Failover`, `Scale`, `Apply`, `Replace`, `Abort` or `Delete`.
    type: str
    #: The site before; null where there was no plane before, or the site is not part of the change.
    from_site: str | None
    #: The number of replicas before.
    from_replicas: int | None
    #: The site after.
    to_site: str | None
    #: The number of replicas after.
    to_replicas: int | None
    #: `Pending`, `Running`, `Succeeded`, `Failed` or `Aborted`.
    phase: str
    #: When its first step began; null where it has not begun.
    started_at: Instant | None
    #: When it ended; null while it runs.
    finished_at: Instant | None
    #: How long it took; null while it runs.
    duration_seconds: float | None
    #: Who asked for it: the user, the host and the command.
    requested_by: str
    #: How it ended.
    message: str

    @property
    @override
    def full_name(self) -> str:
        return f"operation/{self.name}"


class OperationStep(OutputModel):
    """A step that was taken."""

    #: The step's kind, such as `add-learner`.
    kind: str
    #: What was done.
    message: str
    #: Why it was done.
    reason: str
    #: The one site that it touches; null where it touches none.
    site: str | None
    #: The replica that it is about; null where it is about none.
    replica: str | None
    #: `done`, `failed`, `noted` or `unfinished`.
    outcome: str
    #: Seconds from the start of the operation to the start of the step.
    start_seconds: float
    #: How long it took; null where the journal has no end of it.
    duration_seconds: float | None


class OperationResult(OperationRow):
    """An operation that a command asked for, with its steps."""

    #: The steps so far; empty with `--detach`.
    steps: tuple[OperationStep, ...]
    #: The path of the report's JSON file; null where no report was made.
    report: str | None


class ChangeResult(NamedOutput):
    """What a command changed."""

    #: What kind of thing was to be changed: `plane`, `replica`, `site`, `machine`, `member`, `token` or `service`.
    resource: str
    #: The name of what was to be changed.
    name: str
    #: The plane that it belongs to; null for planes and for what belongs to none.
    plane: str | None = None
    #: The site that it belongs to; null for sites and for what belongs to none.
    site: str | None = None
    #: What was asked for, such as `scale`; `apply` says `create` or `change`.
    action: str
    #: Whether anything was changed; false where it was so before.
    changed: bool
    #: The operation that brings it about; null where there is none.
    operation: OperationResult | None = None

    @property
    @override
    def full_name(self) -> str:
        return self.operation.full_name if self.operation is not None else f"{self.resource}/{self.name}"


class KeyResult(OutputModel):
    """How the private keys of a home are stored after a command."""

    #: The home's directory.
    home: str
    #: The key file that they are encrypted with; null where they are not encrypted.
    key_file: str | None
    #: How many planes have keys.
    planes: int


class PlannedStep(OutputModel):
    """A step that would be taken, and what is left of the quorum after it."""

    #: The step's kind, such as `add-learner`.
    kind: str
    #: What would be done.
    message: str
    #: Why.
    reason: str
    #: The one site that it touches; null where it touches none.
    site: str | None
    #: The number of voters after it.
    voters: int
    #: The number of learners after it.
    learners: int
    #: How many voters can then fail before the quorum is lost.
    may_fail: int
    #: The site whose voters are then a quorum by themselves; null where there is none.
    quorum_site: str | None
    #: Whether it can be undone.
    undoable: bool


class StepsPlan(OutputModel):
    """The steps of a change."""

    #: The plane.
    plane: str
    #: All steps in order; null where none were simulated, as for a new plane.
    steps: tuple[PlannedStep, ...] | None
    #: What the change would wait for without an end; null as `steps`.
    waits_for: tuple[Message, ...] | None


class ChangedField(OutputModel):
    """A field of the spec that would change."""

    #: Which, such as `spec.replicas`.
    path: str
    #: What it is.
    before: str
    #: What it would be.
    after: str
    #: `nothing`, `reload`, `restart` or `exchange`: what the change needs.
    needs: str
    #: The components that are restarted.
    restart: tuple[str, ...]
    #: The components that take it up while they run.
    reload: tuple[str, ...]
    #: What else is to be known; null for nothing.
    message: str | None


class AddonDifference(OutputModel):
    """An add-on whose objects would change."""

    #: The add-on's name.
    name: str
    #: Objects that would be new.
    added: tuple[str, ...]
    #: Objects that would be changed.
    changed: tuple[str, ...]
    #: Objects that would be deleted.
    removed: tuple[str, ...]


class CheckFinding(OutputModel):
    """The answer of a check."""

    #: The check's name.
    check: str
    #: `ok`, `warn` or `refuse`.
    verdict: str
    #: What was seen.
    message: str
    #: What to do about it; null for nothing.
    next_step: str | None


class ChangePlan(StepsPlan):
    """What a change of a plane comes to."""

    #: The type of the operation that it would be.
    type: str
    #: Whether anything would be changed.
    needed: bool
    #: The fields of the spec that would change.
    differences: tuple[ChangedField, ...]
    #: The add-ons that would change.
    addons: tuple[AddonDifference, ...]
    #: What the checks say.
    findings: tuple[CheckFinding, ...]


class SitePlan(OutputModel):
    """What applying a site comes to."""

    #: The site's name.
    name: str
    #: `created`, `changed` or `unchanged`.
    change: str


class ApplyPlan(OutputModel):
    """What applying a file comes to."""

    #: The sites of the file.
    sites: tuple[SitePlan, ...]
    #: The planes of the file.
    planes: tuple[ChangePlan, ...]
