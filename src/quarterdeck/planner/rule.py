"""What a rule is, and when it is evaluated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import TypeAlias

from quarterdeck.planner.outcome import RuleOutcome
from quarterdeck.planner.view import View

Ask: TypeAlias = Callable[[View], RuleOutcome]


class Members(Enum):
    """Whether the members of the main cluster must be known for a rule to be evaluated."""

    KNOWN = auto()
    UNKNOWN = auto()
    EITHER = auto()


class Despite(Enum):
    """The alarms of etcd under which a rule stays active."""

    NOTHING = auto()
    A_SMALL_QUOTA = auto()  # nothing but a larger quota makes room
    ALARMS = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One row of the table of rules: ``ask`` is the rule, the other fields say when it is evaluated."""

    ask: Ask
    members: Members = Members.KNOWN
    despite: Despite = Despite.NOTHING
    #: It only starts wanted programs, or stops unusable ones: later rules need not wait for the next observation.
    beside: bool = False
    #: It is about the members of one cluster, and is evaluated for the events' cluster as well: if that is wanted, and
    #: its membership is known.
    per_cluster: bool = False
    #: It is evaluated for the events' cluster also while that membership is unknown: it only starts members.
    unread: bool = False
    #: It is evaluated for the events' cluster also when that is no longer wanted: it keeps running, and needs room.
    unwanted: bool = False

    @property
    def name(self) -> str:
        """The rule's module and function, as in ``membership.swap``."""
        return f"{self.ask.__module__.rsplit('.', 1)[1]}.{self.ask.__name__}"
