"""Resources with some fields of their spec or status otherwise."""

from __future__ import annotations

from typing import Any, TypeVar

from quarterdeck.api.base import Resource

R = TypeVar("R", bound=Resource)


def with_spec(resource: R, **fields: Any) -> R:
    """The resource with these fields of its spec."""
    spec: Any = resource.spec  # type: ignore[attr-defined]
    return resource.model_copy(update={"spec": spec.model_copy(update=fields)})


def with_status(resource: R, **fields: Any) -> R:
    """The resource with these fields of its status."""
    status: Any = resource.status  # type: ignore[attr-defined]
    return resource.model_copy(update={"status": status.model_copy(update=fields)})
