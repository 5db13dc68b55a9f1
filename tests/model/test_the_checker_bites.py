"""The checker bites: of every safety rule that is taken out of the planner, it says which invariant breaks.

Each mutation builds a planner with one rule or one predicate wrong. The planner as it is passes the same searches
(and is searched much wider in test_exhaustive.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import pytest
from model.explorer import Explorer
from model.invariants import Broken
from model.walk import Planner, State, Walker, Wish
from model.worlds import empty, moving, settled, wanted
from quarterdeck.model.memory import Replica
from quarterdeck.model.steps import AddLearner, Plan, Promote, RemoveMember, SetBackends, StartUnit, Step, StopUnit, Swap
from quarterdeck.model.units import UnitState
from quarterdeck.model.world import Component, Health, MemberFact, Membership, World
from quarterdeck.planner import founding, membership, notes, planner, release, serving, traffic, view
from quarterdeck.planner.outcome import Outcome
from quarterdeck.planner.quorum import Voter
from quarterdeck.planner.truth import Truth
from quarterdeck.planner.view import View
