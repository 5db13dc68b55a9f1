"""What a rule is, and when it is asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import TypeAlias

from quarterdeck.planner.outcome import RuleOutcome
from quarterdeck.planner.view import View

Ask: TypeAlias = Callable[[View], RuleOutcome]


class Members(Enum):
    """Whether the members of the main cluster must be known for a rule to be asked."""

    KNOWN = auto()
    UNKNOWN = auto()
    EITHER = auto()


class Despite(Enum):
    """While which alarms of etcd a rule goes on."""

    NOTHING = auto()
    A_SMALL_QUOTA = auto()  # nothing but a larger quota makes room
    ALARMS = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One row of the table of rules: ``ask`` says what is to be done, all else when it is asked."""

    ask: Ask
    members: Members = Members.KNOWN
    despite: Despite = Despite.NOTHING
    #: It only starts what is wanted, or stops what nobody may use: the rules after it need not wait for the next look.
    beside: bool = False
    #: It is about the members of one cluster, and is asked of the events' cluster as well: if that is wanted, and its
    #: membership is known.
    per_cluster: bool = False
    #: It is asked of the events' cluster also while the membership of that is not known: it only starts members.
    unread: bool = False
    #: It is asked of the events' cluster also when that is not wanted any more: what runs of it goes on, and has room.
    unwanted: bool = False

    @property
    def name(self) -> str:
        """The rule's module and function, as in ``membership.swap``."""
        return f"{self.ask.__module__.rsplit('.', 1)[1]}.{self.ask.__name__}"
