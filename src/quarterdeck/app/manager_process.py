"""The manager process as drills need it: whether it is alive, its successor, and its end."""

from __future__ import annotations

import asyncio
import os
import select
import signal
from dataclasses import dataclass

import psutil

from quarterdeck.api.site import Isolation
from quarterdeck.engine.reconcile.manager import RESTARTED_BY
from quarterdeck.engine.workspace.leases import lease_name, manager_lease, next_manager_lease
from quarterdeck.errors import Conflict, PreconditionFailed, TimedOut
from quarterdeck.model.faults import Fault
from quarterdeck.stores.lease import process_named
from quarterdeck.stores.port import Lease, Store

#: Seconds for a killed process to end.
_DYING = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Keeping:
    """The manager of the planes on a network. One of the ``MakesFaults``: its fault kills the manager."""

    store: Store
    network: Isolation

    async def why_not(self, plane: str) -> str:
        """Why no living process manages a plane now; "" if one does."""
        manager = await self.manager()
        driver = await self.store.lease(lease_name(plane))
        if manager is None:
            return "it has no manager"
        if process_named(manager.holder) is not None and _process(manager) is None:
            return f"its manager {manager.holder} is dead"
        if driver is None or driver.holder != manager.holder:
            return f"its manager {manager.holder} does not manage it now"
        return ""

    async def successor(self) -> str:
        """The process that is known to take over from the manager when it dies, as text; "": none."""
        waiting = await self.store.lease(next_manager_lease(self.network))
        if waiting is not None and (process_named(waiting.holder) is None or _process(waiting) is not None):
            return waiting.holder
        manager = await self.manager()
        process = _process(manager) if manager is not None else None
        try:
            return process.environ().get(RESTARTED_BY, "") if process is not None else ""
        except psutil.Error:
            return ""

    async def manager(self) -> Lease | None:
        """The manager's lease as it is now."""
        return await self.store.lease(manager_lease(self.network))

    async def make_fault(self, fault: Fault, seconds: float) -> None:
        """Kill the manager that ``fault`` names, and wait until it has ended. See ``MakesFaults``; PreconditionFailed
        as ``why_unkillable`` says.
        """
        doing = f"making a fault ({fault.words})"
        lease = await self.manager()
        pid = process_named(fault.unit)
        if lease is None or lease.holder != fault.unit or pid is None:
            raise Conflict(doing, f"{lease.holder if lease is not None else 'no process'} is the manager now")
        try:
            process = os.pidfd_open(pid)
        except ProcessLookupError as error:
            raise Conflict(doing, "it has just ended by itself") from error
        try:
            # What its number shows is true of this very process, as long as that has not ended.
            if why := why_unkillable(lease):
                raise PreconditionFailed(doing, why)
            if _ended(process):
                raise ProcessLookupError
            signal.pidfd_send_signal(process, signal.SIGKILL)
            await _gone(process, doing)
        except ProcessLookupError as error:
            raise Conflict(doing, "it has just ended by itself") from error
        finally:
            os.close(process)

    async def undo_fault(self, fault: Fault) -> str:
        """See ``MakesFaults``: its successor heals that."""
        return ""


def why_unkillable(lease: Lease) -> str:
    """Why the holder of a manager's lease cannot be killed from here; "": it can."""
    if process_named(lease.holder) is None:
        return f"the manager {lease.holder} is on another host"
    process = _process(lease)
    if process is None:
        return f"the manager {lease.holder} is dead already, or another process has its number"
    if process.pid == os.getpid():
        return "this process is that manager, and could not report the result"
    try:
        ours, serves = process.uids().real == os.getuid(), "serve" in process.cmdline()
    except psutil.Error:
        return f"the process of the manager {lease.holder} cannot be inspected"
    if not ours:
        return f"the manager {lease.holder} belongs to another user"
    return "" if serves else f"the lease holder {lease.holder} is not a 'quarterdeck serve' process"


def _process(lease: Lease) -> psutil.Process | None:
    """The process on this host that holds a lease, if it is alive: the process that had that number when the lease was
    last renewed still has it, because it was started before that.
    """
    pid = process_named(lease.holder)
    try:
        found = psutil.Process(pid) if pid is not None else None
        if found is None or found.status() == psutil.STATUS_ZOMBIE:
            return None
        return found if found.create_time() <= lease.expires - lease.ttl else None
    except psutil.Error:
        return None


def _ended(process: int) -> bool:
    """Whether the process of a pidfd has ended (pidfd_open(2))."""
    poll = select.poll()
    poll.register(process, select.POLLIN)
    return bool(poll.poll(0))


async def _gone(process: int, doing: str) -> None:
    loop, gone = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(process, gone.set)
    try:
        async with asyncio.timeout(_DYING):
            await gone.wait()
    except TimeoutError as error:
        raise TimedOut(doing, f"it is still running after {_DYING:.0f} s") from error
    finally:
        loop.remove_reader(process)
