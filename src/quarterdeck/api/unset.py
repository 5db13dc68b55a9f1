"""Fields that a document names and leaves open: as for Kubernetes, they are not set.

A field of null is one that is not there (apiextensions prunes it before it sets defaults), and so is an optional text
that is empty (Go's ``omitempty``).
"""

from __future__ import annotations

import types
from collections.abc import Iterator
from datetime import datetime
from enum import Enum
from pathlib import PurePath
from typing import Any, Final, Literal, Union, get_args, get_origin

from pydantic import BaseModel, JsonValue
from pydantic.fields import FieldInfo

#: Says of an optional text that "" is a value of its own there.
EMPTY_MEANS_SOMETHING: Final = object()
#: What a document has as text.
_TEXTS = (str, Enum, PurePath, datetime)


def without_unset(document: JsonValue, *models: type[BaseModel]) -> JsonValue:
    """A document without the fields that are left open. ``models``: those that it may be of."""
    if isinstance(document, list):
        return [without_unset(each, *models) for each in document]
    if not isinstance(document, dict) or not models:
        return document
    fields = {info.alias or name: info for model in models for name, info in model.model_fields.items()}
    return {
        name: without_unset(value, *_models_in(fields[name].annotation)) if name in fields else value
        for name, value in document.items()
        if not (name in fields and _is_unset(value, fields[name]))
    }


def _is_unset(value: JsonValue, field: FieldInfo) -> bool:
    if field.is_required():
        return False
    if value == "":
        return field.default is None and EMPTY_MEANS_SOMETHING not in field.metadata and _is_text(field.annotation)
    return value is None


def _is_text(annotation: Any) -> bool:
    if get_origin(annotation) is Literal:
        return True
    if isinstance(annotation, type):
        return issubclass(annotation, _TEXTS)
    return any(map(_is_text, _parts(annotation)))


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for each in _parts(annotation):
        yield from _models_in(each)


def _parts(annotation: Any) -> tuple[Any, ...]:
    """What an optional, a list or an annotated type is made of; a mapping's keys are the user's own, not fields."""
    if hasattr(annotation, "__metadata__"):
        return (annotation.__origin__,)
    wanted = (Union, types.UnionType, tuple)
    return get_args(annotation) if get_origin(annotation) in wanted else ()
