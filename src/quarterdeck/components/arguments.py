"""The command line of a program: from typed settings to flags, with the user's extra arguments.

Also what flags name: the unit's files, and the cipher suites of servers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TypeAlias

from quarterdeck.errors import InvalidInput
from quarterdeck.model.components import Component
from quarterdeck.model.units import UnitFile

#: The value of a flag, or all values of one that is repeated.
Value: TypeAlias = str | tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Arguments:
    """A component's flags (without dashes) and their values.

    ``owned`` are quarterdeck's: the plane depends on them, and users cannot set them. ``defaults`` can be overridden.
    Dangerous flags are refused when a plane is created (``refusals``).
    """

    owned: Mapping[str, Value]
    defaults: Mapping[str, str] = field(default_factory=dict)

    def command_line(self, component: Component, extra: Mapping[str, str]) -> tuple[str, ...]:
        """``--flag=value`` for each value of each flag, sorted by flags. Raises InvalidInput for invalid extra
        arguments.
        """
        for flag, value in extra.items():
            _check(component, flag, value)
            if flag in self.owned:
                raise InvalidInput(
                    f"setting --{flag} of {component}",
                    "quarterdeck sets this flag itself",
                    "remove it from the extra arguments",
                )
        merged: dict[str, Value] = {**self.defaults, **extra, **self.owned}
        values = {flag: (value,) if isinstance(value, str) else value for flag, value in merged.items()}
        return tuple(f"--{flag}={value}" for flag in sorted(values) for value in values[flag])


def _check(component: Component, flag: str, value: str) -> None:
    if re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", flag) is None:
        raise InvalidInput(
            f"setting the extra argument {flag!r} of {component}",
            "it is not the name of a flag",
            "write it without dashes in front, in lower case, as event-ttl",
        )
    if re.search(r"[\x00-\x1f\x7f]", value):
        raise InvalidInput(
            f"setting --{flag} of {component}", "its value contains control characters", "write it on one line"
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


class Folder:
    """A unit's folder. Each file is added together with the flag that needs it."""

    def __init__(self, path: PurePosixPath) -> None:
        self.path = path
        self._contents: dict[PurePosixPath, bytes] = {}

    def file(self, name: str, content: bytes | str) -> str:
        """Add the file ``name`` with ``content``, 0600; returns the absolute path. Equal content may be added again."""
        path = self.path / name
        encoded = content.encode() if isinstance(content, str) else content
        if self._contents.setdefault(path, encoded) != encoded:
            raise ValueError(f"two contents for {path}")
        return str(path)

    @property
    def files(self) -> tuple[UnitFile, ...]:
        """All added files."""
        return tuple(UnitFile(path, self._contents[path]) for path in sorted(self._contents))


#: By Go's names, which etcd and Kubernetes share: forward secrecy and authenticated encryption (CIS 1.2.29). The first
#: two of each kind are also what HTTP/2 asks for (RFC 9113, 9.2.2).
SUITES = (
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
)

#: Suites that users may choose: the same, with all their names, and those of TLS 1.3.
STRONG = frozenset(
    {
        *SUITES,
        "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305",
        "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305",
        "TLS_AES_128_GCM_SHA256",
        "TLS_AES_256_GCM_SHA384",
        "TLS_CHACHA20_POLY1305_SHA256",
    }
)


def suites() -> str:
    """The value of the flag."""
    return ",".join(SUITES)
