"""The report as JSON: ``quarterdeck.dev/report/v1``. docs/report-schema.md is generated from it.

Times are seconds since the operation started (negative: before it); durations of requests are milliseconds.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, Literal

from pydantic import AwareDatetime, ValidationError

from quarterdeck.errors import Corrupt
from quarterdeck.probe.schema import Probe
from quarterdeck.probe.schema_part import Part

SCHEMA_VERSION: Final = "quarterdeck.dev/report/v1"


class Outcome(StrEnum):
    """How an operation ended."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    ABORTED = "aborted"
    RUNNING = "running"


class StepOutcome(StrEnum):
    """How a step ended. A note only writes to the plane's status."""

    DONE = "done"
    FAILED = "failed"
    NOTED = "noted"
    UNFINISHED = "unfinished"


class Phase(StrEnum):
    """The purpose of a step."""

    JOIN = "join"
    SERVE = "serve"
    DRAIN = "drain"
    SWAP = "swap"
    RELEASE = "release"


class Role(StrEnum):
    """The role of an etcd member. Members that a moment does not list are removed, or not there yet."""

    VOTER = "voter"
    LEARNER = "learner"


class Place(Part):
    """The desired site and size of the plane."""

    site: str
    """The site's name."""
    replicas: int
    """How many replicas."""


class Change(Part):
    """A field of the plane's spec that the operation changed."""

    path: str
    """The field, such as `spec.replicas`."""
    before: str
    """The old value, as text."""
    after: str
    """The new value."""


class StepSpan(Part):
    """One step that was taken."""

    start: float
    """When it began."""
    end: float | None
    """When it ended; null when the journal has no end of it."""
    kind: str
    """The step's name, such as `add-learner`."""
    text: str
    """A short description."""
    why: str
    """The reason, in one sentence."""
    phase: Phase
    """Its purpose."""
    site: str
    """The one site that it touches; empty when it touches none."""
    replica: str
    """The replica that it is about, if there is one."""
    outcome: StepOutcome
    """How it ended."""
    error: str = ""
    """The error when it failed. It was retried."""


class PhaseSpan(Part):
    """From the first to the last step of a phase. Phases overlap."""

    phase: Phase
    """Which."""
    start: float
    """When its first step began."""
    end: float
    """When its last step ended."""


class MemberState(Part):
    """A member at one moment."""

    replica: str
    """The replica that it belongs to."""
    site: str
    """The replica's site; empty when not known."""
    role: Role
    """Voter or learner."""
    healthy: bool
    """Whether it answers."""
    leader: bool
    """Whether it leads."""


class BalancerState(Part):
    """A running load balancer, at one moment."""

    site: str
    """Its site."""
    backends: tuple[str, ...]
    """The replicas that it sends new connections to."""
    connections: int | None = None
    """Connections that it holds; null when not known."""


class Moment(Part):
    """An observation; it is valid until the next one."""

    at: float
    """When."""
    membership_known: bool
    """Whether a quorum confirmed the members; when not, they are the last known ones."""
    members: tuple[MemberState, ...]
    """The members of etcd."""
    balancers: tuple[BalancerState, ...]
    """The running load balancers."""
    record: str | None
    """The site that the plane's name leads to."""


class LockSpan(Part):
    """One process held one lock of controllers, as observers of the locks reported it."""

    lock: str
    """The lock: a Lease in kube-system."""
    component: str
    """The holder's program: `kube-controller-manager` or `cloud-controller-manager`; empty when not known."""
    replica: str
    """The holder's replica; empty when not known."""
    holder: str
    """The holder's identity in the lock."""
    token: int
    """How many holders the lock had before."""
    start: float
    """When it was taken, by the holder's clock; negative when it was held before the operation."""
    end: float | None
    """When it was released or expired; null when it was still held in the end."""
    released: bool
    """Whether it was released."""
    renewed: float | None
    """When it was last renewed; null when that is not known."""
    unseen: bool
    """Whether its end was not observed: the next holder took the lock at `end`."""


class PromiseVerdict(Part):
    """One promise or aim."""

    claim: str
    """What it is about, such as `lost writes`."""
    measured: str
    """What was measured, and the limit where there is one."""
    holds: bool
    """Whether it holds."""
    promised: bool = True
    """Whether it is a promise, which must hold everywhere; else it is an aim, which a busy machine may miss."""


class MeasurementHost(Part):
    """The machine that the measurement ran on."""

    cores: int
    """Processor cores."""
    memory_bytes: int
    """Main memory."""
    kernel: str
    """The kernel's release."""
    python: str
    """Python's version."""
    versions: dict[str, str]
    """Versions of quarterdeck and of the upstream programs."""


class Report(Part):
    """The report of one operation on one plane."""

    schema_version: Literal["quarterdeck.dev/report/v1"] = SCHEMA_VERSION
    """The version of this schema."""
    plane: str
    """The plane's name."""
    operation: str
    """The operation's name."""
    kind: str
    """The kind of operation: `Create`, `Migrate`, `Failover`, `Scale`, `Apply`, `Replace`, `Abort` or `Delete`."""
    outcome: Outcome
    """How it ended."""
    message: str = ""
    """The operation's final message."""
    source: Place | None
    """Where the plane was."""
    target: Place | None
    """Its desired place."""
    changes: tuple[Change, ...] = ()
    """The changed fields of the plane's spec."""
    started: AwareDatetime
    """When it started: the zero of all times here."""
    seconds: float
    """Its duration."""
    swap_window_ms: float | None
    """How long no site had a quorum by itself; null when the members are not known."""
    verdicts: tuple[PromiseVerdict, ...]
    """The promises and aims, and whether they hold."""
    phases: tuple[PhaseSpan, ...]
    """The phases, by their start."""
    steps: tuple[StepSpan, ...]
    """The steps, by their start."""
    timeline: tuple[Moment, ...]
    """The observations of the plane, one for each change."""
    locks: tuple[LockSpan, ...] = ()
    """The holders of the plane's locks of controllers, by lock and then by `start`."""
    probe: Probe | None
    """The clients' results; null when there was no probe."""
    machine: MeasurementHost
    """The machine that the measurement ran on."""

    @property
    def holds(self) -> bool:
        """Whether the operation succeeded and all promises hold."""
        kept = all(verdict.holds for verdict in self.verdicts if verdict.promised)
        return self.outcome is Outcome.SUCCEEDED and kept


def dump(report: Report) -> bytes:
    """The report's JSON, one document with a final newline."""
    return report.model_dump_json(indent=1).encode() + b"\n"


def load(content: bytes) -> Report:
    """A report from its JSON. Raises Corrupt when it is invalid, or has another schema version."""
    try:
        return Report.model_validate_json(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the document"
        newer = "use the quarterdeck that wrote it" if where == "schemaVersion" else "the file is damaged"
        raise Corrupt("reading a report", f"{where}: {first['msg']}", newer) from None
