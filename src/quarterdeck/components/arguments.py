"""From typed settings to a command line, with the user's extra arguments in their place."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from quarterdeck.errors import InvalidInput
from quarterdeck.model.components import Component


@dataclass(frozen=True, slots=True, kw_only=True)
class Arguments:
    """A component's flags (without dashes) and their values.

    ``owned`` are quarterdeck's: they hold the plane together, and nobody else may set them. ``defaults`` may be
    overridden. What would undo both is refused when a plane is made (``refusals``).
    """

    owned: Mapping[str, str]
    defaults: Mapping[str, str] = field(default_factory=dict)

    def command_line(self, component: Component, extra: Mapping[str, str]) -> tuple[str, ...]:
        """``--flag=value`` for each flag, sorted. Raises InvalidInput for extra arguments that cannot be."""
        for flag, value in extra.items():
            _check(component, flag, value)
            if flag in self.owned:
                raise InvalidInput(
                    f"setting --{flag} of {component}",
                    "quarterdeck sets this flag itself",
                    "remove it from the extra arguments",
                )
        merged = {**self.defaults, **extra, **self.owned}
        return tuple(f"--{flag}={merged[flag]}" for flag in sorted(merged))


def _check(component: Component, flag: str, value: str) -> None:
    if re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", flag) is None:
        raise InvalidInput(
            f"setting the extra argument {flag!r} of {component}",
            "it is not the name of a flag",
            "write it without dashes in front, in lower case, as event-ttl",
        )
    if re.search(r"[\x00-\x1f\x7f]", value):
        raise InvalidInput(
            f"setting --{flag} of {component}", "its value has control characters in it", "write it on one line"
        )


def boolean(value: bool) -> str:
    """``true`` or ``false``."""
    return "true" if value else "false"


def seconds(value: float) -> str:
    """A Go duration."""
    return f"{value:g}s"


def milliseconds(value: float) -> str:
    """A whole number of milliseconds, for etcd's flags."""
    return str(round(value * 1000))
