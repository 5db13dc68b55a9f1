"""How steps are carried out: each family has a table of its kinds."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

from pydantic import JsonValue

from quarterdeck.actions.plane import Plane
from quarterdeck.model.endpoints import Must
from quarterdeck.model.world import World

#: What reports tell of a step besides.
Detail: TypeAlias = Mapping[str, JsonValue]
#: Carries out a step that was planned on a world, however often it is asked to. Returns what reports tell besides, or
#: what a person must do first. Raises a QuarterdeckError.
Handler: TypeAlias = Callable[[Plane, Any, World], Awaitable[Detail | Must | None]]
Handlers: TypeAlias = Mapping[type, Handler]
#: Gives a step what is only known once it is carried out.
Preparation: TypeAlias = Callable[[Plane, Any], Awaitable[Any]]
Preparations: TypeAlias = Mapping[type, Preparation]
