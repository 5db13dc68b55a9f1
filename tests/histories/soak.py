"""A plane whose machines fail while clients use its registers: ``python -m histories.soak HOME NAME SEED SECONDS OUT
KIND...``, for a process that reaches its machines. What clients did is written to OUT, for its judge.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from histories.faults import Strike, Striker, strikes
from histories.operations import Operation, Outcome, lines
from histories.registers import register_clients
from quarterdeck.engine.workspace import recorded
from quarterdeck.engine.workspace.access import probe_target
from quarterdeck.engine.workspace.home import Home
from quarterdeck.model.faults import Fail

#: Seconds for which clients are at work before anything fails, and after they are served again, and how long that may
#: take once all is undone: members that start together wait for each other.
QUIET = 2.0
CALM = 3.0
SERVED = 180.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Soaked:
    """What was done, and what failed. ``unsent``: requests that never got to a server, and reads without an answer."""

    history: tuple[Operation, ...]
    unsent: int
    made: tuple[Strike, ...]

    def __str__(self) -> str:
        unknown = sum(each.outcome is Outcome.UNKNOWN for each in self.history)
        ends = sorted(each.end for each in self.history if each.end is not None)
        stall = max((later - earlier for earlier, later in zip(ends, ends[1:], strict=False)), default=0) / 1e9
        return (
            f"{len(self.made)} strikes; {len(self.history):,} operations, {unknown} of unknown outcome, "
            f"{self.unsent} not sent or not answered; nobody was answered for {stall:.1f} s at most"
        )


async def soaked(
    folder: Path, name: str, *, seed: int, seconds: float, kinds: Mapping[Fail, int], tell: Callable[[str], None]
) -> Soaked:
    """Have a plane's machines fail for so long. Whatever failed is made well again at the end, and every register is
    read that was ever written to. Raises TimeoutError when clients are not served then.
    """
    home = await Home.open(folder)
    try:
        target = await probe_target(home, await recorded.existing(home.store, name))
        striker = Striker(home=home, name=name, tell=tell)
        async with register_clients(target, seed=seed) as crew:
            await asyncio.sleep(QUIET)
            await striker.run(strikes(seed, seconds, kinds))
            async with asyncio.timeout(SERVED):
                await crew.auditor.read_all()
            await asyncio.sleep(CALM)
        shared = crew.shared
        return Soaked(history=tuple(shared.history), unsent=shared.unsent, made=tuple(striker.made))
    finally:
        await home.close()


async def _main(folder: str, name: str, seed: str, seconds: str, out: str, *kinds: str) -> None:
    chosen = {Fail(kind): int(weight) for kind, _, weight in (each.partition("=") for each in kinds)}
    done = await soaked(
        Path(folder),
        name,
        seed=int(seed),
        seconds=float(seconds),
        kinds=chosen,
        tell=lambda words: print(words, flush=True),
    )
    print(done, flush=True)
    await asyncio.to_thread(Path(out).write_bytes, lines(done.history))


if __name__ == "__main__":
    asyncio.run(_main(*sys.argv[1:]))
