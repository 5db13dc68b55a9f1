"""Programs from a folder that the user gives: used unchanged, after a check of their versions."""

from __future__ import annotations

import re
from pathlib import Path

from quarterdeck.errors import TimedOut
from quarterdeck.runner import run_blocking
from quarterdeck.upstream.cache import CacheEntry, State
from quarterdeck.upstream.catalog import UpstreamProgram, Version
from quarterdeck.upstream.sources import Target, fault

GIVEN = "given"
"""The source of such entries."""
_DEADLINE = 30.0


class GivenFolder:
    """A folder with some or all of the programs, by their names."""

    def __init__(self, folder: Path, target: Target) -> None:
        self._folder = folder
        self._target = target
        self._versions: dict[tuple[Path, int, int], Version | None] = {}  # by path, size, time of change

    def look(self, program: UpstreamProgram, version: Version) -> CacheEntry | None:
        """The ``program`` in the folder; None when the folder has none.

        It is broken unless it is a complete program for the target that prints ``version`` on request, which is done
        once for each file.
        """
        path = self._folder / program
        size = 0
        try:
            size = path.stat().st_size
            why = fault(path, self._target) or self._wrong_version(program, path, version)
        except FileNotFoundError:
            return None
        except OSError as error:
            why = f"cannot be used ({error.strerror})"
        state = State.BROKEN if why else State.READY
        return CacheEntry(program=program, version=version, path=path, state=state, why=why, source=GIVEN, size=size)

    def _wrong_version(self, program: UpstreamProgram, path: Path, version: Version) -> str:
        facts = path.stat()
        key = (path, facts.st_size, facts.st_mtime_ns)
        if key not in self._versions:
            self._versions[key] = read_version(program, path)
        found = self._versions[key]
        return "" if found == version else f"is version {found or 'unknown'}, wanted is {version}"


def version_arguments(program: UpstreamProgram) -> tuple[str, ...]:
    """The arguments that make ``program`` print its version."""
    if program is UpstreamProgram.KUBECTL:
        return ("version", "--client")
    if program in (UpstreamProgram.ETCDCTL, UpstreamProgram.ETCDUTL):
        return ("version",)
    return ("-version",) if program is UpstreamProgram.COREDNS else ("--version",)


def read_version(program: UpstreamProgram, path: Path) -> Version | None:
    """Run ``path`` to learn its version; None when it prints none. Raises OSError when it cannot be run."""
    try:
        done = run_blocking((str(path), *version_arguments(program)), doing="reading its version", deadline=_DEADLINE)
    except TimedOut:
        return None
    output = done.output.replace(str(path), "")  # Envoy prints its path first, which may contain numbers as well
    match = re.search(r"\bv?(\d+\.\d+\.\d+)\b", output)
    return Version.parse(match[1]) if match else None
