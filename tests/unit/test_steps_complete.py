"""Every kind of step has what a step needs: words, and an effect on the memory, the simulated and the real world."""

from __future__ import annotations

import dataclasses
from typing import get_args

import pytest

from quarterdeck.actions import carry_out
from quarterdeck.model import steps
from quarterdeck.model.steps import Step
from quarterdeck.model.steps.base import Base
from quarterdeck.planner import simulated

KINDS: tuple[type[Base], ...] = get_args(Step)
#: Kinds that leave nothing in the memory: what they did is seen.
LEAVES_NOTHING = (
    steps.StartUnit,
    steps.StopUnit,
    steps.ReloadUnit,
    steps.AddLearner,
    steps.Promote,
    steps.TransferLeadership,
    steps.RemoveMember,
    steps.Swap,
    steps.SetRecord,
)


def defined() -> set[str]:
    """Every kind that any module of the package defines."""
    found, left = set[str](), list(Base.__subclasses__())
    while left:
        kind = left.pop()
        left.extend(kind.__subclasses__())
        if not kind.__subclasses__():
            found.add(f"{kind.__module__}.{kind.__name__}")
    return found


def test_every_kind_is_a_step() -> None:
    assert defined() == {f"{kind.__module__}.{kind.__name__}" for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_kind_says_what_it_does(kind: type[Base]) -> None:
    assert kind.words is not Base.words
    assert kind.__doc__ is not None
    assert dataclasses.is_dataclass(kind)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_kind_leaves_something_in_the_memory_or_is_known_to_leave_nothing(kind: type[Base]) -> None:
    assert (kind.remembered is Base.remembered) == (kind in LEAVES_NOTHING)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_kind_is_simulated_or_only_remembered(kind: type[Base]) -> None:
    assert (kind in simulated.EFFECTS) != (kind in simulated.ONLY_REMEMBERED)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_kind_is_carried_out_or_only_remembered(kind: type[Base]) -> None:
    assert (kind in carry_out.HANDLERS) != (kind in carry_out.ONLY_REMEMBERED)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_modules_of_a_family_have_the_same_name(kind: type[Base]) -> None:
    family = kind.__module__.rsplit(".", 1)[1]
    if kind in simulated.EFFECTS:
        assert simulated.EFFECTS[kind].__module__.rsplit(".", 1)[1] == family
    if kind in carry_out.HANDLERS:
        assert carry_out.HANDLERS[kind].__module__.rsplit(".", 1)[1] in (family, "reloading")
