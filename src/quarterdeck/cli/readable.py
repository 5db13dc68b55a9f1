"""Sizes and times as people read them."""

from __future__ import annotations

from datetime import UTC, datetime

_STEP = 1024
_UNITS = ("B", "KiB", "MiB", "GiB")


def size(count: int) -> str:
    """Bytes in the largest fitting unit, such as ``12.3 MiB``."""
    value, unit = float(count), _UNITS[0]
    for unit in _UNITS:
        if value < _STEP or unit == _UNITS[-1]:
            break
        value /= _STEP
    return f"{value:.0f} {unit}" if unit == _UNITS[0] else f"{value:.1f} {unit}"


def when(at: datetime) -> str:
    """A time to the second, in UTC, such as ``2026-01-31 12:00:00Z``."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%SZ}"
