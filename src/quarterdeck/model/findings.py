"""Results of checks before a change, and of promises that users' own programs must keep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from quarterdeck.errors import PreconditionFailed

#: The checks of hosts that code refers to: whether login works, and those of storage classes.
LOGIN = "login"
CLASS_CHECKS = ("disk", "fsync")


class Verdict(StrEnum):
    """The result of a check."""

    OK = "ok"
    WARN = "warn"
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check. ``seen`` and ``next_step`` are for people."""

    check: str
    verdict: Verdict
    seen: str
    next_step: str = ""


@dataclass(frozen=True, slots=True)
class HostFinding:
    """A finding about a host, or about the path between two: ``host`` is "one", or "one -> two"."""

    host: str
    finding: Finding

    @property
    def about(self) -> frozenset[str]:
        """The host, or both."""
        return frozenset(self.host.split(" -> "))


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """The problems of the hosts of a site, and a summary in one line."""

    findings: tuple[HostFinding, ...]
    summary: str

    @property
    def refused(self) -> bool:
        """Whether any check refuses."""
        return any(each.finding.verdict is Verdict.REFUSE for each in self.findings)


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """One promise, in ``words``, that was tried. ``seen``: what was observed instead; "" when it was kept."""

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
    """The check refuses."""
    return Finding(check, Verdict.REFUSE, seen, next_step)


def enforce(findings: Sequence[Finding], doing: str) -> None:
    """Raise PreconditionFailed that names every check that refuses."""
    bad = [each for each in findings if each.verdict is Verdict.REFUSE]
    if bad:
        raise PreconditionFailed(
            f"{doing} (nothing was changed)",
            "; ".join(f"{each.check}: {each.seen}" for each in bad),
            "; ".join(dict.fromkeys(each.next_step for each in bad if each.next_step)),
        )
