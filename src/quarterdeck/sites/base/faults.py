"""Faults on the machines of a site: those that this process has made, and so may undo."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

from typing_extensions import override

from quarterdeck.errors import Conflict, PreconditionFailed, Unavailable
from quarterdeck.model.faults import MOMENTARY, Fault, FaultKind
from quarterdeck.sites.base.site import BaseSite, C, M
from quarterdeck.sites.port import Faults

H = TypeVar("H")


@dataclass(slots=True)
class Made(Generic[H]):
    """A fault that this process made, with the driver's handle to undo it."""

    fault: Fault
    hold: H


class FaultySite(BaseSite[M, C], Faults, Generic[M, C, H]):
    """Makes faults, one at a time on each machine."""

    def __init__(self, name: str, machines: Mapping[str, M], storage_classes: Mapping[str, C]) -> None:
        super().__init__(name, machines, storage_classes)
        #: By machine.
        self._made: dict[str, Made[H]] = {}

    @override
    async def make_fault(self, fault: Fault, seconds: float) -> None:
        self._machine(fault.machine)
        doing = f"making a fault ({fault.words})"
        if why := self.cannot_make(fault.kind):
            raise PreconditionFailed(doing, f"site {self.name} cannot: {why}")
        await self._require_well(fault, doing)
        if fault.kind in MOMENTARY:
            await self._kill(fault, doing)
        elif fault.kind is FaultKind.CORRUPT:
            await self._corrupt(fault, doing)
        else:
            await self._begin(fault, seconds, doing)

    @override
    async def undo_fault(self, fault: Fault) -> str:
        made = self._made.get(fault.machine)
        if made is None or made.fault != fault:
            return ""
        left = await self._end(made)
        self._made.pop(fault.machine, None)
        return left

    @abstractmethod
    @override
    def cannot_make(self, kind: FaultKind) -> str:
        """See Faults."""

    @abstractmethod
    async def _require_well(self, fault: Fault, doing: str) -> None:
        """Raise Conflict unless the fault's machine answers, NotFound when its unit does not run there."""

    @abstractmethod
    async def _kill(self, fault: Fault, doing: str) -> None:
        """Kill the process of the fault's unit, so that its supervisor sees it end."""

    @abstractmethod
    async def _corrupt(self, fault: Fault, doing: str) -> None:
        """Alter the fault's text while its unit is stopped."""

    @abstractmethod
    async def _begin(self, fault: Fault, seconds: float, doing: str) -> None:
        """Make the fault, and record it in ``_made`` before there is anything to undo."""

    @abstractmethod
    async def _end(self, made: Made[H]) -> str:
        """Undo a fault. Returns what is left of it, as text ("": nothing)."""


@contextmanager
def needs_well(doing: str) -> Iterator[None]:
    """Raise Conflict for a machine that does not answer: nothing was done to it."""
    try:
        yield
    except Unavailable as error:
        raise Conflict(doing, error.seen, "wait until that machine is healthy") from error
