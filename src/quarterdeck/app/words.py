"""The state of a plane, as text and as data: the formatting that every interface shares."""

from __future__ import annotations

from pydantic import JsonValue

from quarterdeck.components.catalogue import CATALOGUE, named
from quarterdeck.components.difference import Difference, Need
from quarterdeck.engine.notices.events import warnings
from quarterdeck.engine.status import Status, leading, summary
from quarterdeck.model.components import Component
from quarterdeck.model.world import World
from quarterdeck.planner.members import voters
from quarterdeck.planner.quorum import margin, quorum_site

__all__ = [
    "Status",
    "components",
    "leading",
    "list_of",
    "named",
    "needs",
    "quorum",
    "quorum_of",
    "rows_of",
    "summary",
    "survival",
    "survived",
    "warnings",
]


def components() -> tuple[Component, ...]:
    """All programs that replicas may have, in start order; ``named`` parses a component's name."""
    return tuple(CATALOGUE)


def quorum(world: World) -> str:
    """The quorum of an observation as text; "" when it is not known."""
    if world.membership is None:
        return ""
    now = voters(world)
    return quorum_of(len(now), margin(now), quorum_site(now))


def quorum_of(voters: object, may_fail: object, site: object) -> str:
    """The same from the facts of a ``summary``: two numbers, and a site's name or None."""
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


def survival(found: JsonValue) -> tuple[str, ...]:
    """The failures that a plane survives, from the facts of a ``summary``: a line of those that it does, then one for
    each that it does not, or may not, with the reason.
    """
    facts = rows_of(found)
    if not facts:
        return ()
    lines = [f"survives: {', '.join(survived(found)) or 'nothing'}"]
    for answer, word in (("no", "not"), ("unknown", "not known")):
        lines += [f"{word}: {names} ({why})" for why, names in _by_reason(facts, answer)]
    return tuple(lines)


def survived(found: JsonValue) -> tuple[str, ...]:
    """The failures that it survives."""
    return tuple(_FAILURES[str(each["failure"])] for each in rows_of(found) if each["answer"] == "yes")


def list_of(value: JsonValue) -> list[JsonValue]:
    """A fact that is a list; empty if it is not one."""
    return value if isinstance(value, list) else []


def rows_of(value: JsonValue) -> list[dict[str, JsonValue]]:
    """A fact that is a list of mappings."""
    return [each for each in list_of(value) if isinstance(each, dict)]


def _by_reason(facts: list[dict[str, JsonValue]], answer: str) -> list[tuple[str, str]]:
    """Group entries with the same reason."""
    found: dict[str, list[str]] = {}
    for each in facts:
        if each["answer"] == answer:
            found.setdefault(_reason(each["why"]), []).append(_FAILURES[str(each["failure"])])
    return [(why, ", ".join(names)) for why, names in found.items()]


def _reason(why: JsonValue) -> str:
    reasons = [str(each) for each in list_of(why)]
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
