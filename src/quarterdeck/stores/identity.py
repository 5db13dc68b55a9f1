"""What tells resources and processes apart."""

from __future__ import annotations

import os
import socket
import uuid


def new_uid() -> str:
    """A random UUID."""
    return str(uuid.uuid4())


def this_process(command: str) -> str:
    """A lease's holder in words: ``host:pid (quarterdeck migrate alpha)``. ``command`` must hold no secret."""
    return f"{socket.gethostname()}:{os.getpid()} ({command})"
