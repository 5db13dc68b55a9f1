"""The present and wanted revisions of a plane."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

from quarterdeck.api.revision import EventsTemplate, ReplicaTemplate
from quarterdeck.components.apiserver import authentication_hash, issuers
from quarterdeck.components.catalogue import CATALOGUE, programs_of
from quarterdeck.components.difference import change
from quarterdeck.components.transitions.ways import apart
from quarterdeck.components.upstream_versions import minor, tells_what_it_loaded
from quarterdeck.errors import Corrupt
from quarterdeck.model.components import ReplicaChange, ReplicaPrograms
from quarterdeck.model.membership import EtcdMinor


@dataclass(frozen=True, kw_only=True)
class Revisions:
    """The present and wanted revisions of a plane's replicas: their templates by name.

    ``goal`` names the wanted revision, ``via`` the intermediate ones, the nearest to it last: replicas get there by
    these where their present revision must not run at the same time as the goal. A new plane has the name "" until a
    driver gives its revision a name.
    """

    goal: str = ""
    via: tuple[str, ...] = ()
    templates: Mapping[str, ReplicaTemplate]

    def template(self, name: str) -> ReplicaTemplate:
        """The template of a revision. Raises Corrupt for a missing one: no unit may be rendered from a guess."""
        try:
            return self.templates[name]
        except KeyError:
            seen = f"revision {name!r} of a replica of the plane is not in the store"
            raise Corrupt("reading a replica's revision", seen, "restore a backup of the store that has it") from None

    def events(self, name: str) -> EventsTemplate | None:
        """The settings of a member of the events' etcd on a replica of that revision. For a revision without one they
        come from others: the member starts before its apiserver uses it, and stops after it. Raises Corrupt.
        """
        others = (self.goal, *sorted(self.templates))
        known = (self.template(name), *(self.templates[each] for each in others if each in self.templates))
        return next((each.etcd.events for each in known if each.etcd.events is not None), None)

    @cached_property
    def programs(self) -> ReplicaPrograms:
        """The programs of each revision."""
        by_revision = ((name, programs_of(each)) for name, each in sorted(self.templates.items()))
        return ReplicaPrograms(tuple(CATALOGUE), tuple(by_revision))

    @cached_property
    def apart(self) -> frozenset[frozenset[str]]:
        """The pairs of revisions that must not run at the same time."""
        pairs = combinations(sorted(self.templates), 2)
        return frozenset(frozenset(each) for each in pairs if apart(*(self.templates[name] for name in each)))

    @cached_property
    def etcd_minors(self) -> tuple[tuple[str, EtcdMinor], ...]:
        """The minor version of each revision's etcd."""
        return tuple((name, minor(each.etcd.version)) for name, each in sorted(self.templates.items()))

    @cached_property
    def changes(self) -> tuple[tuple[str, str, ReplicaChange], ...]:
        """The change between each two revisions."""
        pairs = ((before, after) for before in self.templates for after in self.templates if before != after)
        return tuple((before, after, change(self.templates[before], self.templates[after])) for before, after in pairs)


def loaded_hash(template: ReplicaTemplate) -> str | None:
    """The hash that an apiserver of that revision reports of its reloadable files; None if it reports none."""
    if not tells_what_it_loaded(template.kubernetes_version):
        return None
    return authentication_hash(
        template.kubernetes_version, issuers(template), nodes=template.node_bootstrap is not None
    )
