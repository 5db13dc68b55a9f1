"""What tells resources and processes apart."""

from __future__ import annotations

import os
import re
import socket
import uuid

#: A process as ``this_process`` says it, also with the user before it.
_NAMED = re.compile(r"(?:^|@)(?P<host>[^@]*):(?P<pid>\d+) \(")


def new_uid() -> str:
    """A random UUID."""
    return str(uuid.uuid4())


def this_process(command: str) -> str:
    """A lease's holder in words: ``host:pid (quarterdeck migrate alpha)``. ``command`` must hold no secret."""
    return f"{socket.gethostname()}:{os.getpid()} ({command})"


def process_named(holder: str) -> int | None:
    """The number of the process on this host that a lease's holder says it is; None: it is on another one, or does not
    say it so.
    """
    found = _NAMED.search(holder)
    return int(found["pid"]) if found is not None and found["host"] == socket.gethostname() else None
