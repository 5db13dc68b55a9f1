"""Histories of clients: what counts as done, refused and unknown; and what fails is the same for the same seed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from histories.faults import ANYWHERE, ON_NETWORKS, strikes
from histories.operations import Op, Outcome
from histories.registers import Known, Once, Registers, judged

from quarterdeck.model.faults import Fail
from quarterdeck.probe import client as probe


def answer(status: int, document: Any) -> probe.RequestOutcome:
    return probe.RequestOutcome(status=status, body=json.dumps(document).encode(), address="10.0.0.1")


def refusal(reason: str, name: str = "a") -> dict[str, Any]:
    return {"kind": "Status", "reason": reason, "details": {"name": name}}


HELD = {"kind": "ConfigMap", "metadata": {"resourceVersion": "7"}, "data": {"value": "3"}}


@pytest.mark.parametrize(
    ("op", "found", "outcome", "known"),
    [
        (Op.GET, answer(200, HELD), Outcome.OK, Known("3", "7")),
        (Op.CREATE, answer(201, HELD), Outcome.OK, Known("3", "7")),
        (Op.GET, answer(404, refusal("NotFound")), Outcome.OK, Known()),
        (Op.PUT, answer(404, refusal("NotFound")), Outcome.REFUSED, Known()),
        (Op.CAS, answer(409, refusal("Conflict")), Outcome.REFUSED, None),
        (Op.CREATE, answer(409, refusal("AlreadyExists")), Outcome.REFUSED, None),
        # A write that never asks for a revision meets no conflict, and what is said of something else says nothing.
        (Op.PUT, answer(409, refusal("Conflict")), Outcome.UNKNOWN, None),
        (Op.CREATE, answer(404, refusal("NotFound", "namespace")), Outcome.UNKNOWN, None),
        (Op.GET, answer(404, {"kind": "Status"}), Outcome.UNKNOWN, None),
        (Op.PUT, answer(504, refusal("Timeout")), Outcome.UNKNOWN, None),
        (Op.PUT, answer(429, refusal("TooManyRequests")), Outcome.UNKNOWN, None),
        (Op.PUT, probe.RequestOutcome(reason="no answer within 4 s", address="10.0.0.1"), Outcome.UNKNOWN, None),
        (Op.PUT, probe.RequestOutcome(reason="connecting to 10.0.0.1 port 443: refused"), None, None),
    ],
)
def test_an_answer_says_what_came_of_a_write_or_nothing_is_known(
    op: Op, found: probe.RequestOutcome, outcome: Outcome | None, known: Known | None
) -> None:
    assert judged(op, "a", found) == (outcome, known)


def test_a_write_is_never_sent_again() -> None:
    assert not Once("PUT", "/").idempotent


def test_registers_are_given_up_that_are_long_in_use_or_unsure() -> None:
    import random

    shared, chance = Registers(), random.Random(1)
    first = {shared.pick(chance) for _ in range(400)}
    assert first == {f"register-0-{number}" for number in range(4)}
    assert shared.pick(chance).startswith("register-1-")


def test_the_same_seed_has_the_same_fail() -> None:
    kinds = ANYWHERE | ON_NETWORKS
    made = strikes(7, 1_800.0, kinds)
    assert made == strikes(7, 1_800.0, kinds)
    assert made != strikes(8, 1_800.0, kinds)
    assert {each.fail for each in made} == set(kinds), "all of them in half an hour"
    assert all(each.at + each.hold <= 1_800.0 for each in made)
    assert any(later.at < earlier.at + earlier.hold for earlier, later in zip(made, made[1:], strict=False))
    assert Fail.QUORUM in kinds
