"""The lives show it: whatever is taken out of driver, observer or actions, one of a few lives ends as it must not.

The same lives of the loop as it is end well, so it is the mutation that was caught.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.tiers import first_of_each

from loop.faults import NoFaults, OneFault, Recorded
from loop.lives import Ended, Life, many
from loop.mutants import MUTANTS, Mutant


@pytest.fixture(autouse=True, scope="module")
def cheap() -> Iterator[None]:
    with many():
        yield


def lives(mutant: Mutant) -> Iterator[Life]:
    if mutant.kind is None:
        yield Life(story=mutant.of, faults=NoFaults())
        return
    recorded = Recorded()
    Life(story=mutant.of, faults=recorded).run()
    for number in recorded.effects[mutant.first :: mutant.every]:
        yield Life(story=mutant.of, faults=OneFault(number, mutant.kind))


@pytest.mark.parametrize("mutant", first_of_each(MUTANTS, lambda each: each.kind is None), ids=str)
def test_a_mutant_is_caught(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    planned = list(lives(mutant))
    tried: list[Life] = []
    with monkeypatch.context() as patch, pytest.raises(Ended) as caught:
        mutant.apply(patch)
        for life in planned:
            tried.append(Life(story=life.story, faults=life.faults))
            life.run()
    print(f"\n{mutant}, life {len(tried)} of {len(planned)}: {str(caught.value).splitlines()[0]}")
    tried[-1].run()
