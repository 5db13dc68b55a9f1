"""The state of a plane, as text and as data: the formatting that every interface shares."""

from __future__ import annotations

from collections.abc import Sequence

from quarterdeck.api.output.status import FailureSurvival
from quarterdeck.components.difference import Difference, Need
from quarterdeck.engine.notices.events import warnings
from quarterdeck.model.world import World
from quarterdeck.planner.members import voters
from quarterdeck.planner.quorum import margin, quorum_site

__all__ = [
    "needs",
    "quorum",
    "quorum_of",
    "survival",
    "survived",
    "warnings",
]


def quorum(world: World) -> str:
    """The quorum of an observation as text; "" when it is not known."""
    if world.membership is None:
        return ""
    now = voters(world)
    return quorum_of(len(now), margin(now), quorum_site(now))


def quorum_of(voters: int, may_fail: int | None, site: str | None) -> str:
    """The same from the fields of a ``PlaneStatus``."""
    return f"{voters} voters, {may_fail} may fail, quorum at {site or 'no single site'}"


#: The name of each kind of failure, as one of several.
_FAILURES = {
    "machine": "one machine",
    "host": "one host",
    "zone": "one zone",
    "edge": "the edge",
    "dns": "the DNS server",
    "site": "the site",
}


def survival(found: Sequence[FailureSurvival]) -> tuple[str, ...]:
    """The failures that a plane survives: a line of those that it does, then one for each that it does not, or may not,
    with the reason.
    """
    if not found:
        return ()
    lines = [f"survives: {', '.join(survived(found)) or 'nothing'}"]
    for answer, word in (("no", "not"), ("unknown", "not known")):
        lines += [f"{word}: {names} ({why})" for why, names in _by_reason(found, answer)]
    return tuple(lines)


def survived(found: Sequence[FailureSurvival]) -> tuple[str, ...]:
    """The failures that it survives."""
    return tuple(_FAILURES[each.failure] for each in found if each.answer == "yes")


def _by_reason(found: Sequence[FailureSurvival], answer: str) -> list[tuple[str, str]]:
    """Group failures with the same reason."""
    names: dict[str, list[str]] = {}
    for each in found:
        if each.answer == answer:
            names.setdefault(_reason(each.reasons), []).append(_FAILURES[each.failure])
    return [(why, ", ".join(failures)) for why, failures in names.items()]


def _reason(reasons: Sequence[str]) -> str:
    return "; ".join(reasons[:1]) + (f", and {len(reasons) - 1} more" if len(reasons) > 1 else "")


def needs(difference: Difference) -> str:
    """The effect of a difference, such as ``restarts kube-apiserver, in one replica after the other``."""
    words = _needs(difference)
    return f"{words}; {difference.note}" if difference.note else words


def _needs(difference: Difference) -> str:
    match difference.needs:
        case Need.NOTHING:
            return "nothing is restarted"
        case Need.RELOAD:
            taken_up = ", ".join(map(str, difference.reload))
            return f"{taken_up} reloads it while running, in one replica after the other"
        case Need.RESTART:
            return f"restarts {', '.join(map(str, difference.restart))}, in one replica after the other"
        case Need.EXCHANGE:
            return "replicas are replaced, added or removed, one after the other"
