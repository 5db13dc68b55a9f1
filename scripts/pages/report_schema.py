"""docs/report-schema.md, made from the schema of reports."""

from __future__ import annotations

import enum
import inspect
import re
from types import ModuleType

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from pages.declared import summary, table
from quarterdeck.probe import schema as probed
from quarterdeck.report import schema

_OPENING = f"""# The report's schema

`quarterdeck report NAME -o json` prints one JSON document of schema `{schema.SCHEMA_VERSION}`. Times are seconds
since the operation started (negative: before it), durations of requests are milliseconds. Within `v1` fields are
only ever added. This page is made from `schema.py` in `src/quarterdeck/report` and in `src/quarterdeck/probe`; a test
keeps them equal.
"""


def document() -> str:
    """The whole page."""
    classes = [each for module in (schema, probed) for each in _classes(module)]
    models = [each for each in classes if issubclass(each, BaseModel)]
    models.sort(key=lambda each: each is not schema.Report)  # the document itself first, then as they stand
    enums = [each for each in classes if issubclass(each, enum.Enum)]
    return "\n".join([_OPENING, *map(_model, models), *map(_enum, enums)])


def _classes(module: ModuleType) -> list[type]:
    return [each for each in vars(module).values() if inspect.isclass(each) and each.__module__ == module.__name__]


def _model(model: type[BaseModel]) -> str:
    rows = [_row(field) for field in model.model_fields.values()]
    return f"## {model.__name__}\n{summary(model)}\n\n{table(('field', 'type', 'meaning'), rows)}"


def _enum(values: type[enum.Enum]) -> str:
    listed = ", ".join(f"`{each.value}`" for each in values)
    return f"## {values.__name__}\n{summary(values)}\n\nOne of {listed}.\n"


def _row(field: FieldInfo) -> tuple[str, str, str]:
    meaning = " ".join((field.description or "").split())
    return f"`{field.serialization_alias}`", _type(field.annotation), meaning


def _type(annotation: object) -> str:
    plain = isinstance(annotation, type) and not hasattr(annotation, "__args__")
    text = getattr(annotation, "__name__", "") if plain else str(annotation)
    text = re.sub(r"typing\.|quarterdeck\.(report|probe)\.schema\.|<class '|'>", "", text)
    text = re.sub(r"tuple\[(\w+), \.\.\.\]", r"list of \1", text)
    text = re.sub(r"tuple\[(\w+), \1\]", r"two \1", text)
    text = re.sub(r"dict\[str, (\w+)\]", r"object of \1 by name", text)
    text = re.sub(r"Literal\['(.+)'\]", r'`"\1"`', text)
    words = {"str": "string", "float": "number", "int": "integer", "bool": "boolean", "None": "null"}
    words["AwareDatetime"] = "RFC 3339 time"
    return re.sub(r"\w+", lambda match: words.get(match[0], match[0]), text).replace(" | ", " or ")
