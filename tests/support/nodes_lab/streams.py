"""Calls of kubectl that stay open: what becomes of each while the plane is changed."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from support.conditions import until
from support.nodes_lab.continuity import COUNTER, Nodes
from support.plane_lab import kubectl_program


@dataclass
class Stream:
    """One of them. ``last`` and ``ended`` are Unix seconds: of the last line that it wrote, and of its end."""

    process: subprocess.Popen[str]
    lines: int = 0
    last: float = 0.0
    ended: float | None = None
    errors: str = ""
    _threads: list[threading.Thread] = field(default_factory=list)

    def follow(self) -> None:
        """Read what it writes, until its end."""
        self._threads = [threading.Thread(target=each, daemon=True) for each in (self._read, self._hear)]
        for each in self._threads:
            each.start()

    def end(self) -> None:
        """End it, if nothing else did."""
        with self.process:
            self.process.terminate()
            for each in self._threads:
                each.join(10.0)

    def _read(self) -> None:
        assert self.process.stdout is not None
        for _ in self.process.stdout:
            self.lines, self.last = self.lines + 1, time.time()
        self.process.wait()
        self.ended = time.time()

    def _hear(self) -> None:
        assert self.process.stderr is not None
        self.errors = self.process.stderr.read().strip()


@dataclass(frozen=True)
class Streams:
    """Those of ``streams``, by name."""

    of: Mapping[str, Stream]
    since: float = field(default_factory=time.time)

    def check(self) -> None:
        """None hangs: each goes on, or has ended and its user has seen that."""
        now = time.time()
        until(lambda: all(each.ended or each.last > now for each in self.of.values()), f"no stream hangs: {self}")

    def __str__(self) -> str:
        return "; ".join(f"{name}: {self._state(each)}" for name, each in self.of.items())

    def _state(self, stream: Stream) -> str:
        if stream.ended is None:
            return f"goes on after {stream.lines} lines"
        after = f"ended after {stream.ended - self.since:.1f} s and {stream.lines} lines"
        return f"{after} with {stream.process.returncode}: {stream.errors[-200:] or 'nothing said'}"


@contextmanager
def streams(nodes: Nodes) -> Iterator[Streams]:
    """Logs of a pod that are followed, a program that runs in it, and a watch of what is written all the time; all of
    them give lines at the beginning of the block.
    """
    name = nodes.names[0]
    calls = {
        "logs -f": ("logs", "--follow", "--tail=1", name, "-c", "tick"),
        "exec": ("exec", name, "-c", "tick", "--", "/work", "tick"),
        "get --watch": ("get", "configmap", COUNTER, "--watch", "--output-watch-events"),
    }
    made = {label: _started(nodes, argv) for label, argv in calls.items()}
    try:
        until(lambda: all(each.lines for each in made.values()), "all streams have begun")
        yield Streams(made)
    finally:
        for each in made.values():
            each.end()


def _started(nodes: Nodes, argv: tuple[str, ...]) -> Stream:
    command = (str(kubectl_program()), "--kubeconfig", str(nodes.client.kubeconfig), *argv)
    environment = {"HOME": str(nodes.lab.root)}
    made = Stream(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment))
    made.follow()
    return made
