"""No kind of step is forgotten anywhere: each has words, leaves something in the memory or is known not to, has an
effect in the simulated world or is known to have none, is carried out or is a note, and claims what it changes or is
known to claim nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, get_args

import pytest

from quarterdeck.actions import carry_out
from quarterdeck.model.components import Component
from quarterdeck.model.steps import (
    NOTES,
    AddLearner,
    CordonMachine,
    PlaceReplica,
    Promote,
    ReaddressMember,
    RejectRevision,
    ReloadUnit,
    RemoveMember,
    SetRecord,
    StartUnit,
    Step,
    StopBalancer,
    StopUnit,
    Swap,
    TransferLeadership,
    WithdrawConsent,
)
from quarterdeck.model.steps.base import Base, OfCluster
from quarterdeck.planner.claims import claim
from quarterdeck.planner.simulated import EFFECTS, ONLY_REMEMBERED

KINDS: tuple[type[Base], ...] = get_args(Step)
#: What they change is seen in the next look, so that nothing is written down.
LEAVE_NOTHING = {
    StartUnit,
    StopUnit,
    ReloadUnit,
    Promote,
    ReaddressMember,
    RemoveMember,
    TransferLeadership,
    Swap,
    SetRecord,
    WithdrawConsent,
}
#: Nobody waits for what these change.
CLAIM_NOTHING = {RejectRevision, StopBalancer, CordonMachine, *NOTES}


def lacks(kind: type[Base]) -> list[str]:
    """What was forgotten of a kind."""
    return [
        what
        for what, there in (
            ("words", "words" in _own(kind) or ("told" in _own(kind) and issubclass(kind, OfCluster))),
            ("memory", bool({"remembered", "new_members"} & _own(kind)) is not (kind in LEAVE_NOTHING)),
            ("simulation", (kind in EFFECTS) is not (kind in ONLY_REMEMBERED)),
            ("handler", (kind in carry_out.HANDLERS) is not (kind in carry_out.ONLY_REMEMBERED)),
            ("claim", (claim(made(kind)) is None) is (kind in CLAIM_NOTHING)),
        )
        if not there
    ]


def _own(kind: type[Base]) -> set[str]:
    """What a kind says itself, or its family does."""
    return {name for each in kind.__mro__ if each not in (Base, OfCluster, object) for name in vars(each)}


def made(kind: type[Base]) -> Any:
    """A step of a kind; what is in it does not matter."""
    values: dict[str, object] = {each.name: "east-1" for each in fields(kind)}
    return kind(**{**values, **({"component": Component.ETCD} if "component" in values else {})})


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_nothing_of_a_kind_is_forgotten(kind: type[Base]) -> None:
    assert lacks(kind) == []


def test_every_kind_that_there_is_may_be_planned() -> None:
    def below(kind: type[Base]) -> Iterator[type[Base]]:
        for each in kind.__subclasses__():
            yield from below(each) if each.__subclasses__() else iter((each,))

    # Classes with slots are made twice, and the first one lives on for a while.
    found = {each.__name__ for each in below(Base) if each.__module__.startswith("quarterdeck.")}
    assert found - {OfCluster.__name__} == {each.__name__ for each in KINDS}


def test_a_kind_of_which_everything_is_forgotten_is_found() -> None:
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Forgotten(Base):
        pass

    assert lacks(Forgotten) == ["words", "memory", "simulation", "handler", "claim"]
    assert lacks(AddLearner) == lacks(PlaceReplica) == []


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_what_is_said_of_a_kind_stands_in_modules_of_one_name(kind: type[Base]) -> None:
    family = kind.__module__.rsplit(".", 1)[1]
    for table in (EFFECTS, carry_out.HANDLERS):
        if kind in table:
            assert table[kind].__module__.rsplit(".", 1)[1] in (family, "reloading")
