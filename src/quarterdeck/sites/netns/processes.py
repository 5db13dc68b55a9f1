"""The processes of a namespace, and how to end exactly those."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

from quarterdeck.errors import TimedOut
from quarterdeck.linux.calls import pids
from quarterdeck.linux.processes import ProcessId, all_ended


def namespace_id(pid: int | str, kind: str) -> int | None:
    """The inode number of a process's namespace (``kind``: ``user`` or ``net``); None if it is not readable."""
    try:
        return Path(f"/proc/{pid}/ns/{kind}").stat().st_ino
    except OSError:  # it ended, or belongs to another user
        return None


def members(kind: str, inode: int) -> tuple[int, ...]:
    """The ids of all running processes in that namespace, including orphans."""
    return tuple(pid for pid in pids() if namespace_id(pid, kind) == inode and ProcessId.of(pid) is not None)


def kill_members(kind: str, inode: int, *, spare: int, deadline: float) -> None:
    """SIGKILL every process in that namespace but ``spare``, and those that they start in the meantime, until none is
    left.

    ``deadline`` is in monotonic seconds; raises TimedOut when one does not die.
    """
    while victims := [pid for pid in members(kind, inode) if pid != spare]:
        with contextlib.ExitStack() as stack:
            killed = []
            for pid in victims:
                with contextlib.suppress(ProcessLookupError):
                    descriptor = os.pidfd_open(pid)
                    stack.callback(os.close, descriptor)
                    # Another process may have got the id before it was opened, but not after.
                    if namespace_id(pid, kind) == inode:
                        signal.pidfd_send_signal(descriptor, signal.SIGKILL)
                        killed.append(descriptor)
            if not all_ended(killed, deadline):
                raise TimedOut("ending the processes of the lab", f"some of {victims} do not end")
