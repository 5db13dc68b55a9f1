"""Problems that a check finds at a field below the one that it looks at."""

from __future__ import annotations

from typing import NoReturn

from pydantic_core import PydanticCustomError

#: The type that pydantic reports these under.
PROBLEMS = "problems"


def refuse(*problems: tuple[str, str]) -> NoReturn:
    """Refuse a value from inside a validator: pairs of the field's path below it, and what is wrong there."""
    raise PydanticCustomError(
        PROBLEMS,
        "{summary}",
        {
            "summary": "; ".join(f"{path}: {text}" for path, text in problems),
            "problems": problems,
        },
    )


def refuse_if_any(problems: list[tuple[str, str]]) -> None:
    """``refuse`` them all together, or do nothing when there are none."""
    if problems:
        refuse(*problems)
