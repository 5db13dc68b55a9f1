"""One program at a time, and what becomes of it when somebody ends the run."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from types import FrameType

from runner.stages import Command

_ENDS = (signal.SIGINT, signal.SIGTERM)
#: After so many signals the program is killed, and with it what would have cleaned up after it.
_PATIENCE = 3


class Child:
    """Runs programs, each in a process group of its own: so a signal that ends the run reaches it once, wherever that
    signal came from. Ctrl-C and SIGTERM both come to it as SIGINT, upon which pytest takes down what its tests made.
    """

    def __init__(self) -> None:
        self.signal: signal.Signals | None = None
        """The first one that came."""
        self._signals = 0
        self._group: int | None = None

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Handle signals while the block runs. Handlers, and not SIG_IGN, which programs would inherit."""
        before = {number: signal.signal(number, self._handle) for number in _ENDS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def run(self, command: Command, environment: Mapping[str, str]) -> int:
        """Run a program to its end; its exit code, or 127 where it cannot be started."""
        if self.signal is not None:
            return 128 + self.signal
        everything = {**os.environ, **environment, **command.environment}
        try:
            process = subprocess.Popen(command.argv, env=everything, stdin=subprocess.DEVNULL, process_group=0)
        except OSError as error:
            print(f"test: {command.argv[0]} cannot be run: {error.strerror}", flush=True)
            return 127
        self._group = process.pid
        if self.signal is not None:  # it came while the program was being started
            self._send(signal.SIGINT)
        code = process.wait()
        if self.signal is not None:
            self._send(signal.SIGTERM)  # to what it has left behind
        self._group = None
        return code

    def _handle(self, number: int, _: FrameType | None) -> None:
        self._signals += 1
        if self.signal is None:
            self.signal = signal.Signals(number)
            self._send(signal.SIGINT)
        elif self._signals < _PATIENCE:
            os.write(2, b"\ntest: it is ending, and takes down what it made; once more kills it\n")
        else:
            self._send(signal.SIGKILL)

    def _send(self, number: signal.Signals) -> None:
        if self._group is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._group, number)
