"""Faults on the machines of an ssh site, for drills: made and undone by the host itself."""

from __future__ import annotations

import asyncio
import json
import math
from dataclasses import asdict

from quarterdeck.errors import Conflict, PreconditionFailed, QuarterdeckError, Unavailable
from quarterdeck.model.faults import MOMENTARY, Fault, FaultKind
from quarterdeck.sites.ssh.asking import QUICK, SshHosts
from quarterdeck.sites.ssh.parsing import parsing

_CANNOT = {
    FaultKind.SET_CLOCK: "the clock of a host is that of all that runs on it",
    FaultKind.KILL_MANAGER: "a manager is on no machine",
}


class SshFaults(SshHosts):
    """Makes faults. A host whose machine is "off" has killed its units, and says and hears nothing but to whoever made
    the fault; it answers with that alone.
    """

    _made: dict[str, Fault]

    @property
    def whole_hosts(self) -> bool:
        """See Faults."""
        return True

    def cannot_make(self, kind: FaultKind) -> str:
        """See Faults."""
        return _CANNOT.get(kind, "")

    async def make_fault(self, fault: Fault, seconds: float) -> None:
        """See Faults: the host undoes it when this session ends, or its time is over."""
        host, doing = self.host(fault.machine), f"having {fault.words}"
        if why := self.cannot_make(fault.kind):
            raise PreconditionFailed(doing, f"site {self.name} cannot: {why}")
        roots, before = self._roots(host), self._made.get(fault.machine)
        try:
            await self._ask(host, "admit", doing=doing, deadline=QUICK)
            if fault.kind in MOMENTARY:
                await self._ask(host, "kill-unit", fault.unit, doing=doing, deadline=QUICK)
                return
            if fault.kind is FaultKind.CORRUPT:
                words = ("corrupt", fault.unit, fault.volume, fault.path, *roots)
                await self._ask(host, *words, doing=doing, deadline=4 * QUICK, body=fault.text.encode())
                return
            self._made[fault.machine] = fault
            words = ("fault", str(fault.kind), str(math.ceil(seconds)), fault.unit or "-", fault.volume or "-", *roots)
            said = json.dumps(asdict(fault)).encode()
            await self._ask(host, *words, doing=doing, deadline=4 * QUICK, body=said)
        except Unavailable as error:
            self._not_made(fault, before)
            raise Conflict(doing, error.seen, "wait until that machine is well") from error
        except QuarterdeckError:
            self._not_made(fault, before)
            raise

    def _not_made(self, fault: Fault, before: Fault | None) -> None:
        """Nothing was done: one that was made before is still ours to undo."""
        if before is not None:
            self._made[fault.machine] = before
        elif self._made.get(fault.machine) == fault:
            del self._made[fault.machine]

    async def undo_fault(self, fault: Fault) -> str:
        """See Faults."""
        if self._made.get(fault.machine) != fault:
            return ""
        doing = f"undoing that {fault.words}"
        left = await self._ask(self.host(fault.machine), "undo-fault", doing=doing, deadline=4 * QUICK)
        self._made.pop(fault.machine, None)
        return left.decode(errors="replace").strip()

    async def faults_made(self) -> tuple[Fault, ...]:
        """See Faults: those of hosts that answer."""
        doing = f"looking for faults at site {self.name}"
        hosts = self._settings.hosts
        said = await asyncio.gather(
            *(self._ask(each, "faults", doing=doing, deadline=QUICK) for each in hosts), return_exceptions=True
        )
        found: list[Fault] = []
        for host, each in zip(hosts, said, strict=True):
            if isinstance(each, bytes) and each:
                found.append(_fault(f"{doing}, on host {host.name}", each))
            elif isinstance(each, BaseException) and not isinstance(each, (Unavailable, PreconditionFailed)):
                raise each
        return tuple(found)


def _fault(doing: str, said: bytes) -> Fault:
    with parsing(doing, said) as text:
        read = json.loads(text)
        return Fault(**{**read, "kind": FaultKind(read["kind"])})
