"""A unit as supervisord runs it: from its record, with a bounded back-off, as the owner of its data, and dead when
supervisord is.
"""

from __future__ import annotations

import os
import shlex
import signal
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from supervisor.datatypes import RestartUnconditionally
from supervisor.options import ProcessConfig, ProcessException
from supervisor.process import Subprocess
from supervisor.states import ProcessStates

from quarterdeck.components.endings import BEGINS, CANNOT_START, ENDED, ending
from quarterdeck.errors import Corrupt
from quarterdeck.linux.calls import end_with_parent
from quarterdeck.sites.base.records import UnitRecord
from quarterdeck.sites.local.supervisor.courtesy import Courtesy
from quarterdeck.sites.local.supervisor.own_user import give_again
from quarterdeck.sites.local.supervisor.records import FILES, LOG, NICE, RECORD, is_altered, read_record
from quarterdeck.sites.local.supervisor.unit_files import note_data, refused

FIRST_PAUSE = 0.25  # seconds before the second start of a unit that exits at once; doubles each time
LONGEST_PAUSE = 5  # seconds
#: Seconds. A start that may begin without data, and ends before it has any, has failed, and so the next one may as
#: well. One that lasts longer uses up the permission: it may have had data that is lost.
BEGINS_WITHIN = 30.0
SETTLED_AFTER = 1  # seconds that a unit must stay up to count as running
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
    _logged = ""
    fresh = False  # it may begin without data: see BEGINS_WITHIN
    _began = 0.0
    refused = ""
    _altered = False
    _ended_by_itself = False
    _looked_at: tuple[tuple[int, int, int], ...] | None = None

    def get_execv_args(self) -> Any:
        """The program to execute; supervisor calls it before each start. Raises ProcessException when the unit must not
        start without its data: supervisor tries again, and a unit whose data is back starts by itself.
        """
        self.config.read_again()
        self.refused = refused(self.config.folder, self.config.record, fresh=self.fresh) or _not_given(
            self.config.record
        )
        if self.refused:
            raise ProcessException(self.refused)
        self.starts += 1
        self._began = time.monotonic()
        found = super().get_execv_args()
        self._logged = ""
        self._note(BEGINS)
        return found

    def note_data(self) -> None:
        """Record that the unit has data, as soon as it has."""
        if not self.config.marked:
            # What cannot be read or written now is tried again at the next check.
            with suppress(OSError):
                self.config.marked = note_data(self.config.folder, self.config.record)

    def use_up_fresh(self, now: float) -> None:
        """Its process has ended at ``now``: the next one may begin without data only if this one never got so far."""
        self.fresh = self.fresh and not self.config.marked and now - self._began < BEGINS_WITHIN

    def is_altered(self) -> bool:
        """Whether another program has changed the unit's record or files. They are read only after a modification."""
        try:
            paths = [self.config.folder / RECORD, *(Path(path) for path, _ in self.config.record.files)]
            touched = tuple(_touched(path) for path in paths)
            if touched != self._looked_at:
                self._altered, self._looked_at = is_altered(self.config.folder), touched
        except OSError:
            return False  # it is not known
        return self._altered

    def spawn(self) -> Any:
        """Start the process. A signal that comes before its program was executed must not be lost to a handler of
        supervisord's that the fork inherited.
        """
        signal.pthread_sigmask(signal.SIG_BLOCK, HANDLED)
        try:
            pid = super().spawn()
        finally:
            self._ended_by_itself = False
            signal.pthread_sigmask(signal.SIG_UNBLOCK, HANDLED)
        if pid:
            self.config.courtesy.begins(pid, NICE[self.config.record.priority])
        return pid

    def _spawn_as_child(self, filename: str, argv: list[str]) -> Any:
        supervisord = os.getppid()
        if self.config.record.uid is not None:
            _become(self.config.record.uid)  # before the next: a change of user undoes it
        end_with_parent(supervisord, signal.SIGKILL)
        for number in (*HANDLED, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, HANDLED)
        if self._ended_by_itself:
            time.sleep(self.config.record.restart_pause)  # here: supervisord has others to take care of
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
        """The process has ended: kill the rest of its process group, and restart it at once if it had settled."""
        self.exit_code = os.waitstatus_to_exitcode(sts)
        self.note_data()
        self.use_up_fresh(time.monotonic())
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        super().finish(pid, sts)
        self._note(f"{ENDED}: {ending(self.exit_code)}")
        if self.state == ProcessStates.EXITED:
            self._ended_by_itself = True
            self.spawn()

    def record_spawnerr(self, msg: str) -> None:
        """Write the reason why it cannot start into its log, once for as long as it stays the same."""
        super().record_spawnerr(msg)
        if msg == self._logged:
            return
        self._logged = msg
        self._note(f"{CANNOT_START}: {msg}")

    def _note(self, line: str) -> None:
        """Add a line to the unit's log, if its disk has room: the unit is managed in any case."""
        with suppress(OSError), Path(self.config.stdout_logfile).open("a") as log:
            log.write(f"{line}\n")


def _touched(path: Path) -> tuple[int, int, int]:
    """A value that changes with every modification of a file; constant for a missing one."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return 0, 0, 0
    return found.st_mtime_ns, found.st_size, found.st_ino


def _not_given(record: UnitRecord) -> str:
    """Why the unit's user cannot own its data; "" when it does."""
    try:
        give_again(record)
    except OSError as error:
        return f"its data cannot be given to user {record.uid} ({error.strerror or error}): {error.filename}"
    return ""


def _become(user: int) -> None:
    """Become that user and its group, and no other; a fork that cannot must not continue as root."""
    try:
        os.setgroups([])
        os.setgid(user)
        os.setuid(user)
    except OSError as error:
        os.write(2, f"quarterdeck: cannot start as user {user}: {error.strerror}\n".encode())
        os._exit(127)


class UnitConfig(ProcessConfig):  # type: ignore[misc]
    """A unit in the form that supervisor needs."""

    def __init__(self, options: Any, folder: Path, record: UnitRecord, courtesy: Courtesy) -> None:
        self.folder = folder
        self.record = record
        self.marked = record.needs is None
        self.courtesy = courtesy
        nothing = dict.fromkeys(ProcessConfig.req_param_names)
        settings = {
            "name": record.name,
            "directory": str(folder / FILES),
            "umask": 0o022,
            "priority": 999,
            "autostart": record.wanted,
            "autorestart": RestartUnconditionally,
            "startsecs": SETTLED_AFTER + record.restart_pause,
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
        """Reload the stored settings of the unit's start (the data that it needs, its arguments at boot)."""
        try:
            found = read_record(self.folder)
        except (Corrupt, OSError):
            return  # the previous ones are as strict
        if found is not None:
            same = found.digest == self.record.digest
            self.record = found if same else replace(self.record, needs=found.needs)
            self.command = shlex.join(self.record.argv)

    def make_process(self, group: Any = None) -> UnitProcess:
        """The process of this unit, not started yet."""
        process = UnitProcess(self)
        process.group = group
        return process
