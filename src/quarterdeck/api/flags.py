"""Flags of programs, as users write them."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import BeforeValidator

from quarterdeck.api.problems import refuse
from quarterdeck.api.schema import FLAGS
from quarterdeck.api.unsupported import LISTED_FLAGS


def _flags(value: object) -> object:
    """YAML reads ``v: 2`` and ``profiling: false`` as other things than text; a flag's value is text."""
    if isinstance(value, list):
        raise ValueError(LISTED_FLAGS)
    if not isinstance(value, dict):
        return value
    for name in value:
        if not re.fullmatch(r"[a-z0-9][a-z0-9-]*", str(name)):
            refuse((str(name), "is not the name of a flag (it is given without dashes in front)"))
    texts = {True: "true", False: "false"}
    return {
        name: texts[item] if isinstance(item, bool) else str(item) if isinstance(item, int | float) else item
        for name, item in value.items()
    }


Flags = Annotated[dict[str, str], BeforeValidator(_flags), FLAGS]
