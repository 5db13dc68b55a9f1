"""Options that take a time: ``30s``, ``5m``, ``2h``, ``7d``, or a bare number of seconds."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import typer

from quarterdeck.api.names import shortened
from quarterdeck.api.values import seconds_in
from quarterdeck.errors import InvalidInput

#: What help prints for the value of such an option.
METAVAR = "<duration>"

_BARE = re.compile(r"\d{1,9}(\.\d{1,6})?")
_FORMS = "give a time such as 30s, 5m, 2h or 7d; a bare number is seconds"


def duration_option(name: str, help_text: str) -> Any:
    """A typer option for a time; the command gets seconds as a float. Text that is no time raises InvalidInput."""

    def parsed(value: object) -> float:  # typer gives it the default too, which is a number
        return _seconds(name, str(value))

    return typer.Option(name, parser=parsed, metavar=METAVAR, help=help_text, show_default=False)


def _seconds(option: str, text: str) -> float:
    try:
        seconds = float(text) if _BARE.fullmatch(text) else seconds_in(text)
        _ = datetime.now(UTC) + timedelta(seconds=seconds)
    except ValueError as error:
        raise InvalidInput(f"reading {option}", f"{shortened(text)} is not a time", _FORMS) from error
    except OverflowError as error:
        raise InvalidInput(f"reading {option}", f"{shortened(text)} is too long", _FORMS) from error
    return seconds
