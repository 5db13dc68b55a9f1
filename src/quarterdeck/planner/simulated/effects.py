"""What a step does to the simulated world, or that it is refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from quarterdeck.planner.simulated.truth import Truth

#: By kind of step, the truth after such a step. Raises RefusedError.
Effects: TypeAlias = Mapping[type, Callable[[Truth, Any], Truth]]


class RefusedError(Exception):
    """The simulated world refused a step, as the real one would; nothing was changed."""


def must_answer(truth: Truth, name: str) -> None:
    """Raises RefusedError when the machine of a replica does not answer."""
    if not truth.answers(name):
        raise RefusedError(f"the machine of {name} does not answer")
