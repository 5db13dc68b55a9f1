"""The effects of steps on the simulated world, and its refusals."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from quarterdeck.planner.simulated.parts import Power
from quarterdeck.planner.simulated.truth import Truth

#: By kind of step, the truth after such a step, of the same class. Raises RefusedError.
Effects: TypeAlias = Mapping[type, Callable[[Truth, Any], Truth]]


class RefusedError(Exception):
    """The simulated world refused a step, as the real one would; nothing was changed."""


def machine_must_answer(truth: Truth, name: str) -> None:
    """Raises RefusedError when a machine does not answer."""
    where = next(each for each in truth.machines if each.name == name)
    if where.power is not Power.ON or name in truth.unreachable:
        raise RefusedError(f"machine {name} does not answer")


def must_answer(truth: Truth, name: str) -> None:
    """Raises RefusedError when the machine of a replica does not answer."""
    if not truth.answers(name):
        raise RefusedError(f"the machine of {name} does not answer")
