"""Whether a history is linearizable: porcupine says, in a small program of Go's (``checker``)."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from support.go_programs import built

from histories.operations import Operation, lines

_SOURCE = Path(__file__).parent / "checker"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What came of it. ``illegal``: the registers whose history no order of its operations explains; ``undecided``:
    those for which it took too long to find one.
    """

    operations: int
    keys: int
    illegal: tuple[str, ...]
    undecided: tuple[str, ...]

    def __str__(self) -> str:
        words = [f"{self.operations:,} operations on {self.keys} registers"]
        words += [f"not linearizable: {', '.join(self.illegal)}"] if self.illegal else []
        words += [f"not decided: {', '.join(self.undecided)}"] if self.undecided else []
        return "; ".join(words if len(words) > 1 else [*words, "linearizable"])

    @property
    def linearizable(self) -> bool:
        """Whether that is known of all of it."""
        return not self.illegal and not self.undecided


async def judged(history: Sequence[Operation], *, picture: Path | None = None) -> Verdict:
    """The verdict on a history. ``picture``: where to draw the first part that could not have been (HTML)."""
    verdict = await _judged(lines(history), picture)
    assert verdict.operations == len(history), verdict
    return verdict


async def judge_file(path: Path, *, picture: Path | None = None) -> Verdict:
    """The same for a history that was written down."""
    return await _judged(await asyncio.to_thread(path.read_bytes), picture)


async def _judged(history: bytes, picture: Path | None) -> Verdict:
    argv = [await _program(), *(() if picture is None else ("-picture", str(picture)))]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*argv, stdin=pipe, stdout=pipe, stderr=pipe)
    output, complaint = await process.communicate(history)
    assert process.returncode == 0, complaint.decode()
    found = json.loads(output)
    return Verdict(
        operations=found["operations"],
        keys=found["keys"],
        illegal=tuple(found["illegal"]),
        undecided=tuple(found["undecided"]),
    )


async def _program() -> str:
    module = {each.name: each.read_bytes() for each in sorted(_SOURCE.iterdir())}
    mark = hashlib.sha256(repr(sorted(module.items())).encode()).hexdigest()[:12]
    return str(await built(f"checker-{mark}", module, ["."]) / "checker")


if __name__ == "__main__":  # so that it is not built while seconds are counted
    asyncio.run(_program())
