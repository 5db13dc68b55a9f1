"""Run a program inside a namespace of the lab; ``enter_argv`` is the prefix of its argv.

The process becomes the program: its id, parent, session, environment and streams stay the same.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from quarterdeck.errors import PreconditionFailed, QuarterdeckError, Unavailable
from quarterdeck.linux import calls
from quarterdeck.package import isolated
from quarterdeck.sites.netns import control

EX_UNAVAILABLE = 69  # sysexits.h


def enter_argv(home: Path, where: str) -> tuple[str, ...]:
    """The prefix that makes an argv run there. Whatever its environment, it finds this package, and passes it on."""
    return isolated("quarterdeck.sites.netns.enter", str(home.absolute()), where, "--")


def enter(home: Path, where: str) -> None:
    """Move the current process, which must still have a single thread, into the lab's namespaces for good.

    ``where`` is CLIENT, HUB, or ``inside(site, machine)``. Sockets that are open already stay where they were opened.
    Raises Unavailable if the lab does not run, NotFound if it has no such place.
    """
    if len(os.listdir("/proc/self/task")) > 1:  # noqa: PTH208
        raise PreconditionFailed("entering the lab", "the process has several threads", "enter before they start")
    user, network = control.ask_descriptors(control.lab_folder(home), "enter", where)
    try:
        # A process cannot join the user namespace that it is in (setns(2): EINVAL).
        if os.fstat(user).st_ino != Path("/proc/self/ns/user").stat().st_ino:
            calls.setns(user, calls.CLONE_NEWUSER)
        calls.setns(network, calls.CLONE_NEWNET)
    except OSError as error:
        raise Unavailable("entering the lab", str(error)) from error
    finally:
        os.close(user)
        os.close(network)


def run() -> None:
    """The program of ``enter_argv``: enter and become the rest of the argv."""
    home, where, _dashes, *program = sys.argv[1:]
    try:
        enter(Path(home), where)
        os.execvp(program[0], program)  # noqa: S606
    except (QuarterdeckError, OSError) as error:
        sys.stderr.write(f"starting {program[0]} at {where}: {error}\n")
        sys.exit(EX_UNAVAILABLE)
