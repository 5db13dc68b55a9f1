"""Controllers, the sets that they run in, and what must be so of sets."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from quarterdeck.errors import InvalidInput
from quarterdeck.leases.held import Held

#: What runs while a lock is held, until it is cancelled. It calls ``Held.check`` before each thing that it does.
Controller = Callable[[Held], Awaitable[None]]

#: So many migration locks a manager is recommended to have at most (the source's proposal: "for performance reasons").
RECOMMENDED = 2


@dataclass(frozen=True, kw_only=True)
class ControllerSet:
    """The controllers that run under one lock, by name. Which they are is written down with the lock, for ever: whoever
    has others under that name never takes it.
    """

    lock: str
    controllers: Mapping[str, Controller]

    @property
    def names(self) -> tuple[str, ...]:
        """Their names, in order."""
        return tuple(sorted(self.controllers))


def check_sets(primary: ControllerSet, migration: Sequence[ControllerSet]) -> tuple[str, ...]:
    """What is unwise about the sets of a manager, in sentences. The primary one may have no controllers of its own.

    Raises InvalidInput for what the proposal rules out: two locks of one name, a controller in two sets; and for a
    migration lock under which nothing would run.
    """
    doing = "setting up the locks of a controller manager"
    locks: set[str] = set()
    owners: dict[str, str] = {}
    for each in (primary, *migration):
        if not each.lock or each.lock in locks:
            raise InvalidInput(doing, f"two locks are called {each.lock!r}" if each.lock else "a lock has no name")
        locks.add(each.lock)
        if each is not primary and not each.controllers:
            raise InvalidInput(doing, f"nothing runs under {each.lock!r}", "give it a controller, or leave it out")
        for name in each.names:
            if name in owners:
                seen = f"controller {name!r} is in the sets of {owners[name]!r} and of {each.lock!r}"
                raise InvalidInput(doing, seen, "a controller belongs to one set")
            owners[name] = each.lock
    if len(migration) > RECOMMENDED:
        return (f"{len(migration)} migration locks are held at once; no more than {RECOMMENDED} are recommended",)
    return ()


def check_unchanged(before: Sequence[ControllerSet], after: Sequence[ControllerSet]) -> None:
    """Raises InvalidInput if a set would have other controllers than it was used with."""
    known = {each.lock: each.names for each in before}
    for each in after:
        if known.get(each.lock, each.names) != each.names:
            seen = (
                f"{each.lock!r} was used with {', '.join(known[each.lock])}, and would be with {', '.join(each.names)}"
            )
            raise InvalidInput("changing the locks of a controller manager", seen, "use a lock of another name")
