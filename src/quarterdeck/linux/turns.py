"""The scheduler's time slice of a process, where several wait for a processor."""

from __future__ import annotations

import ctypes
import platform

from quarterdeck.linux.calls import kernel_call

#: Seconds; the kernel's own default is 1.4 ms on two processors, and more on more.
SHORT = 0.0002

# The numbers of sched_setattr(2) and sched_getattr(2), for which the C library has no functions before glibc 2.41.
_CALLS = {"x86_64": (314, 315), "aarch64": (274, 275)}
_SCHED_OTHER = 0


class _Attributes(ctypes.Structure):
    """struct sched_attr (linux/sched/types.h). ``runtime``: nanoseconds."""

    _fields_ = (
        ("size", ctypes.c_uint32),
        ("policy", ctypes.c_uint32),
        ("flags", ctypes.c_uint64),
        ("nice", ctypes.c_int32),
        ("priority", ctypes.c_uint32),
        ("runtime", ctypes.c_uint64),
        ("deadline", ctypes.c_uint64),
        ("period", ctypes.c_uint64),
    )


def use_short_time_slices() -> bool:
    """Give this thread, and all threads and processes that it starts later, short time slices. Whether that is now the
    case.

    A request passes through half a dozen programs, and waits in each for its turn: shorter slices get it through
    sooner. Each program's share of the processor stays the same, and no rights are needed (Linux 6.12: a fair task's
    slice is its sched_runtime). Older kernels, and other machines, keep their own slices.
    """
    attributes = _read()
    if attributes is None or attributes.policy != _SCHED_OTHER:
        return False
    attributes.runtime = round(SHORT * 1e9)
    return _call(0, ctypes.byref(attributes), 0) and turn() == SHORT


def turn() -> float | None:
    """The time slice of this thread in seconds; None when the kernel does not report it."""
    attributes = _read()
    return attributes.runtime / 1e9 if attributes is not None and attributes.runtime else None


def _read() -> _Attributes | None:
    attributes = _Attributes()
    size = ctypes.sizeof(attributes)
    return attributes if _call(1, ctypes.byref(attributes), size, 0) else None


def _call(which: int, *arguments: object) -> bool:
    numbers = _CALLS.get(platform.machine())
    if numbers is None:
        return False
    try:
        return kernel_call(numbers[which], 0, *arguments) == 0
    except OSError:  # an older kernel, or one that forbids it
        return False
