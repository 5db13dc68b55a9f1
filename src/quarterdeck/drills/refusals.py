"""When a drill must not be: reasons that are final, and dangers that a person may want to run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from quarterdeck.model.faults import Fail
from quarterdeck.planner.survival import Loss, Survivability, outlives
from quarterdeck.planner.view import View

#: What nobody but a manager mends, or what is about none else: it must be there.
NEEDS_A_MANAGER = frozenset({Fail.DATA_LOSS, Fail.CORRUPT, Fail.MANAGER})


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How a plane stands that a drill is to be on. In words, "" if not: ``paused`` since when, ``doing`` what operation
    is under way, ``manager`` who keeps it, ``unwell`` what is left to do; ``cannot``: why a fault cannot be made;
    ``made``: faults that are made already.
    """

    paused: str = ""
    doing: str = ""
    manager: str = ""
    unwell: str = ""
    deleting: bool = False
    cannot: tuple[str, ...] = ()
    made: tuple[str, ...] = ()


def reasons(fail: Fail, standing: Standing) -> tuple[str, ...]:
    """Why there can be no drill now, however much it is wanted."""
    said = [*standing.cannot]
    if standing.deleting:
        said.append("it is being deleted")
    if standing.paused:
        said.append(f"{standing.paused}: nobody would mend what breaks")
    if standing.doing:
        said.append(f"operation {standing.doing} is under way")
    elif standing.unwell:
        said.append(f"it is not as wanted now: {standing.unwell}")
    if fail in NEEDS_A_MANAGER and not standing.manager:
        said.append("no manager keeps it, and this is for one: start 'quarterdeck serve'")
    said += [f"another fault is made already: {each}" for each in standing.made]
    return tuple(dict.fromkeys(said))


def dangers(views: Mapping[str, tuple[View, Loss]], *, dns: bool = False, orphaned: bool = False) -> tuple[str, ...]:
    """Which planes would not survive it, or perhaps not, as they are now: of all that have anything where it strikes,
    with what they lose there. ``dns``: so does a DNS server go; ``orphaned``: their manager does, and nobody is known
    to come after it.
    """
    said = [each for name, (seen, loss) in sorted(views.items()) for each in _words(name, seen, loss, dns=dns)]
    if orphaned:
        said.append(
            "nobody is known to keep the plane then: no second 'quarterdeck serve' stands by, and this one was not"
            " started by what starts it again (see 'service install')"
        )
    return tuple(said)


def _words(name: str, seen: View, loss: Loss, *, dns: bool) -> Iterable[str]:
    answer, why = outlives(seen, loss, dns=dns)
    if answer is Survivability.NO:
        yield f"plane {name} would not survive it: {'; '.join(why)}"
    elif answer is Survivability.UNKNOWN:
        yield f"whether plane {name} would survive it is not known: {'; '.join(why)}"
