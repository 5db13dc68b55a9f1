"""What a check says before anything is changed, and what is promised by what people write for quarterdeck."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from quarterdeck.errors import PreconditionFailed

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """One promise, in ``words``, that was tried. ``seen``: what was seen instead; "" when it was kept."""

    words: str
    seen: str = ""

    @property
    def kept(self) -> bool:
        """Whether it was kept."""
        return not self.seen


def ok(check: str, seen: str) -> Finding:
    """The check found nothing wrong."""
    return Finding(check, Verdict.OK, seen)


def refuse(check: str, seen: str, next_step: str) -> Finding:
    """The check says no."""
    return Finding(check, Verdict.REFUSE, seen, next_step)


def enforce(findings: Sequence[Finding], doing: str) -> None:
    """Raise PreconditionFailed that names every check that says no."""
    bad = [each for each in findings if each.verdict is Verdict.REFUSE]
    if bad:
        raise PreconditionFailed(
            f"{doing} (nothing was changed)",
            "; ".join(f"{each.check}: {each.seen}" for each in bad),
            "; ".join(dict.fromkeys(each.next_step for each in bad if each.next_step)),
        )
