"""What checks say before anything is changed."""

from __future__ import annotations

from collections.abc import Sequence

from quarterdeck.errors import PreconditionFailed
from quarterdeck.model.findings import Finding, Verdict

__all__ = ["Finding", "Verdict", "enforce", "ok", "refuse"]


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
