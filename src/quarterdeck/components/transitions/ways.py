"""The way from one revision to another one, where both must not run at the same time."""

from __future__ import annotations

from itertools import product

from quarterdeck.api.revision import ReplicaTemplate
from quarterdeck.components.controller import sets
from quarterdeck.components.transitions import authorities, issuers, keys, upgrade_windows
from quarterdeck.errors import PreconditionFailed


def apart(one: ReplicaTemplate, other: ReplicaTemplate) -> bool:
    """Whether replicas of these two revisions must not run at the same time."""
    return any(each.apart(one, other) for each in (authorities, keys, issuers, upgrade_windows, sets))


def way(start: ReplicaTemplate, goal: ReplicaTemplate) -> tuple[ReplicaTemplate, ...]:
    """The fewest intermediate revisions, so that each two neighbours may run at the same time: empty where ``start``
    and ``goal`` may themselves. First come other certificate authorities, keys and issuers of tokens, then other
    versions of Kubernetes, then controller sets that migrate.

    Raises PreconditionFailed if there is no such way: the versions are more than one minor version apart.
    """
    trusted = authorities.with_authorities_of(start, goal)
    keyed = keys.with_keys_of(trusted, goal)
    with_sets = sets.with_sets_of(start, goal)
    line = (
        start,
        *authorities.stops(start, goal),
        trusted,
        *keys.stops(trusted, goal),
        keyed,
        *issuers.stops(keyed, goal),
        *upgrade_windows.stops(keyed, with_sets),
        with_sets,
        *sets.stops(start, goal),
        goal,
    )
    reached: dict[int, tuple[int, ...]] = {0: ()}
    for here, there in product(range(len(line)), repeat=2):
        if here in reached and there > here and not apart(line[here], line[there]):
            found = (*reached[here], there)
            if there not in reached or len(found) < len(reached[there]):
                reached[there] = found
    if len(line) - 1 not in reached:
        seen = f"{goal.kubernetes_version} must not run beside {start.kubernetes_version}, which a replica has"
        next_step = "go one minor version at a time, and let each change end: see 'wait'"
        raise PreconditionFailed("planning the way to another version of Kubernetes", seen, next_step)
    return tuple(line[each] for each in reached[len(line) - 1][:-1])
