"""What clients were promised holds while programs and machines of a real plane fail, also most of them at once."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from histories.judge import judged
from histories.operations import Op, Outcome
from histories.soak import soaked
from support.plane_lab import PlaneLab

from quarterdeck.model.faults import Fail

pytestmark = pytest.mark.timeout(240)

#: The leader, a machine, one that stands still, and then two of three: some while others still fail.
SEED, SECONDS = 317, 16.0
KINDS = {Fail.UNIT: 1, Fail.HANG: 1, Fail.LEADER: 1, Fail.MACHINE: 1, Fail.FREEZE: 1, Fail.QUORUM: 1}


def test_a_history_of_clients_is_linearizable_while_a_plane_fails(demo: PlaneLab, tmp_path: Path) -> None:
    done = asyncio.run(soaked(demo.home, "demo", seed=SEED, seconds=SECONDS, kinds=KINDS, tell=print))
    print(done)
    assert len(done.made) >= 2
    seen = {(each.op, each.outcome) for each in done.history}
    assert seen >= {(op, Outcome.OK) for op in Op} | {(Op.CAS, Outcome.REFUSED)}
    assert any(each.outcome is Outcome.UNKNOWN for each in done.history), "nobody noticed that anything failed"
    verdict = asyncio.run(judged(done.history, picture=tmp_path / "history.html"))
    assert verdict.linearizable, verdict
    demo.run("wait", "demo", deadline=120)
