"""The part of quarterdeck that runs inside supervisord, as an RPC interface (supervisor's own extension point).

It reads units from their records instead of a configuration file, so that a change of one never affects another,
restarts crashing units for ever with a bounded back-off, and makes a unit die with its supervisord. Methods that change
something take ``expires`` (seconds, CLOCK_MONOTONIC, which all processes of a host share): a call that a frozen machine
reads long after its caller gave up must not be carried out.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any

from supervisor.http import NOT_DONE_YET
from supervisor.options import ProcessGroupConfig
from supervisor.states import STOPPED_STATES, ProcessStates
from supervisor.xmlrpc import Faults, RPCError

from quarterdeck.errors import Corrupt, QuarterdeckError
from quarterdeck.linux.turns import use_short_time_slices
from quarterdeck.sites.base.records import UnitRecord
from quarterdeck.sites.local.supervisor.courtesy import Courtesy
from quarterdeck.sites.local.supervisor.fences import FENCED, Fences, off_the_wire
from quarterdeck.sites.local.supervisor.machine_init import READY_FD
from quarterdeck.sites.local.supervisor.records import read_record, unit_folders
from quarterdeck.sites.local.supervisor.unit import UnitConfig, UnitProcess
from quarterdeck.sites.local.supervisor.unit_files import owner_of, put_staged, remove_watched

PROMPT = 0.02  # seconds; supervisord by itself checks once a second
PASSING = frozenset((ProcessStates.STARTING, ProcessStates.BACKOFF, ProcessStates.STOPPING, ProcessStates.EXITED))


class PromptPoller:
    """Supervisord's poller, which does not sleep for a whole second while a unit starts, stops or waits."""

    def __init__(self, supervisord: Any, inner: Any, courtesy: Courtesy) -> None:
        self._supervisord = supervisord
        self._inner = inner
        self._courtesy = courtesy
        self.held: dict[int, float] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def poll(self, timeout: float) -> Any:
        """Wait for something to read or write, at most ``timeout`` seconds."""
        groups = self._supervisord.process_groups.values()
        processes = [process for group in groups for process in group.processes.values()]
        for process in processes:
            process.note_data()
        if any(process.get_state() in PASSING for process in processes):
            timeout = PROMPT
        for pid, until in tuple(self.held.items()):
            timeout = PROMPT
            if time.monotonic() > until:
                self.let_go(pid)
        due = self._courtesy.look()
        return self._inner.poll(timeout if due is None else min(timeout, due))

    def hold(self, pid: int, until: float) -> None:
        """Stop a process until then (CLOCK_MONOTONIC), even if the caller dies."""
        os.kill(pid, signal.SIGSTOP)
        self.held[pid] = until

    def let_go(self, pid: int) -> None:
        """Resume it; no error if it has ended since."""
        if self.held.pop(pid, None) is not None:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


class MachineInterface:
    """The RPC methods. Units are named as in their records; results are JSON, or true."""

    def __init__(self, supervisord: Any) -> None:
        self._supervisord = supervisord
        self._options = supervisord.options
        self._units = Path.cwd() / "units"
        self._fences = Fences(Path.cwd() / "fences")
        self._courtesy = Courtesy()
        self._poller = self._options.poller = PromptPoller(supervisord, self._options.poller, self._courtesy)
        # A unit is a session, which is more than supervisor's process group, and the unit of the kernel's fair
        # scheduling.
        self._options.setpgrp = os.setsid
        use_short_time_slices()  # all units with it
        for folder in unit_folders(self._units):
            try:
                record = read_record(folder)
            except Corrupt as error:
                self._options.logger.error(str(error))
                continue
            if record is not None:
                self._add(folder, record)

    def units(self) -> str:
        """Every unit: a list of objects with the fields of UnitStatus."""
        return json.dumps([_status(process) for process in self._processes()])

    def admit(self, expires: float, fence: str = "") -> bool:
        """Refuse a caller with an older fence than an earlier one: checked by all calls that change something. Without
        a fence no caller is refused.
        """
        _refuse_late(expires)
        if fence:
            try:
                asked = off_the_wire(fence)
                good = self._fences.admit(asked)
            except (QuarterdeckError, OSError, ValueError) as error:
                raise RPCError(Faults.FAILED, f"checking fence {fence}: {error}") from error
            if not good:
                seen = f"a driver of plane {asked.plane} with token {self._fences.newest(asked.plane)} has been here"
                raise RPCError(FENCED, f"{seen}, not {asked.token}")
        return True

    def put(self, staged: str, expires: float, fence: str) -> bool:
        """Move files that units watch to their places: a JSON list of [from, to], below the folders of units."""
        self.admit(expires, fence)
        pairs = tuple((Path(new), Path(old)) for new, old in json.loads(staged))
        try:
            for pair in pairs:
                for path in pair:
                    owner_of(self._units, PurePosixPath(path))
            put_staged(pairs)
        except (QuarterdeckError, OSError) as error:
            raise RPCError(Faults.FAILED, str(error)) from error
        return True

    def take(self, paths: str, expires: float, fence: str) -> bool:
        """Delete files that units watch: a JSON list of paths."""
        self.admit(expires, fence)
        try:
            remove_watched(self._units, tuple(PurePosixPath(each) for each in json.loads(paths)))
        except (QuarterdeckError, OSError) as error:
            raise RPCError(Faults.FAILED, str(error)) from error
        return True

    def start(self, name: str, expires: float, fence: str = "") -> bool:
        """Start the unit from its record, which may allow a fresh start. A running one must have been stopped before.
        Fails when it must not start without its data (it is retried nevertheless).
        """
        self.admit(expires, fence)
        folder = self._units / name
        try:
            record = read_record(folder)
        except Corrupt as error:
            raise RPCError(Faults.FAILED, str(error)) from error
        if record is None:
            raise RPCError(Faults.BAD_NAME, name)
        self._drop(name)
        process = self._add(folder, record)
        process.fresh = record.fresh
        process.spawn()
        if process.refused:
            raise RPCError(Faults.FAILED, process.refused)
        return True

    def read_again(self, name: str, expires: float, fence: str = "") -> bool:
        """Reload the record of a running unit: its files were changed. No error if there is none."""
        self.admit(expires, fence)
        process = self._find(name)
        try:
            record = read_record(self._units / name)
        except Corrupt as error:
            raise RPCError(Faults.FAILED, str(error)) from error
        if process is not None and record is not None:
            process.config.record = record
        return True

    def stop(self, name: str, kill: bool, expires: float, fence: str = "") -> bool | Callable[[], Any]:
        """Stop the unit; the answer comes when its process has ended."""
        self.admit(expires, fence)
        process = self._find(name)
        if process is None or process.get_state() in STOPPED_STATES:
            return True
        if kill:
            process.administrative_stop = True
            process.kill(signal.SIGKILL)
        elif process.get_state() != ProcessStates.STOPPING:
            process.stop()

        def gone() -> Any:
            return True if process.get_state() in STOPPED_STATES else NOT_DONE_YET

        gone.delay = 0.001  # type: ignore[attr-defined]
        return gone

    def prioritize(self, name: str, nice: int, expires: float) -> bool:
        """Set the unit's priority from now on, whether its start is complete or not. No error if it does not run."""
        _refuse_late(expires)
        if pid := self._pid(name):
            self._courtesy.settles(pid, nice)
        return True

    def hold(self, name: str, seconds: float, expires: float, fence: str = "") -> bool:
        """Stop the unit's process (SIGSTOP), for at most ``seconds``. Whether it runs at all."""
        self.admit(expires, fence)
        pid = self._pid(name)
        if pid:
            self._poller.hold(pid, time.monotonic() + seconds)
        return pid is not None

    def let_go(self, name: str, expires: float) -> bool:
        """Resume it; no error if it was not stopped."""
        _refuse_late(expires)
        if pid := self._pid(name):
            self._poller.let_go(pid)
        return True

    def forget(self, name: str, expires: float, fence: str = "") -> bool:
        """Remove the unit; it must have been stopped before."""
        self.admit(expires, fence)
        self._drop(name)
        return True

    def _processes(self) -> list[UnitProcess]:
        return [each for group in self._supervisord.process_groups.values() for each in group.processes.values()]

    def _pid(self, name: str) -> int | None:
        """The unit's process, if it runs."""
        process = self._find(name)
        return process.pid or None if process is not None else None

    def _find(self, name: str) -> UnitProcess | None:
        group = self._supervisord.process_groups.get(name)
        return None if group is None else group.processes[name]

    def _add(self, folder: Path, record: UnitRecord) -> UnitProcess:
        config = UnitConfig(self._options, folder, record, self._courtesy)
        self._supervisord.add_process_group(ProcessGroupConfig(self._options, record.name, 999, [config]))
        process: UnitProcess = self._supervisord.process_groups[record.name].processes[record.name]
        return process

    def _drop(self, name: str) -> None:
        if name in self._supervisord.process_groups and not self._supervisord.remove_process_group(name):
            raise RPCError(Faults.STILL_RUNNING, name)


def _refuse_late(expires: float) -> None:
    if time.monotonic() > expires:
        raise RPCError(Faults.FAILED, "the caller has given up waiting")


def _status(process: UnitProcess) -> dict[str, str | int | None]:
    """The fields of UnitStatus. A unit that exited soon after a start has failed until it has settled."""
    state = process.get_state()
    if state in (ProcessStates.STARTING, ProcessStates.BACKOFF):
        name = "failed" if process.backoff else "running"
    elif state == ProcessStates.RUNNING:
        name = "running"
    elif state == ProcessStates.STOPPING:
        name = "stopping"
    else:
        name = "stopped" if state == ProcessStates.STOPPED else "failed"
    return {
        "name": process.config.name,
        "state": name,
        "digest": process.config.record.digest,
        "pid": process.pid or None,
        "exit_code": process.exit_code,
        "restarts": max(0, process.starts - 1),
        "refused": process.refused if name == "failed" else "",
        "altered": process.is_altered(),
        "note": process.config.record.note,
    }


def make(supervisord: Any) -> MachineInterface:
    """The factory in supervisord's configuration; tells machine_init's starter that it answers."""
    interface = MachineInterface(supervisord)
    ready = os.environ.pop(READY_FD, None)
    if ready is not None:
        os.write(int(ready), b"up")
        os.close(int(ready))
    return interface
