"""The part of quarterdeck that runs inside supervisord, as an RPC interface (supervisor's own extension point).

It reads units from their records instead of a configuration file, so that a change of one never touches another,
tries crashing units again for ever with a bounded back-off, and makes a unit die with its supervisord. Methods
that change something take ``expires`` (seconds, CLOCK_MONOTONIC, which all processes of a host share): a call
that a frozen machine reads long after its caller gave up must not be carried out.
"""

from __future__ import annotations

import ctypes
import json
import os
import shlex
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

from supervisor.datatypes import RestartUnconditionally
from supervisor.http import NOT_DONE_YET
from supervisor.options import ProcessConfig, ProcessException, ProcessGroupConfig
from supervisor.process import Subprocess
from supervisor.states import STOPPED_STATES, ProcessStates
from supervisor.xmlrpc import Faults, RPCError

from quarterdeck.errors import Corrupt, QuarterdeckError
from quarterdeck.sites.local.courtesy import Courtesy
from quarterdeck.sites.local.data_guard import note_data, refusal
from quarterdeck.sites.local.fences import FENCED, Fences, off_the_wire
from quarterdeck.sites.local.machine_init import PR_SET_PDEATHSIG, READY_FD
from quarterdeck.sites.local.records import FILES, LOG, UnitRecord, read_record, unit_folders
from quarterdeck.sites.local.unit_files import owner_of, put_staged, remove_watched
from quarterdeck.turns import take_short_turns

FIRST_PAUSE = 0.25  # seconds before the second start of a unit that exits at once; doubles each time
LONGEST_PAUSE = 5  # seconds
SETTLED_AFTER = 1  # seconds that a unit must stay up to count as running
PROMPT = 0.02  # seconds; supervisord by itself looks once a second
PASSING = frozenset((ProcessStates.STARTING, ProcessStates.BACKOFF, ProcessStates.STOPPING, ProcessStates.EXITED))
HANDLED = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGCHLD, signal.SIGUSR2)
LOG_BYTES = 10 * 1024 * 1024
LOG_BACKUPS = 2


class UnitProcess(Subprocess):  # type: ignore[misc]
    """A unit's process: supervisor's, with a bounded back-off, and killed when supervisord is."""

    config: Any
    state: int
    delay: float
    backoff: int
    starts = 0
    exit_code: int | None = None
    _told = ""
    fresh = False  # the next start, and no other, may begin without data
    refused = ""

    def get_execv_args(self) -> Any:
        """The program to execute; supervisor asks for it before each start. Raises ProcessException when the unit must
        not start without its data: supervisor tries again, and a unit whose data is back starts by itself.
        """
        fresh, self.fresh = self.fresh, False
        self.config.read_again()
        self.refused = refusal(self.config.folder, self.config.record, fresh=fresh)
        if self.refused:
            raise ProcessException(self.refused)
        self.starts += 1
        return super().get_execv_args()

    def note_data(self) -> None:
        """Remember that the unit has data, as soon as it has."""
        if not self.config.marked:
            # What cannot be read or written now is tried again at the next look.
            with suppress(OSError):
                self.config.marked = note_data(self.config.folder, self.config.record)

    def spawn(self) -> Any:
        """Start the process. A signal that comes before its program was executed must not be lost to a handler of
        supervisord's that the fork inherited.
        """
        signal.pthread_sigmask(signal.SIG_BLOCK, HANDLED)
        try:
            pid = super().spawn()
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, HANDLED)
        if pid:
            self.config.courtesy.begins(pid, self.config.record.nice)
        return pid

    def _spawn_as_child(self, filename: str, argv: list[str]) -> Any:
        supervisord = os.getppid()
        if self.config.record.uid is not None:
            _become(self.config.record.uid)  # before prctl: a change of user takes back what that asks for
        self.config.libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != supervisord:
            os._exit(127)  # it died before it was asked to take us along
        for number in (*HANDLED, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, HANDLED)
        return super()._spawn_as_child(filename, argv)

    def change_state(self, new_state: int, expected: bool = True) -> Any:
        """Supervisor waits one second longer after each failure, without a bound."""
        result = super().change_state(new_state, expected)
        if new_state == ProcessStates.BACKOFF:
            self.delay = time.time() + min(FIRST_PAUSE * 2 ** (self.backoff - 1), LONGEST_PAUSE)
            # supervisor waits for this many seconds when it sees the clock set back
            self.backoff = min(self.backoff, LONGEST_PAUSE + 1)
        return result

    def finish(self, pid: int, sts: int) -> None:
        """The process has ended: take along what it left of its process group, and start it again at once if it
        had settled.
        """
        self.exit_code = os.waitstatus_to_exitcode(sts)
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        super().finish(pid, sts)
        if self.state == ProcessStates.EXITED:
            self.spawn()

    def record_spawnerr(self, msg: str) -> None:
        """Put the reason why it cannot start where people look for it, once for as long as it stays the same."""
        super().record_spawnerr(msg)
        if msg == self._told:
            return
        self._told = msg
        with Path(self.config.stdout_logfile).open("a") as log:
            log.write(f"quarterdeck: cannot start: {msg}\n")


def _become(user: int) -> None:
    """Be that user and its group, and nobody else; a fork that cannot must not go on as root."""
    try:
        os.setgroups([])
        os.setgid(user)
        os.setuid(user)
    except OSError as error:
        os.write(2, f"quarterdeck: cannot start as user {user}: {error.strerror}\n".encode())
        os._exit(127)


class UnitConfig(ProcessConfig):  # type: ignore[misc]
    """A unit as supervisor wants it."""

    def __init__(self, options: Any, folder: Path, record: UnitRecord, libc: ctypes.CDLL, courtesy: Courtesy) -> None:
        self.folder = folder
        self.record = record
        self.marked = record.needs is None
        self.libc = libc
        self.courtesy = courtesy
        nothing = dict.fromkeys(ProcessConfig.req_param_names)
        settings = {
            "name": record.name,
            "directory": str(folder / FILES),
            "umask": 0o022,
            "priority": 999,
            "autostart": record.wanted,
            "autorestart": RestartUnconditionally,
            "startsecs": SETTLED_AFTER,
            "startretries": sys.maxsize,
            "stdout_logfile": str(folder / LOG),
            "stdout_logfile_maxbytes": LOG_BYTES,
            "stdout_logfile_backups": LOG_BACKUPS,
            "redirect_stderr": True,
            "stopsignal": signal.SIGTERM,
            "stopwaitsecs": record.stop_timeout,
            "killasgroup": True,
            "exitcodes": [0],
            "environment": dict(record.env),
            "command": shlex.join(record.argv),
        }
        super().__init__(options, **(nothing | settings))

    def read_again(self) -> None:
        """Take what was written since about how the unit starts (what it needs, its arguments at boot)."""
        try:
            found = read_record(self.folder)
        except (Corrupt, OSError):
            return  # what was known before is as strict
        if found is not None:
            same = found.digest == self.record.digest
            self.record = found if same else replace(self.record, needs=found.needs)
            self.command = shlex.join(self.record.argv)

    def make_process(self, group: Any = None) -> UnitProcess:
        """The process of this unit, not started yet."""
        process = UnitProcess(self)
        process.group = group
        return process


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
        """Stop a process where it stands until then (CLOCK_MONOTONIC), whatever becomes of whoever asked for it."""
        os.kill(pid, signal.SIGSTOP)
        self.held[pid] = until

    def let_go(self, pid: int) -> None:
        """Let it go on; one that has ended meanwhile is fine."""
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
        self._libc = ctypes.CDLL(None)
        self._courtesy = Courtesy()
        self._poller = self._options.poller = PromptPoller(supervisord, self._options.poller, self._courtesy)
        # A unit is a session, which is more than supervisor's process group, and what the kernel shares fairly.
        self._options.setpgrp = os.setsid
        take_short_turns()  # all units with it
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
        """Refuse whoever comes with an older fence than somebody else did before: asked by all calls that change
        something. Without a fence nobody is refused.
        """
        _refuse_late(expires)
        if fence:
            try:
                asked = off_the_wire(fence)
                good = self._fences.admit(asked)
            except (QuarterdeckError, OSError, ValueError) as error:
                raise RPCError(Faults.FAILED, f"looking at fence {fence}: {error}") from error
            if not good:
                seen = f"a driver of plane {asked.plane} with token {self._fences.newest(asked.plane)} has been here"
                raise RPCError(FENCED, f"{seen}, not {asked.token}")
        return True

    def put(self, staged: str, expires: float, fence: str) -> bool:
        """Put files that units watch in their places: a JSON list of [from, to], below the folders of units."""
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
        """Run the unit as its record says, which may ask for a fresh start. One that runs must have been stopped
        before. Fails when it must not start without its data (it is tried again all the same).
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

    def stop(self, name: str, kill: bool, expires: float, fence: str = "") -> bool | Callable[[], Any]:
        """Stop the unit; the answer comes when its process is gone."""
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

    def favour(self, name: str, expires: float) -> bool:
        """Let the unit's start give way to others no longer; fine if it does not."""
        _refuse_late(expires)
        if pid := self._pid(name):
            self._courtesy.ends(pid)
        return True

    def hold(self, name: str, seconds: float, expires: float, fence: str = "") -> bool:
        """Stop the unit's process where it stands, for at most ``seconds``. Whether it runs at all."""
        self.admit(expires, fence)
        pid = self._pid(name)
        if pid:
            self._poller.hold(pid, time.monotonic() + seconds)
        return pid is not None

    def let_go(self, name: str, expires: float) -> bool:
        """Let it go on; fine if nothing held it."""
        _refuse_late(expires)
        if pid := self._pid(name):
            self._poller.let_go(pid)
        return True

    def forget(self, name: str, expires: float, fence: str = "") -> bool:
        """Know nothing of the unit any more; it must have been stopped before."""
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
        config = UnitConfig(self._options, folder, record, self._libc, self._courtesy)
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
        name = "stopped" if state == ProcessStates.STOPPED else "unknown"
    return {
        "name": process.config.name,
        "state": name,
        "digest": process.config.record.digest,
        "pid": process.pid or None,
        "exit_code": process.exit_code,
        "restarts": max(0, process.starts - 1),
        "refused": process.refused if name == "failed" else "",
    }


def make(supervisord: Any) -> MachineInterface:
    """What supervisord's configuration names as the factory; tells machine_init's starter that it answers."""
    interface = MachineInterface(supervisord)
    ready = os.environ.pop(READY_FD, None)
    if ready is not None:
        os.write(int(ready), b"up")
        os.close(int(ready))
    return interface
