"""The report as JSON: ``quarterdeck.dev/report/v1``. docs/report-schema.md is made from what stands here.

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
    """What a step is for."""

    JOIN = "join"
    SERVE = "serve"
    DRAIN = "drain"
    SWAP = "swap"
    RELEASE = "release"


class Role(StrEnum):
    """What a member is in etcd. Members that a moment does not list are gone, or not there yet."""

    VOTER = "voter"
    LEARNER = "learner"


class Place(Part):
    """Where the plane is wanted, and how large."""

    site: str
    """The site's name."""
    replicas: int
    """How many replicas."""


class Change(Part):
    """A field of the plane's spec that the operation changed."""

    path: str
    """Which, such as `spec.replicas`."""
    before: str
    """What it was, in words."""
    after: str
    """What was wanted."""


class StepSpan(Part):
    """One step that was taken."""

    start: float
    """When it began."""
    end: float | None
    """When it ended; null when the journal has no end of it."""
    kind: str
    """The step's name, such as `add-learner`."""
    text: str
    """What was done, in a few words."""
    why: str
    """Why it was done: one sentence."""
    phase: Phase
    """What it is for."""
    site: str
    """The one site that it touches; empty when it touches none."""
    replica: str
    """The replica that it is about, if it is about one."""
    outcome: StepOutcome
    """How it ended."""
    error: str = ""
    """What went wrong when it failed. It was tried again."""


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
    """A load balancer that runs, at one moment."""

    site: str
    """Its site."""
    backends: tuple[str, ...]
    """The replicas that it sends new connections to."""
    connections: int | None = None
    """Connections that it holds; null when not known."""


class Moment(Part):
    """What was seen; it holds until the next moment."""

    at: float
    """When."""
    membership_known: bool
    """Whether a quorum confirmed the members; when not, they are the last known ones."""
    members: tuple[MemberState, ...]
    """The members of etcd."""
    balancers: tuple[BalancerState, ...]
    """The load balancers that run."""
    record: str | None
    """The site that the plane's name leads to."""


class LockSpan(Part):
    """One process held one lock of controllers, as those saw who watched the locks."""

    lock: str
    """The lock: a Lease in kube-system."""
    component: str
    """The holder's program: `kube-controller-manager` or `cloud-controller-manager`; empty when not known."""
    replica: str
    """The holder's replica; empty when not known."""
    holder: str
    """What the holder calls itself."""
    token: int
    """How many holders the lock had before."""
    start: float
    """When it was taken, by the holder's clock; negative when it was held before the operation."""
    end: float | None
    """When it was released, or else when it ran out; null when it was still held in the end."""
    released: bool
    """Whether it was released."""
    renewed: float | None
    """When it was last renewed; null when that is not known."""
    unseen: bool
    """Whether nobody saw how it ended: the next holder took the lock at `end`."""


class PromiseVerdict(Part):
    """One thing that is promised, or aimed at."""

    claim: str
    """What it is about, such as `lost writes`."""
    measured: str
    """What was measured, and the limit where there is one."""
    holds: bool
    """Whether it holds."""
    promised: bool = True
    """Whether it must hold everywhere; else it is an aim, which a busy machine may miss."""


class MeasurementHost(Part):
    """Where it was measured."""

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
    """What happened in one operation on one plane."""

    schema_version: Literal["quarterdeck.dev/report/v1"] = SCHEMA_VERSION
    """The version of this schema."""
    plane: str
    """The plane's name."""
    operation: str
    """The operation's name."""
    kind: str
    """What was asked for: `Create`, `Migrate`, `Scale`, `Apply`, `Replace`, `Abort` or `Delete`."""
    outcome: Outcome
    """How it ended."""
    message: str = ""
    """What the operation says of its end."""
    source: Place | None
    """Where the plane was."""
    target: Place | None
    """Where it was wanted."""
    changes: tuple[Change, ...] = ()
    """What of the plane's spec was changed."""
    started: AwareDatetime
    """When it started: the zero of all times here."""
    seconds: float
    """How long it took."""
    swap_window_ms: float | None
    """How long no site held a quorum by itself; null when the members are not known."""
    verdicts: tuple[PromiseVerdict, ...]
    """What is promised or aimed at, and whether it holds."""
    phases: tuple[PhaseSpan, ...]
    """The phases, by their start."""
    steps: tuple[StepSpan, ...]
    """The steps, by their start."""
    timeline: tuple[Moment, ...]
    """What was seen of the plane, whenever it changed."""
    locks: tuple[LockSpan, ...] = ()
    """Who held which lock of the plane's controllers, by lock and then by `start`."""
    probe: Probe | None
    """What clients saw; null when there was no probe."""
    machine: MeasurementHost
    """Where it was measured."""

    @property
    def holds(self) -> bool:
        """Whether the operation succeeded and everything that is promised holds."""
        kept = all(verdict.holds for verdict in self.verdicts if verdict.promised)
        return self.outcome is Outcome.SUCCEEDED and kept


def dump(report: Report) -> bytes:
    """The report's JSON, one document with a final newline."""
    return report.model_dump_json(indent=1).encode() + b"\n"


def load(content: bytes) -> Report:
    """A report from its JSON. Raises Corrupt when it is none, or is of another schema version."""
    try:
        return Report.model_validate_json(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the document"
        newer = "use the quarterdeck that wrote it" if where == "schemaVersion" else "the file is damaged"
        raise Corrupt("reading a report", f"{where}: {first['msg']}", newer) from None
