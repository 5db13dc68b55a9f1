"""The protocol between a worker and its session: one JSON document per line, each with a ``type``.

To the worker: the ``ProbeConfig`` first, then commands. From it: ``Ready``, then the others as they occur.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

from pydantic import Field, TypeAdapter

from quarterdeck.probe.result import FailedRequest, ProbeResult, Summary
from quarterdeck.probe.target import ClientKind, ProbeConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkCommand:
    """Begin a new period."""

    label: str
    type: Literal["mark"] = "mark"


@dataclass(frozen=True, slots=True, kw_only=True)
class RetireCommand:
    """End the clients of a kind."""

    kind: ClientKind
    type: Literal["retire"] = "retire"


@dataclass(frozen=True, slots=True, kw_only=True)
class StopCommand:
    """End all clients, audit, and return the result."""

    type: Literal["stop"] = "stop"


Command: TypeAlias = Annotated[MarkCommand | RetireCommand | StopCommand, Field(discriminator="type")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """All clients are running."""

    at: float
    type: Literal["ready"] = "ready"


@dataclass(frozen=True, slots=True, kw_only=True)
class Marked:
    """A new period began."""

    label: str
    at: float
    type: Literal["marked"] = "marked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Retired:
    """The clients of a kind have ended."""

    kind: ClientKind
    type: Literal["retired"] = "retired"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeProgress:
    """Each second."""

    summary: Summary
    type: Literal["summary"] = "summary"


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """A request failed just now."""

    failure: FailedRequest
    type: Literal["failure"] = "failure"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """The end, with the result."""

    result: ProbeResult
    type: Literal["result"] = "result"


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """The end, without a result: the parts of a QuarterdeckError and its class."""

    error: str
    doing: str
    seen: str
    next_step: str
    type: Literal["error"] = "error"


Report: TypeAlias = Annotated[
    Ready | Marked | Retired | ProbeProgress | Failed | Finished | Broken, Field(discriminator="type")
]

CONFIG: TypeAdapter[ProbeConfig] = TypeAdapter(ProbeConfig)
COMMAND: TypeAdapter[Command] = TypeAdapter(Command)
REPORT: TypeAdapter[Report] = TypeAdapter(Report)
