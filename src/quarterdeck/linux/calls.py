"""System calls that Python 3.11 does not wrap, and the kernel's process table.

Calls raise OSError. Few imports: first processes of machines use it.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from pathlib import Path

CLONE_NEWUSER = 0x10000000
CLONE_NEWNET = 0x40000000
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_LIBC = ctypes.CDLL(None, use_errno=True)


def unshare(flags: int) -> None:
    """Put this process into new namespaces of the kinds in ``flags``."""
    _checked(_LIBC.unshare(flags), "unshare")


def setns(descriptor: int, kind: int) -> None:
    """Move this thread into the namespace that ``descriptor`` is open on.

    A user namespace can only be joined by a process with a single thread (EINVAL otherwise).
    """
    _checked(_LIBC.setns(descriptor, kind), "setns")


def signal_on_parents_death(number: int) -> None:
    """Make the kernel send this process a signal when the thread that started it ends (0: never)."""
    _checked(_LIBC.prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(number), 0, 0, 0), "prctl")


def end_with_parent(parent: int, number: int) -> None:
    """In a child: make the kernel send it a signal when ``parent`` ends. Ends this process if it has ended already.

    A change of user undoes it.
    """
    signal_on_parents_death(number)
    if os.getppid() != parent:
        os._exit(1)


def adopt_orphans() -> None:
    """Have descendants of this process whose parents end become its children."""
    _checked(_LIBC.prctl(_PR_SET_CHILD_SUBREAPER, ctypes.c_ulong(1), 0, 0, 0), "prctl")


def inotify_instance() -> int:
    """A new inotify instance."""
    return _checked(_LIBC.inotify_init1(os.O_CLOEXEC), "inotify_init1")


def kernel_call(number: int, *arguments: object) -> int:
    """The result of the system call of that number, for calls that the C library does not wrap."""
    return _checked(_LIBC.syscall(number, *arguments), f"system call {number}")


def open_namespace(pid: int | str, kind: str) -> int:
    """A descriptor on a process's namespace: ``kind`` is ``user`` or ``net``."""
    return os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY | os.O_CLOEXEC)


def map_users(pid: int) -> None:
    """Map the users of a process's new user namespace: as root, all that root has; otherwise root to the own user.

    user_namespaces(7): one line with the writer's own id is all that a process without privileges may write, and only
    after setgroups has been denied.
    """
    folder = Path("/proc") / str(pid)
    if os.geteuid() == 0:
        for kind in ("uid_map", "gid_map"):
            ranges = [line.split() for line in Path("/proc/self", kind).read_text().splitlines()]
            same = "".join(f"{first} {first} {count}\n" for first, _outside, count in ranges)
            (folder / kind).write_text(same)
        return
    (folder / "setgroups").write_text("deny")
    (folder / "uid_map").write_text(f"0 {os.geteuid()} 1\n")
    (folder / "gid_map").write_text(f"0 {os.getegid()} 1\n")


def _checked(result: int, name: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
    return result


def pids() -> Iterator[int]:
    """The ids of all processes."""
    return (int(entry) for entry in os.listdir("/proc") if entry.isdigit())  # noqa: PTH208 - pathlib would double the time


def stat_of(process: int | str) -> list[bytes] | None:
    """The fields of proc_pid_stat(5) from the state on (there field 3, here 0) of a process, or of a thread
    (``PID/task/TID``); None when it has ended.
    """
    try:
        with open(f"/proc/{process}/stat", "rb") as file:  # noqa: PTH123 - as above
            stat = file.read()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return stat[stat.rindex(b")") + 2 :].split()  # the name before may contain anything


def children() -> list[int]:
    """The processes whose parent is this one."""
    me = str(os.getpid()).encode()
    return [pid for pid in pids() if (fields := stat_of(pid)) is not None and fields[1] == me]
