"""The keeper's hold on its forwarder process."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from collections.abc import Mapping

from quarterdeck.errors import Unavailable

_PATIENCE = 10.0


class Forwarder:
    """The forwarder as a child process of the keeper, started in the namespace that the keeper is in."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "quarterdeck.sites.netns.forwarder"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.descriptor = os.pidfd_open(self._process.pid)
        """Readable when the forwarder has ended."""

    @property
    def pid(self) -> int:
        """Its process number."""
        return self._process.pid

    def set(self, delays: Mapping[tuple[int, int], float]) -> None:
        """Have it use these delays (milliseconds by (from site, to site)); raises Unavailable if it does not answer.

        They hold for every packet that comes once this has returned.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        line = json.dumps({f"{source}-{target}": delay for (source, target), delay in delays.items()})
        try:
            self._process.stdin.write(f"{line}\n".encode())
            self._process.stdin.flush()
        except BrokenPipeError as error:
            raise Unavailable("setting the delays of the lab", "the forwarder has ended") from error
        readable, _, _ = select.select([self._process.stdout], [], [], _PATIENCE)
        if not readable or self._process.stdout.readline() != b"ok\n":
            raise Unavailable("setting the delays of the lab", "the forwarder does not answer")

    def close(self) -> None:
        """Wait for one that has ended, or end it."""
        self._process.kill()
        self._process.communicate()
        os.close(self.descriptor)
