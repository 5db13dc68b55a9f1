"""The parent of a job: runs it to its end, and then kills all that it started.

Run by ``package.isolated`` with the job's argv. Ends as the job does. When its standard input is closed, no process
waits for the job any more: then the job is killed.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys

from quarterdeck.linux.calls import adopt_orphans, children

EX_NOT_STARTED = 127


def main() -> int:
    """The job's exit code; negative for the signal that ended it."""
    adopt_orphans()
    try:
        job = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL, start_new_session=True)
    except OSError as error:
        print(f"{sys.argv[1]}: {error.strerror}", flush=True)  # noqa: T201 - it is what the job says
        return EX_NOT_STARTED
    ended = os.pidfd_open(job.pid)
    watched = select.poll()
    watched.register(ended, select.POLLIN)
    watched.register(sys.stdin, select.POLLIN | select.POLLHUP)
    happened = {descriptor for descriptor, _ in watched.poll()}
    code = job.wait() if ended in happened else -signal.SIGKILL
    _end_children()
    return code


def _end_children() -> None:
    """Kill children until there are none: those of killed ones become ours."""
    while True:
        for pid in children():
            os.kill(pid, signal.SIGKILL)  # ours until we have waited for it
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def run() -> None:
    """The entry point for ``package.isolated``: ends as the job does."""
    ended_with = main()
    if ended_with < 0:
        if -ended_with != signal.SIGKILL:
            signal.signal(-ended_with, signal.SIG_DFL)
        os.kill(os.getpid(), -ended_with)
    sys.exit(ended_with)
