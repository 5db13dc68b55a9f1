"""From what a revision holds to what the components need."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

from quarterdeck.api.controlplane import ControlPlaneSpec
from quarterdeck.api.revision import EventsTemplate, ReplicaTemplate
from quarterdeck.components.apiserver_config import authentication_hash
from quarterdeck.components.controller.sets import apart
from quarterdeck.components.difference import change
from quarterdeck.components.settings import Audit, PlaneSettings
from quarterdeck.components.tuning import Tuning
from quarterdeck.components.upstream_versions import tells_what_it_loaded
from quarterdeck.errors import Corrupt
from quarterdeck.model.components import Component
from quarterdeck.model.revisions import Change


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

    @property
    def separate(self) -> frozenset[str]:
        """The revisions whose apiservers keep events in an etcd of their own."""
        return frozenset(name for name, each in self.templates.items() if each.etcd.events is not None)

    @property
    def cloud(self) -> frozenset[str]:
        """The revisions that have a cloud controller manager."""
        return frozenset(name for name, each in self.templates.items() if each.cloud_controller_manager is not None)

    @cached_property
    def apart(self) -> frozenset[frozenset[str]]:
        """The pairs of revisions of which no controllers may run at the same time."""
        pairs = combinations(sorted(self.templates), 2)
        return frozenset(frozenset(each) for each in pairs if apart(*(self.templates[name] for name in each)))

    @cached_property
    def changes(self) -> tuple[tuple[str, str, Change], ...]:
        """What it takes to bring a replica from each of them to each other one."""
        pairs = ((before, after) for before in self.templates for after in self.templates if before != after)
        return tuple((before, after, change(self.templates[before], self.templates[after])) for before, after in pairs)


def loaded_hash(template: ReplicaTemplate) -> str | None:
    """What an apiserver of that revision says of the files that it takes up while it runs; None if it says nothing."""
    if not tells_what_it_loaded(template.kubernetes_version):
        return None
    issuers = template.authentication.jwt if template.authentication is not None else ()
    kubernetes = template.kubernetes_version.removeprefix("v")
    return authentication_hash(kubernetes, issuers, nodes=template.node_bootstrap is not None)


def settings_of(plane: str, template: ReplicaTemplate, events: EventsTemplate | None = None) -> PlaneSettings:
    """What the units of a replica of that revision are rendered from, besides what is the replica's own. ``events``
    is for one that has a member of their etcd though its revision has none.
    """
    etcd, audit = template.etcd, template.audit
    events = etcd.events or events
    return PlaneSettings(
        name=plane,
        kubernetes=template.kubernetes_version.removeprefix("v"),
        etcd=etcd.version,
        service_cidr=template.service_cidr,
        endpoint_name=template.endpoint_name,
        tuning=Tuning(heartbeat=etcd.heartbeat_milliseconds / 1000, election=etcd.election_milliseconds / 1000),
        quota_bytes=etcd.quota_bytes,
        separate_events=etcd.events is not None,
        events_quota_bytes=events.quota_bytes if events is not None else etcd.quota_bytes,
        encrypt_secrets=template.encryption.secrets,
        audit=Audit(
            policy=audit.policy,
            max_age_days=audit.max_age_days,
            max_backups=audit.max_backups,
            max_size_megabytes=audit.max_size_megabytes,
        ),
        authenticators=template.authentication.jwt if template.authentication is not None else (),
        admission=template.admission.plugins if template.admission is not None else (),
        tracing=template.tracing,
        cloud=template.cloud_controller_manager,
        controller_sets=template.controller_sets or (),
        node_bootstrap=template.node_bootstrap is not None,
        extra_args=flags_of(template),
    )


def flags_of(declared: ReplicaTemplate | ControlPlaneSpec) -> dict[Component, dict[str, str]]:
    """The users' flags of each component."""
    cloud = declared.cloud_controller_manager
    given = {Component.CLOUD_CONTROLLER_MANAGER: cloud.flags} if cloud is not None else {}
    return {**declared.extra_args.by_component(), **given}
