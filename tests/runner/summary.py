"""What a run says at its end: a table of the stages, the slowest tests, and by name what was left out."""

from __future__ import annotations

import textwrap
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePosixPath

from support.tally import SLOWEST, Tally
from support.tiers import Tier

from runner.stages import Stage

_WIDTH = 120


class Result(StrEnum):
    """What came of a stage."""

    PASSED = "passed"
    FAILED = "FAILED"
    NO_TESTS = "no tests"
    INTERRUPTED = "INTERRUPTED"
    NOT_RUN = "not run"


@dataclass(frozen=True, slots=True)
class Ran:
    """A stage, what came of it, and how many seconds it took. No tally: it has no tests, or did not come to its end."""

    stage: Stage
    result: Result
    seconds: float = 0.0
    tally: Tally | None = None


def summary(ran: Sequence[Ran], stages: Sequence[Stage]) -> str:
    """All of it; ``stages``: every stage that there is."""
    blocks = (_table(ran), _slowest(ran), _left_out(ran), _skipped(ran), _stages(ran, stages))
    return "\n".join(line for block in blocks for line in block)


def _table(ran: Sequence[Ran]) -> Iterator[str]:
    yield ""
    yield f"{'stage':10} {'tests':>7} {'failed':>7} {'skipped':>7} {'seconds':>8}  result"
    for each in ran:
        tally = each.tally
        counts = (tally.tests, tally.failed, len(tally.skipped)) if tally else ("", "", "")
        tests, failed, skipped = (f"{count:,}" if isinstance(count, int) else count for count in counts)
        yield f"{each.stage.name:10} {tests:>7} {failed:>7} {skipped:>7} {each.seconds:8.0f}  {each.result}"
    tests = sum(each.tally.tests for each in ran if each.tally)
    yield f"{'all':10} {tests:>7,} {'':7} {'':7} {sum(each.seconds for each in ran):8.0f}"


def _slowest(ran: Sequence[Ran]) -> Iterator[str]:
    every = [each for one in ran if one.tally for each in one.tally.slowest]
    if every:
        yield f"\nslowest tests (seconds, fixtures included), {SLOWEST} at most:"
    for test, seconds in sorted(every, key=lambda each: -each[1])[:SLOWEST]:
        yield f"{seconds:7.1f}  {_short(test)}"


def _left_out(ran: Sequence[Ran]) -> Iterator[str]:
    for each in ran:
        files: dict[str, list[str]] = defaultdict(list)
        for file, counts in sorted(each.tally.left_out.items() if each.tally else ()):
            for why, count in counts.items():
                files[why].append(f"{PurePosixPath(file).stem.removeprefix('test_')} {count}")
        for why, names in sorted(files.items(), key=lambda each: _order(each[0])):
            yield from _wrapped(f"\nleft out of {each.stage.name}, {_belongs(why)}: ", ", ".join(names))


def _order(why: str) -> int:
    """Tiers from the smallest on, and other reasons after them."""
    return [*Tier].index(Tier(why)) if why in set(Tier) else len(Tier)


def _belongs(why: str) -> str:
    return f"tests of ./test {why}" if why in set(Tier) else f"tests for which there are {why}"


def _skipped(ran: Sequence[Ran]) -> Iterator[str]:
    skipped = [each for one in ran if one.tally for each in one.tally.skipped]
    if skipped:
        yield "\nskipped:"
    for test, why in skipped:
        yield from _wrapped(f"  {_short(test)}: ", why)


def _stages(ran: Sequence[Ran], stages: Sequence[Stage]) -> Iterator[str]:
    known = {each.stage.name for each in ran if each.result is not Result.NOT_RUN}
    others = [each for each in stages if each.name not in known]
    if others:
        yield "\nstages that did not run:"
    for each in others:
        yield from _wrapped(f"  ./test {each.name}: ", each.what)


def _short(test: str) -> str:
    return test.removeprefix("tests/")


def _wrapped(head: str, text: str) -> list[str]:
    start = "\n" if head.startswith("\n") else ""
    return [start + textwrap.fill(head.lstrip("\n") + text, _WIDTH, subsequent_indent="    ", break_on_hyphens=False)]
