"""The report as JSON: ``quarterdeck.dev/report/v1``. docs/report-schema.md is made from what stands here.

Times are seconds since the operation started (negative: before it); durations of requests are milliseconds.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, Literal

from pydantic import AwareDatetime, ConfigDict, Field, ValidationError

from quarterdeck.api.base import Model
from quarterdeck.errors import Corrupt

SCHEMA_VERSION: Final = "quarterdeck.dev/report/v1"


class Part(Model):
    """A part of the report: camelCase in JSON. Fields that are not known yet are left out when one is read."""

    model_config = ConfigDict(use_attribute_docstrings=True, extra="ignore")


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


class Step(Part):
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


class Figures(Part):
    """What clients saw in one period."""

    requests: int
    """Requests that ended in the period."""
    failures: int
    """Those that failed: anything but 2xx."""
    resent: int
    """Those sent once more as RFC 9112, section 9.3.1 has every client do."""
    stall_ms: float
    """The longest time that one client had to wait for a request to succeed (for watchers: for an event)."""
    stall_at: float
    """When that wait ended."""
    p50_ms: float
    """Half of all answers took no longer."""
    p99_ms: float
    """99 of 100 answers took no longer."""


class Period(Part):
    """The time between two marks of the probe."""

    label: str
    """`quiet` before the operation; then the names that the marks were given."""
    start: float
    """When it began."""
    end: float
    """When it ended."""
    own_lag_ms: float
    """The longest time for which the probe itself was held up (it did not get to run, or the way to the host that it
    probes from took longer than at its best): what can't be told from a stall."""
    overall: Figures
    """All clients together."""
    kinds: dict[str, Figures]
    """By kind of client."""


class Writes(Part):
    """What became of the probe's writes, over all periods."""

    acknowledged: int
    """Writes that the server acknowledged."""
    unknown: int
    """Writes that failed: they may have taken place or not."""
    lost: int
    """Acknowledged writes that were not there when they were read back or listed at the end."""
    stale_reads: int
    """Reads that returned less than was acknowledged before they began."""
    audited: bool
    """Whether everything was listed and compared at the end."""
    examples: tuple[str, ...]
    """The first losses, in words."""


class Watches(Part):
    """What the probe's watchers saw, over all periods. Every acknowledged write is due once at each, in order."""

    events: int
    """Events that were seen."""
    missed: int
    """Events that never came, or that a list after 410 Gone hid."""
    duplicated: int
    """Events that came again."""
    out_of_order: int
    """Events that came after a later one."""
    relists: int
    """Lists that 410 Gone made necessary."""
    ended: int
    """Streams that the server ended properly; the watch went on from the last event."""
    cut: int
    """Streams that ended without a proper end; the watch went on from the last event."""
    examples: tuple[str, ...]
    """The first of what was wrong, in words."""


class Failure(Part):
    """One failed request."""

    at: float
    """When it ended."""
    kind: str
    """The kind of client."""
    client: str
    """Which client of the kind."""
    request: str
    """Method and path."""
    reason: str
    """Why it failed."""
    address: str
    """The address that it was sent to; empty when no connection was there."""
    period: str
    """The period that it counts to."""


class Samples(Part):
    """Latencies in columns of equal length: one row is a request, or an event at a watcher."""

    kinds: tuple[str, ...]
    """What `kind` points into."""
    addresses: tuple[str, ...]
    """What `address` points into."""
    at: tuple[float, ...]
    """When it ended."""
    ms: tuple[float, ...]
    """How long it took."""
    kind: tuple[int, ...]
    """Index of the kind of client."""
    address: tuple[int, ...]
    """Index of the address."""
    ok: tuple[bool, ...]
    """Whether it succeeded."""


class Probe(Part):
    """What real clients saw from outside."""

    host: str
    """The name or address that they connected to."""
    source: str | None = Field(default=None, validation_alias="from", serialization_alias="from")
    """The host of a site that made their connections, as SITE/HOST; null for the one that quarterdeck ran on."""
    rate: float
    """Requests per second and client."""
    periods: tuple[Period, ...]
    """All periods; the first is the quiet one. A count that names no period is of all of them."""
    compared: tuple[str, str]
    """The labels of the two periods to compare: before, and during. Equal when there is only one."""
    writes: Writes
    """What became of the writes."""
    watches: Watches
    """What the watchers saw."""
    failures: tuple[Failure, ...]
    """The first failed requests; the periods count all."""
    connections: dict[str, int]
    """Connections opened, by kind of client."""
    samples: Samples
    """Single latencies. When there were too many, neighbours alike were merged into the slower one."""

    def period(self, label: str) -> Period:
        """The first period of that label. Raises KeyError."""
        for period in self.periods:
            if period.label == label:
                return period
        raise KeyError(label)

    @property
    def quiet(self) -> Period:
        """The period before."""
        return self.period(self.compared[0])

    @property
    def during(self) -> Period:
        """The period that is held against it."""
        return self.period(self.compared[1])

    @property
    def judged(self) -> tuple[Period, ...]:
        """All periods but the quiet one; that one if there is no other."""
        return self.periods[1:] or self.periods


class Verdict(Part):
    """One thing that is promised, or aimed at."""

    claim: str
    """What is to hold."""
    measured: str
    """What was measured."""
    holds: bool
    """Whether it holds."""
    promised: bool = True
    """Whether it must hold everywhere; else it is an aim, which a busy machine may miss."""


class Machine(Part):
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
    verdicts: tuple[Verdict, ...]
    """What is promised or aimed at, and whether it holds."""
    phases: tuple[PhaseSpan, ...]
    """The phases, by their start."""
    steps: tuple[Step, ...]
    """The steps, by their start."""
    timeline: tuple[Moment, ...]
    """What was seen of the plane, whenever it changed."""
    locks: tuple[LockSpan, ...] = ()
    """Who held which lock of the plane's controllers, by lock and then by `start`."""
    probe: Probe | None
    """What clients saw; null when there was no probe."""
    machine: Machine
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
