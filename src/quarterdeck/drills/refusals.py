"""Reasons against a drill: final ones, and dangers that a person may accept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from quarterdeck.model.faults import Fail
from quarterdeck.planner.survival import Loss, Survivability, outlives
from quarterdeck.planner.view import View

#: Failures that only a manager heals, or that concern the manager: it must be running.
NEEDS_A_MANAGER = frozenset({Fail.DATA_LOSS, Fail.CORRUPT, Fail.MANAGER})


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """The state of a plane before a drill."""

    #: Since when it is paused, as text; "" if it is not.
    paused: str = ""
    #: The operation in progress; "" for none.
    doing: str = ""
    #: Its manager; "" for none.
    manager: str = ""
    #: What is left to do; "" for nothing.
    unwell: str = ""
    deleting: bool = False
    #: Why a fault cannot be made.
    cannot: tuple[str, ...] = ()
    #: Faults that are made already.
    made: tuple[str, ...] = ()


def reasons(fail: Fail, standing: Standing) -> tuple[str, ...]:
    """Why a drill is impossible now, even on request."""
    found = [*standing.cannot]
    if standing.deleting:
        found.append("it is being deleted")
    if standing.paused:
        found.append(f"{standing.paused}: what breaks would not be healed")
    if standing.doing:
        found.append(f"operation {standing.doing} is in progress")
    elif standing.unwell:
        found.append(f"it is not up to date now: {standing.unwell}")
    if fail in NEEDS_A_MANAGER and not standing.manager:
        found.append("it has no manager, which this drill needs: start 'quarterdeck serve'")
    found += [f"another fault is made already: {each}" for each in standing.made]
    return tuple(dict.fromkeys(found))


def dangers(views: Mapping[str, tuple[View, Loss]], *, dns: bool = False, orphaned: bool = False) -> tuple[str, ...]:
    """The planes that would not, or may not, survive it as they are now: of all that have anything where it strikes,
    with what they lose there. ``dns``: a DNS server fails too; ``orphaned``: their manager fails, and it has no known
    successor.
    """
    found = [each for name, (seen, loss) in sorted(views.items()) for each in _words(name, seen, loss, dns=dns)]
    if orphaned:
        found.append(
            "no process is known to manage the plane then: there is no standby 'quarterdeck serve', and nothing "
            "restarts this one (see 'service install')"
        )
    return tuple(found)


def _words(name: str, seen: View, loss: Loss, *, dns: bool) -> Iterable[str]:
    answer, why = outlives(seen, loss, dns=dns)
    if answer is Survivability.NO:
        yield f"plane {name} would not survive it: {'; '.join(why)}"
    elif answer is Survivability.UNKNOWN:
        yield f"whether plane {name} would survive it is not known: {'; '.join(why)}"
