"""Lives by the thousand: `python -m loop.soak --for 600` has fresh seeds, each a life with several faults;
`python -m loop.soak --every` has one fault at each call of each story. Says how many lives a minute one core has.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator, Sequence
from random import Random, SystemRandom

from loop.faults import Kind, OneFault, Recorded, SomeFaults
from loop.lives import STORIES, Life, many


def by_seed(seed: int) -> Life:
    """A life with several faults, all of which follow from the seed."""
    random = Random(seed)
    faults = SomeFaults(random=Random(seed), left=random.randint(1, 6), share=random.choice((0.001, 0.003, 0.01)))
    return Life(story=random.choice(STORIES), faults=faults, seed=seed)


def seeded(first: int) -> Iterator[Life]:
    """Without end."""
    seed = first
    while True:
        yield by_seed(seed)
        seed += 1


def every() -> Iterator[Life]:
    """One fault at each call."""
    for story in STORIES:
        recorded = Recorded()
        Life(story=story, faults=recorded).run()
        for number in sorted(recorded.points.values()):
            for kind in Kind:
                yield Life(story=story, faults=OneFault(number, kind))


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--for", dest="seconds", type=float, default=60.0, help="seconds (with --every: at most)")
    asked.add_argument("--every", action="store_true", help="one fault at each call of each story")
    asked.add_argument("--seed", type=int, default=None, help="this life alone")
    given = asked.parse_args()
    if os.environ.get("PYTHONHASHSEED") != "0":  # a life is the same again only where the order of sets is
        os.execve(
            sys.executable, [sys.executable, "-m", "loop.soak", *sys.argv[1:]], {**os.environ, "PYTHONHASHSEED": "0"}
        )
    with many():
        if given.seed is not None:
            print(by_seed(given.seed).run().tale(10_000))
            return 0
        return _soak(every() if given.every else seeded(SystemRandom().getrandbits(32)), given.seconds)


def _pace(spent: Sequence[float]) -> str:
    return f"{len(spent)} lives, {60 * len(spent) / sum(spent):.0f} per minute of one core"


def _soak(lives: Iterator[Life], seconds: float) -> int:
    began, failed = time.monotonic(), 0
    spent: dict[str, list[float]] = {}
    for life in lives:
        worked = time.process_time()
        try:
            life.run()
        except AssertionError as error:
            failed += 1
            print(f"--- seed {life.seed}, {life.story}, {life.faults}:\n{type(error).__name__}: {error}", flush=True)
        spent.setdefault(str(life.story), []).append(time.process_time() - worked)
        if time.monotonic() - began > seconds:
            break
    for story, each in spent.items():
        print(f"{story}: {_pace(each)}")
    every = [seconds for each in spent.values() for seconds in each]
    print(f"{_pace(every)}; {failed} of them ended as they must not")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
