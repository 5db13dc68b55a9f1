"""No kind of step is forgotten anywhere: each has a name and words, leaves something in the memory or is known not to,
has an effect in the simulated world or is known to have none, is carried out or is a note, and claims what it changes
or is known to claim nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from typing import Any

import pytest

from quarterdeck.actions import carry_out
from quarterdeck.model.components import Component
from quarterdeck.model.steps import all_kinds
from quarterdeck.model.steps.base import Note, OfCluster, OfUnit, Step
from quarterdeck.model.steps.clusters import WithdrawConsent
from quarterdeck.model.steps.healing import CordonMachine
from quarterdeck.model.steps.members import (
    AddLearner,
    CancelDowngrade,
    EnableDowngrade,
    Promote,
    ReaddressMember,
    RemoveMember,
    Swap,
    TransferLeadership,
)
from quarterdeck.model.steps.placement import PlaceReplica
from quarterdeck.model.steps.traffic import SetRecord, StopBalancer
from quarterdeck.model.steps.units import RejectRevision, ReloadUnit, StartUnit, StopUnit
from quarterdeck.planner.simulated import EFFECTS

KINDS = all_kinds()
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
    EnableDowngrade,
    CancelDowngrade,
}
#: Nobody waits for what these change. Nor do notes claim anything.
CLAIM_NOTHING = {RejectRevision, StopBalancer, CordonMachine}


def lacks(kind: type[Step]) -> list[str]:
    """What was forgotten of a kind."""
    return [
        what
        for what, there in (
            ("kind", "kind" in vars(kind)),
            ("words", "words" in _own(kind) or ("description" in _own(kind) and issubclass(kind, OfCluster))),
            ("memory", bool({"remembered", "new_members"} & _own(kind)) is not (kind in LEAVE_NOTHING)),
            ("simulation", (kind in EFFECTS) is not kind.only_recorded or issubclass(kind, Note)),
            ("handler", (kind in carry_out.HANDLERS) is not kind.only_recorded),
            ("claim", (made(kind).claim is None) is (kind in CLAIM_NOTHING or issubclass(kind, Note))),
        )
        if not there
    ]


def _own(kind: type[Step]) -> set[str]:
    """What a kind says itself, or its family does."""
    return {name for each in kind.__mro__ if each not in (Step, Note, OfCluster, OfUnit, object) for name in vars(each)}


def made(kind: type[Step]) -> Any:
    """A step of a kind; what is in it does not matter."""
    values: dict[str, object] = {each.name: "east-1" for each in fields(kind)}
    return kind(**{**values, **({"component": Component.ETCD} if "component" in values else {})})


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_nothing_of_a_kind_is_forgotten(kind: type[Step]) -> None:
    assert lacks(kind) == []


def test_kinds_have_names_of_their_own_in_plain_words() -> None:
    names = [each.kind for each in KINDS]
    assert len(set(names)) == len(names) > 40
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)*", name) for name in names)


def test_no_table_has_what_is_no_kind_of_step() -> None:
    assert {*EFFECTS, *carry_out.HANDLERS} <= set(KINDS)


def test_what_is_only_recorded_is_not_recorded_first_as_well() -> None:
    assert not [each for each in KINDS if each.only_recorded and each.recorded_first]


def test_a_kind_of_which_everything_is_forgotten_is_found() -> None:
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Forgotten(Step):
        pass

    assert lacks(Forgotten) == ["kind", "words", "memory", "simulation", "handler", "claim"]
    assert lacks(AddLearner) == lacks(PlaceReplica) == []


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_what_is_said_of_a_kind_stands_in_modules_of_one_name(kind: type[Step]) -> None:
    family = kind.__module__.rsplit(".", 1)[1]
    for table in (EFFECTS, carry_out.HANDLERS):
        if kind in table:
            assert table[kind].__module__.rsplit(".", 1)[1] in (family, "reloading")
