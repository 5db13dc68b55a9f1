"""Real planes that move, are aborted and lose their drivers again and again: no request fails, ever."""

from __future__ import annotations

import random
from collections import Counter
from itertools import count

import pytest
from support.moves import STEPS, aborted, migrated
from support.plane_lab import plane_lab

from soak.conftest import Soak

pytestmark = [pytest.mark.soak, pytest.mark.timeout(0)]

#: What one round is made of, in any order.
ROUND = ("migrated",) * 10 + ("aborted",) * 5 + ("killed",) * 10


def test_migrations_aborts_and_kills_in_any_order_fail_no_request(soak: Soak) -> None:
    done: Counter[str] = Counter()
    numbers = count()
    with plane_lab() as demo:
        demo.run("create", "demo")
        order: list[str] = []
        for seed in soak.seeds():
            chance = random.Random(seed)
            order = order or chance.sample(ROUND, len(ROUND))
            what, moment = order.pop(), chance.randrange(1, STEPS)
            label = f"soak-{next(numbers)}"
            if what == "aborted":
                aborted(demo, label, moment)
            else:
                migrated(demo, label, (moment,) if what == "killed" else ())
            done[what] += 1
    print(f"\n{dict(done)}")
