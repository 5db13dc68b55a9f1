"""Fewer dots with the same picture: failures and each kind's slowest are always kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from quarterdeck.probe.schema import Samples

_MOST_DOTS = 4_000


def downsampled(samples: Samples, most: int = _MOST_DOTS) -> tuple[int, ...]:
    """Row numbers by time: all if they are at most ``most``; else all failures, and of each kind in each time slice the
    slowest and the first (which stands for the usual).
    """
    rows = range(len(samples.at))
    if len(rows) <= most:
        return tuple(rows)
    kinds = max(len(set(samples.kind)), 1)
    stretches = max(most // (2 * kinds), 1)
    first, last = min(samples.at), max(samples.at)
    width = (last - first) / stretches or 1.0
    kept = {row for row in rows if not samples.ok[row]}
    groups: dict[tuple[int, int], list[int]] = {}
    for row in rows:
        groups.setdefault((samples.kind[row], int((samples.at[row] - first) / width)), []).append(row)
    for group in groups.values():
        kept |= {group[0], max(group, key=samples.ms.__getitem__)}
    return tuple(sorted(kept, key=samples.at.__getitem__))


def of_kind(samples: Samples, rows: Sequence[int], kind: str, *, ok: bool) -> Iterator[int]:
    """The rows of one kind and outcome."""
    return (row for row in rows if samples.kinds[samples.kind[row]] == kind and samples.ok[row] == ok)
