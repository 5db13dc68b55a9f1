"""What ``./test`` is asked for: its command line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from support.tiers import Tier

from runner.stages import STAGES, Stage

USAGE = """\
./test                                a smoke test: 12 minutes at most, no root
./test full                           all that must hold before a change lands; CI runs it
./test soak [-- --minutes M]          what takes too long for both
./test [TIER] STAGE ... [-- ARGS]     these stages only (full, unless a tier is named), with arguments for pytest
"""


class BadUsage(Exception):
    """What is asked for does not exist; the message says what does."""


@dataclass(frozen=True, slots=True)
class Asked:
    """These stages, in this tier, with these arguments for those that take some."""

    tier: Tier
    stages: tuple[Stage, ...]
    arguments: tuple[str, ...] = ()


def asked(argv: Sequence[str], stages: Sequence[Stage] = STAGES) -> Asked:
    """What a command line asks for. Raises BadUsage."""
    words, arguments = list(argv), ()
    if "--" in words:
        at = words.index("--")
        words, arguments = words[:at], tuple(words[at + 1 :])
    tier = Tier(words.pop(0)) if words and words[0] in set(Tier) else None
    if not words:
        tier = tier or Tier.SMOKE
        return Asked(tier, tuple(each for each in stages if tier in each.tiers), arguments)
    by_name = {each.name: each for each in stages}
    unknown = [each for each in words if each not in by_name]
    if unknown:
        raise BadUsage(f"test: there is no stage {unknown[0]}; stages: {' '.join(by_name)}\n{USAGE}")
    chosen = tuple(by_name[each] for each in words)
    return Asked(tier or _default(chosen), chosen, arguments)


def _default(chosen: Sequence[Stage]) -> Tier:
    """Full, but for stages that only a soak has."""
    return Tier.SOAK if all(each.tiers == {Tier.SOAK} for each in chosen) else Tier.FULL
