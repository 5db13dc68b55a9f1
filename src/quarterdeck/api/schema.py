"""Rules of validators, written into the JSON schema as well, as far as JSON schema can express them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NoReturn

from pydantic import GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError

_LABEL = "[a-z0-9]([a-z0-9-]*[a-z0-9])?"


@dataclass(frozen=True)
class InSchema:
    """Keywords for a field's schema: part of ``Annotated``, which checks nothing itself. ``instead_of_type``: the field
    accepts more than its type says.
    """

    keywords: Mapping[str, object] = field(hash=False)
    instead_of_type: bool = False

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        schema = handler(core)
        if self.instead_of_type:
            schema.pop("type", None)
        schema.update(self.keywords)
        return schema


def spell_out(schemas: Iterable[JsonSchemaValue]) -> None:
    """Write bounds as JSON schema keywords: pydantic leaves those of a field with a before-validator in its own
    notation.
    """
    for schema in schemas:
        for own, known in (("ge", "minimum"), ("le", "maximum")):
            if own in schema:
                schema[known] = schema.pop(own)
        spell_out(schema.get("anyOf", ()))


def label(longest: int) -> InSchema:
    """A DNS label of at most that many characters."""
    return InSchema({"pattern": f"^{_LABEL}$", "maxLength": longest})


def named(longest: int) -> InSchema:
    """Metadata with a name of at most that many characters."""
    return InSchema({"properties": {"name": {"maxLength": longest}}})


def number_or(pattern: str) -> InSchema:
    """A number, or text of that form."""
    return InSchema({"anyOf": [{"type": "number"}, {"type": "string", "pattern": pattern}]}, instead_of_type=True)


#: A DNS name, with or without the last dot; an IP address; either.
NAME = InSchema({"pattern": rf"^{_LABEL}(\.{_LABEL})*\.?$", "maxLength": 254})
ADDRESS = InSchema({"anyOf": [{"format": "ipv4"}, {"format": "ipv6"}]})
HOST = InSchema({"pattern": r"^[A-Za-z0-9.:-]+$", "maxLength": 254})
VERSION = InSchema({"pattern": r"^v?\d{1,4}\.\d{1,4}\.\d{1,4}$"})
ABSOLUTE = InSchema({"pattern": "^/"})
HTTPS = InSchema({"pattern": r"^https://[^?#@]+$"})
BYTES = number_or(r"^\d{1,18}(|[kMGT]|[KMGT]i)$")
SECONDS = number_or(r"^\d{1,9}(\.\d{1,6})?(ms|s|m|h|d)$")
NETWORK = InSchema({"pattern": r"^[0-9A-Fa-f.:]+/\d{1,3}$"})
FLAGS = InSchema(
    {
        "propertyNames": {"pattern": "^[a-z0-9][a-z0-9-]*$"},
        "additionalProperties": {"type": ["string", "number", "boolean"]},
    }
)
#: Lists: at least one, no item twice, both; one or two.
SOME = InSchema({"minItems": 1})
ONCE = InSchema({"uniqueItems": True})
ONE_OR_TWO = InSchema({"minItems": 1, "maxItems": 2})
SOME_ONCE = InSchema({"minItems": 1, "uniqueItems": True})


# Problems that a check finds at a field below the one that it checks.

#: The type that pydantic reports these under.
PROBLEMS = "problems"


def refuse(*problems: tuple[str, str]) -> NoReturn:
    """Refuse a value from inside a validator: pairs of the field's path below it, and the problem."""
    raise PydanticCustomError(
        PROBLEMS,
        "{summary}",
        {
            "summary": "; ".join(f"{path}: {text}" for path, text in problems),
            "problems": problems,
        },
    )


def refuse_if_any(problems: list[tuple[str, str]]) -> None:
    """``refuse`` all of them together, or do nothing when there are none."""
    if problems:
        refuse(*problems)
