"""The revisions of a plane that replicas run, or are to run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

from quarterdeck.api.revision import EventsTemplate, ReplicaTemplate
from quarterdeck.components.apiserver import authentication_hash, issuers
from quarterdeck.components.catalogue import CATALOGUE, programs_of
from quarterdeck.components.controller.sets import apart
from quarterdeck.components.difference import change
from quarterdeck.components.upstream_versions import tells_what_it_loaded
from quarterdeck.errors import Corrupt
from quarterdeck.model.components import ReplicaChange, ReplicaPrograms


@dataclass(frozen=True, kw_only=True)
class Revisions:
    """What the replicas of a plane run, and what all of them are to run: the content of each by its name.

    ``goal`` names what is wanted, ``via`` those that lie before it, the nearest to it last: replicas get there by these
    where what they run must not run beside the goal. A plane that has no revision yet names "", which has content only
    as long as nobody drives the plane: then it gets a name.
    """

    goal: str = ""
    via: tuple[str, ...] = ()
    templates: Mapping[str, ReplicaTemplate]

    def template(self, name: str) -> ReplicaTemplate:
        """What a revision holds. Raises Corrupt for one that is not there: nothing may be rendered from a guess."""
        try:
            return self.templates[name]
        except KeyError:
            seen = f"there is no revision {name!r}, and a replica of the plane runs it"
            raise Corrupt("reading a replica's revision", seen, "put back a copy of the store that has it") from None

    def events(self, name: str) -> EventsTemplate | None:
        """What a member of the events' etcd is on a replica of that revision. On one that has none yet, or none any
        more, it is what others say of it: it starts before its apiserver asks it, and stops after. Raises Corrupt.
        """
        others = (self.goal, *sorted(self.templates))
        known = (self.template(name), *(self.templates[each] for each in others if each in self.templates))
        return next((each.etcd.events for each in known if each.etcd.events is not None), None)

    @cached_property
    def programs(self) -> ReplicaPrograms:
        """Which programs replicas of each of them have."""
        by_revision = ((name, programs_of(each)) for name, each in sorted(self.templates.items()))
        return ReplicaPrograms(tuple(CATALOGUE), tuple(by_revision))

    @cached_property
    def apart(self) -> frozenset[frozenset[str]]:
        """The pairs of revisions of which no controllers may run at the same time."""
        pairs = combinations(sorted(self.templates), 2)
        return frozenset(frozenset(each) for each in pairs if apart(*(self.templates[name] for name in each)))

    @cached_property
    def changes(self) -> tuple[tuple[str, str, ReplicaChange], ...]:
        """What it takes to bring a replica from each of them to each other one."""
        pairs = ((before, after) for before in self.templates for after in self.templates if before != after)
        return tuple((before, after, change(self.templates[before], self.templates[after])) for before, after in pairs)


def loaded_hash(template: ReplicaTemplate) -> str | None:
    """What an apiserver of that revision says of the files that it takes up while it runs; None if it says nothing."""
    if not tells_what_it_loaded(template.kubernetes_version):
        return None
    return authentication_hash(
        template.kubernetes_version, issuers(template), nodes=template.node_bootstrap is not None
    )
