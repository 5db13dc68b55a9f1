"""What came of a run of pytest, as a file that the runner of all stages reads (tests/runner)."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

#: The environment variable that names the file.
VARIABLE = "QUARTERDECK_TEST_TALLY"
#: So many of the slowest tests are kept.
SLOWEST = 15


@dataclass(frozen=True, slots=True)
class Tally:
    """``skipped``: each skipped test (or file) with its reason. ``left_out``: how many tests of each file were not
    selected, by the reason. ``slowest``: tests with their seconds, fixtures included, the slowest first.
    """

    passed: int = 0
    failed: int = 0
    skipped: tuple[tuple[str, str], ...] = ()
    left_out: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    slowest: tuple[tuple[str, float], ...] = ()

    @property
    def tests(self) -> int:
        """How many tests ran to an end."""
        return self.passed + self.failed

    def write(self, path: Path) -> None:
        """Write it to a file."""
        path.write_text(json.dumps(asdict(self)))

    @classmethod
    def read(cls, path: Path) -> Self:
        """What ``write`` wrote."""
        found: dict[str, Any] = json.loads(path.read_text())
        return cls(
            passed=found["passed"],
            failed=found["failed"],
            skipped=tuple((test, why) for test, why in found["skipped"]),
            left_out=found["left_out"],
            slowest=tuple((test, seconds) for test, seconds in found["slowest"]),
        )


def by_file(left_out: Iterable[tuple[str, str]]) -> dict[str, dict[str, int]]:
    """How many tests of each file were left out for each reason; from a (file, reason) for each test."""
    counted: dict[str, dict[str, int]] = defaultdict(dict)
    for (file, why), count in sorted(Counter(left_out).items()):
        counted[file][why] = count
    return dict(counted)


def slowest(durations: Iterable[tuple[str, float]]) -> tuple[tuple[str, float], ...]:
    """The slowest tests; ``durations`` has seconds for each phase of each test."""
    seconds: dict[str, float] = defaultdict(float)
    for test, took in durations:
        seconds[test] += took
    found = sorted(seconds.items(), key=lambda each: -each[1])[:SLOWEST]
    return tuple((test, round(took, 1)) for test, took in found)
