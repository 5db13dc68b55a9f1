"""What is so of a plane, in words and for programs: what every face shows alike."""

from __future__ import annotations

from quarterdeck.components.difference import Difference, Need
from quarterdeck.engine.events import warnings
from quarterdeck.engine.facts import Status, summary
from quarterdeck.engine.leaders import leading
from quarterdeck.model.world import World
from quarterdeck.planner.members import voters
from quarterdeck.planner.quorum import home, margin

__all__ = ["Status", "leading", "needs", "quorum", "quorum_of", "summary", "warnings"]


def quorum(world: World) -> str:
    """The quorum of an observation in words; "" when nobody knows."""
    if world.membership is None:
        return ""
    now = voters(world)
    return quorum_of(len(now), margin(now), home(now))


def quorum_of(voters: object, may_fail: object, site: object) -> str:
    """The same from the facts of a ``summary``: two numbers, and a site's name or None."""
    return f"{voters} voters, {may_fail} may fail, quorum at {site or 'no single site'}"


def needs(difference: Difference) -> str:
    """What a difference needs, such as ``restarts kube-apiserver, in one replica after the other``."""
    words = _needs(difference)
    return f"{words}; {difference.note}" if difference.note else words


def _needs(difference: Difference) -> str:
    match difference.needs:
        case Need.NOTHING:
            return "nothing is restarted"
        case Need.RELOAD:
            taken_up = ", ".join(map(str, difference.reload))
            return f"{taken_up} takes it up while it runs, in one replica after the other"
        case Need.RESTART:
            return f"restarts {', '.join(map(str, difference.restart))}, in one replica after the other"
        case Need.EXCHANGE:
            return "replicas are exchanged, added or removed, one after the other"
