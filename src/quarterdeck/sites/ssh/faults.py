"""Faults on the machines of an ssh site, for drills: the host itself makes and undoes them."""

from __future__ import annotations

import asyncio
import json
import math
from dataclasses import asdict

from typing_extensions import override

from quarterdeck.errors import PreconditionFailed, QuarterdeckError, Unavailable
from quarterdeck.model.faults import Fault, FaultKind
from quarterdeck.sites.base.faults import Made, needs_well
from quarterdeck.sites.port import Faults
from quarterdeck.sites.ssh.host_queries import QUICK, SshHosts
from quarterdeck.sites.ssh.hosts import SshHost
from quarterdeck.sites.ssh.wire import faults, parsing

_CANNOT = {
    FaultKind.SET_CLOCK: "the clock of a host is shared by all that runs on it",
    FaultKind.KILL_MANAGER: "a manager is on no machine",
}


class SshFaults(SshHosts, Faults):
    """Makes faults. A host whose machine is "off" has killed its units, and drops all packets except those of the
    fault's maker; it answers only with its state.
    """

    @property
    @override
    def whole_hosts(self) -> bool:
        return True

    @override
    def cannot_make(self, kind: FaultKind) -> str:
        return _CANNOT.get(kind, "")

    @override
    async def _require_well(self, fault: Fault, doing: str) -> None:
        with needs_well(doing):
            await self._ask(self.host(fault.machine), "admit", doing=doing, deadline=QUICK)

    @override
    async def _kill(self, fault: Fault, doing: str) -> None:
        with needs_well(doing):
            await self._with_faults(self.host(fault.machine), "kill-unit", fault.unit, doing=doing, deadline=QUICK)

    @override
    async def _corrupt(self, fault: Fault, doing: str) -> None:
        host = self.host(fault.machine)
        words = (fault.unit, fault.volume, fault.path, *self._roots(host))
        with needs_well(doing):
            await self._with_faults(host, "corrupt", *words, doing=doing, body=fault.text.encode())

    @override
    async def _begin(self, fault: Fault, seconds: float, doing: str) -> None:
        """The host undoes it when this session ends, or its time is over."""
        host, before = self.host(fault.machine), self._made.get(fault.machine)
        roots, body = self._roots(host), json.dumps(asdict(fault)).encode()
        words = (str(fault.kind), str(math.ceil(seconds)), fault.unit or "-", fault.volume or "-", *roots)
        self._made[fault.machine] = Made(fault, None)
        try:
            with needs_well(doing):
                await self._with_faults(host, "fault", *words, doing=doing, body=body)
        except QuarterdeckError:  # nothing was done: an earlier fault is still ours to undo
            if before is not None:
                self._made[fault.machine] = before
            else:
                del self._made[fault.machine]
            raise

    @override
    async def _end(self, made: Made[None]) -> str:
        doing = f"undoing that {made.fault.words}"
        left = await self._with_faults(self.host(made.fault.machine), "undo-fault", doing=doing)
        return left.decode(errors="replace").strip()

    async def _with_faults(
        self, host: SshHost, verb: str, *words: str, doing: str, deadline: float = 4 * QUICK, body: bytes = b""
    ) -> bytes:
        """Send a request together with the fault code, which a host's script has only during a fault."""
        makes = await asyncio.to_thread(faults)
        return await self._ask(host, verb, str(len(makes)), *words, doing=doing, deadline=deadline, body=makes + body)

    @override
    async def faults_made(self) -> tuple[Fault, ...]:
        """See Faults: those of hosts that answer."""
        doing = f"reading the faults at site {self.name}"
        hosts = self._settings.hosts
        answers = await asyncio.gather(
            *(self._ask(each, "faults", doing=doing, deadline=QUICK) for each in hosts), return_exceptions=True
        )
        found: list[Fault] = []
        for host, each in zip(hosts, answers, strict=True):
            if isinstance(each, bytes) and each:
                found.append(_fault(f"{doing}, on host {host.name}", each))
            elif isinstance(each, BaseException) and not isinstance(each, (Unavailable, PreconditionFailed)):
                raise each
        return tuple(found)


def _fault(doing: str, answer: bytes) -> Fault:
    with parsing(doing, answer) as text:
        read = json.loads(text)
        return Fault(**{**read, "kind": FaultKind(read["kind"])})
