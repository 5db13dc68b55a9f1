"""What a check says before anything is changed."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

#: The checks of hosts that others tell apart: whether one can be logged in to, and those about storage classes.
LOGIN = "login"
CLASS_CHECKS = ("disk", "fsync")


class Verdict(StrEnum):
    """What a check says."""

    OK = "ok"
    WARN = "warn"
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True)
class Finding:
    """One check's answer. ``seen`` and ``next_step`` are for a person."""

    check: str
    verdict: Verdict
    seen: str
    next_step: str = ""


@dataclass(frozen=True, slots=True)
class HostFinding:
    """What is to be said of a host, or of the way between two: ``host`` is "one", or "one -> two"."""

    host: str
    finding: Finding

    @property
    def about(self) -> frozenset[str]:
        """The host, or both."""
        return frozenset(self.host.split(" -> "))


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What is not well at the hosts of a site, and all in one line."""

    findings: tuple[HostFinding, ...]
    summary: str

    @property
    def refused(self) -> bool:
        """Whether anything stands in the way."""
        return any(each.finding.verdict is Verdict.REFUSE for each in self.findings)
