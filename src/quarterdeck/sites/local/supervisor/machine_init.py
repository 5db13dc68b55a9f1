"""The first process of a machine: keeps its supervisord running, and is the parent of whatever gets lost.

Run by ``package.isolated`` with the machine's folder, and the module search path of supervisord as JSON on standard
input; it imports little, so that it starts fast and stays small. It goes into the background; the command
itself ends with 0 when supervisord answers, else with 1 and a line on standard error.

    machine_init        subreaper: orphans of the machine become its children
      supervisord       dies with machine_init, and all its units with it (PR_SET_PDEATHSIG)
        units
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

from quarterdeck.linux.calls import adopt_orphans, children, end_with_parent

READY_FD = "QUARTERDECK_READY_FD"
LONGEST_PAUSE = 5.0  # seconds between two starts of a supervisord that keeps dying


def main() -> int:
    """Start the machine; see the module."""
    os.chdir(sys.argv[1])
    search_path = json.load(sys.stdin)
    reader, writer = os.pipe()
    if os.fork():
        os.close(writer)
        with os.fdopen(reader, "rb") as word:
            if word.read() == b"up":
                return 0
        sys.stderr.write("supervisord ended before it answered\n")
        return 1
    os.close(reader)
    os.setsid()
    _leave_streams()
    adopt_orphans()
    _run(search_path, writer)
    return 0


def _leave_streams() -> None:
    nothing = os.open(os.devnull, os.O_RDONLY)
    log = os.open("machine.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for source, target in ((nothing, 0), (log, 1), (log, 2)):
        os.dup2(source, target)
    os.close(nothing)
    os.close(log)


def _run(search_path: list[str], ready: int) -> None:
    """Keep one supervisord running. When it dies, whatever it left behind is killed, too, before the next one starts:
    nothing of the old one is adopted.
    """
    pause = 0.1
    while True:
        started = time.monotonic()
        me = os.getpid()
        pid = os.fork()
        if pid == 0:
            _become_supervisord(me, search_path, ready)
        if ready >= 0:
            os.close(ready)
            ready = -1
        while os.waitpid(-1, 0)[0] != pid:
            pass  # an orphan of the machine was reaped
        _kill_children()
        pause = 0.1 if time.monotonic() - started > LONGEST_PAUSE else min(pause * 2, LONGEST_PAUSE)
        time.sleep(pause)


def _become_supervisord(parent: int, search_path: list[str], ready: int) -> None:
    try:
        end_with_parent(parent, signal.SIGKILL)
        sys.path[:] = search_path
        if ready >= 0:
            os.environ[READY_FD] = str(ready)
        Path("supervisor.sock").unlink(missing_ok=True)
        from supervisor.supervisord import main as supervisord

        supervisord(["-c", "supervisord.conf"])
        os._exit(0)
    except BaseException:  # noqa: BLE001 - a fork must never go on as its parent
        import traceback

        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)


def _kill_children() -> None:
    """Kill all children until there are none: those of a killed child become ours."""
    while True:
        for pid in children():
            os.kill(pid, signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def run() -> None:
    """The entry point for ``package.isolated``."""
    sys.exit(main())
