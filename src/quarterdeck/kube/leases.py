"""How a lock is written as a Lease: its spec as client-go writes it, and all else in annotations, which that leaves."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from pydantic import BaseModel, ConfigDict, Field

from quarterdeck.errors import InvalidInput
from quarterdeck.leases.record import Record

_ABOUT = "leases.quarterdeck.dev"
CONTROLLERS = f"{_ABOUT}/controllers"
ASKED_BY = f"{_ABOUT}/asked-by"
ANSWERS = f"{_ABOUT}/answers"
PRECEDENCE = f"{_ABOUT}/precedence"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class _Document(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class LockMeta(_Document):
    """What is read of the metadata."""

    name: str = ""
    version: str = Field(default="", alias="resourceVersion")
    annotations: dict[str, str] = Field(default_factory=dict)


class LockSpec(_Document):
    """LeaseSpec."""

    holder: str | None = Field(default=None, alias="holderIdentity")
    duration: int | None = Field(default=None, alias="leaseDurationSeconds")
    acquired: datetime | None = Field(default=None, alias="acquireTime")
    renewed: datetime | None = Field(default=None, alias="renewTime")
    transitions: int | None = Field(default=None, alias="leaseTransitions")


class LockDocument(_Document):
    """A Lease; or, of an event that is an error, a Status."""

    metadata: LockMeta = LockMeta()
    spec: LockSpec = LockSpec()
    code: int = 0
    message: str = ""


class WatchedLock(_Document):
    """An event of a watch."""

    type: str
    object: LockDocument

    @property
    def code(self) -> int:
        """Of an error: its HTTP status."""
        return self.object.code

    @property
    def message(self) -> str:
        """Of an error: what is said about it."""
        return self.object.message


def record(document: LockDocument) -> Record:
    """The record that a Lease is."""
    spec, annotations = document.spec, document.metadata.annotations
    precedence = annotations.get(PRECEDENCE, "")
    return Record(
        holder=spec.holder or "",
        duration=float(spec.duration or 0),
        acquired=_microseconds(spec.acquired),
        renewed=_microseconds(spec.renewed),
        transitions=spec.transitions or 0,
        controllers=tuple(filter(None, annotations.get(CONTROLLERS, "").split(","))),
        asked_by=annotations.get(ASKED_BY, ""),
        answers=annotations.get(ANSWERS, ""),
        precedence=int(precedence) if precedence.lstrip("-").isdecimal() else 0,
        version=document.metadata.version,
    )


def lease(name: str, record: Record) -> dict[str, object]:
    """The metadata and the spec of a Lease, to create it, or to merge into the one of the record's version.

    Raises InvalidInput for a duration that is no whole number of seconds.
    """
    if record.duration != int(record.duration):
        raise InvalidInput(
            f"writing lease {name!r}", f"it would last {record.duration:g} s", "use whole seconds over the Lease API"
        )
    annotations = {
        CONTROLLERS: ",".join(record.controllers),
        ASKED_BY: record.asked_by,
        ANSWERS: record.answers,
        PRECEDENCE: str(record.precedence) if record.precedence else "",
    }
    metadata: dict[str, object] = {"name": name}
    if record.version:
        metadata["resourceVersion"] = record.version
        metadata["annotations"] = {key: value or None for key, value in annotations.items()}
    else:
        metadata["annotations"] = {key: value for key, value in annotations.items() if value}
    spec = {
        "holderIdentity": record.holder,
        "leaseDurationSeconds": int(record.duration),
        "acquireTime": _written(record.acquired),
        "renewTime": _written(record.renewed),
        "leaseTransitions": record.transitions,
    }
    return {"metadata": metadata, "spec": spec}


def _microseconds(time: datetime | None) -> int:
    return 0 if time is None else (time - _EPOCH) // _MICROSECOND


def _written(microseconds: int) -> str:
    """As metav1.MicroTime: six digits, always."""
    time = _EPOCH + timedelta(microseconds=microseconds)
    return time.strftime("%Y-%m-%dT%H:%M:%S.") + f"{time.microsecond:06d}Z"
