"""Telling the service manager of the host how this process is (sd_notify(3)). Where there is none, nobody is told."""

from __future__ import annotations

import os
import socket


def notify(state: str) -> None:
    """Send ``state`` (``READY=1``, ``WATCHDOG=1``, ...) to whom NOTIFY_SOCKET names, if it names anybody."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as channel:
        channel.sendto(state.encode(), f"\0{address[1:]}" if address.startswith("@") else address)
