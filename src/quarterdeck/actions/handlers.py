"""The types of step handlers: each family has a table of its kinds."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

from pydantic import JsonValue

from quarterdeck.actions.plane import Plane
from quarterdeck.model.endpoints import Must
from quarterdeck.model.world import World

#: Further details of a step, for reports.
Detail: TypeAlias = Mapping[str, JsonValue]
#: Carries out a step that was planned on a world; idempotent. Returns details for reports, or what a person must do
#: first. Raises a QuarterdeckError.
Handler: TypeAlias = Callable[[Plane, Any, World], Awaitable[Detail | Must | None]]
Handlers: TypeAlias = Mapping[type, Handler]
#: Completes a step with what is known only when it is carried out.
Preparation: TypeAlias = Callable[[Plane, Any], Awaitable[Any]]
Preparations: TypeAlias = Mapping[type, Preparation]
