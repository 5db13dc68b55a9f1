"""Revisions of planes: made once from the spec when it is applied, then loaded from the store."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.plane.apiserver import Audit
from quarterdeck.api.plane.endpoint import EndpointMode
from quarterdeck.api.plane.etcd import ETCD_ELECTION, ETCD_HEARTBEAT
from quarterdeck.api.plane.keys import KeyPurpose
from quarterdeck.api.revision import (
    AuditTemplate,
    EtcdTemplate,
    EventsTemplate,
    ReplicaRevision,
    ReplicaTemplate,
    revision_of,
)
from quarterdeck.api.site import Site
from quarterdeck.components.audit_policy import default_audit_policy, policy_problems
from quarterdeck.components.controller.sets import at_rest
from quarterdeck.components.credentials import uses
from quarterdeck.components.etcd import CATCHUP_ENTRIES
from quarterdeck.components.template import Revisions
from quarterdeck.components.transitions.authorities import with_uses
from quarterdeck.components.transitions.issuers import written_issuers
from quarterdeck.components.transitions.keys import written
from quarterdeck.components.transitions.upgrade_windows import window_of, written_window
from quarterdeck.components.transitions.ways import apart, way
from quarterdeck.engine.workspace import belongings
from quarterdeck.engine.workspace.places import site_as_known
from quarterdeck.errors import Conflict, InvalidInput, NotFound
from quarterdeck.input_files import UnreadableFileError, read_text
from quarterdeck.stores.port import Lease, Store, amend


async def wanted(store: Store, plane: ControlPlane) -> ReplicaRevision:
    """The revision of a plane's present or changed spec; it is not stored. Raises InvalidInput as ``wanted_template``
    does.
    """
    return revision_of(plane, await wanted_template(store, plane))


async def wanted_template(store: Store, plane: ControlPlane) -> ReplicaTemplate:
    """The template of a plane's spec; the plane need not be stored.

    Files that the spec names count with the content of when the plane's revision was made, so that a move does not
    change anything else. For a plane without a revision they are read now. Raises InvalidInput for unreadable files.
    """
    before = await _stored(store, plane.status.revision)
    audit = audit_wanted(plane) if before is None else before.spec.audit
    return template_of(plane, await site_as_known(store, plane), audit)


async def between(store: Store, plane: ControlPlane, goal: ReplicaRevision) -> tuple[ReplicaRevision, ...]:
    """The intermediate revisions before a ``goal``, the nearest to it last: empty, where the goal may run at the same
    time as all present revisions. ``plane`` is as stored; the goal is not stored yet.

    A plane in such a rollout may have advanced since it was read: then it goes back the same way.
    """
    status = plane.status
    led = (*status.via, status.revision)
    used = {each.revision for each in status.memory.replicas}
    came = (*sorted(used.difference(led)), *led) if used - {status.revision} else (status.revision,)
    line = [found for each in reversed(came) if (found := await _stored(store, each)) is not None]
    if not any(apart(each.spec, goal.spec) for each in line):
        return ()
    further = [revision_of(plane, each) for each in way(line[-1].spec, goal.spec)]
    back: Sequence[ReplicaRevision] = line if len(line) > 1 else ()
    through = {each.name: each for each in (*back, *further) if each.name != goal.name}
    return tuple(through.values())


async def established(store: Store, plane: ControlPlane, *, lease: Lease | None = None) -> ControlPlane:
    """The plane, with its revision stored and named: the process that created the plane may have died before that.

    Raises InvalidInput for unreadable files, Conflict when the plane was changed concurrently.
    """
    if await _stored(store, plane.status.revision) is not None:
        return plane
    revision = await wanted(store, plane)
    await belongings.keep(store, revision, lease=lease)

    def named(seen: ControlPlane) -> ControlPlane:
        if seen.spec == plane.spec and seen.status.revision and not plane.status.revision:
            return seen  # another process has done the same meanwhile
        if (seen.spec, seen.status.revision) != (plane.spec, plane.status.revision):
            raise Conflict(f"making a revision of plane {plane.name}", "it was changed concurrently", "try again")
        return seen.with_status(revision=revision.name)

    return await amend(store, ControlPlane, plane.name, named, lease=lease)


async def known(store: Store, plane: ControlPlane, *, guess: bool) -> Revisions:
    """The wanted revision of a plane, and those of its replicas. ``guess``, for read-only callers: missing ones are
    made from the present spec.
    """
    names = {plane.status.revision, *plane.status.via, *(each.revision for each in plane.status.memory.replicas)}
    found = {name: await _stored(store, name) for name in names}
    templates = {name: each.spec for name, each in found.items() if each is not None}
    if guess:
        site = await site_as_known(store, plane)
        templates |= {name: declared(plane, site) for name in names - templates.keys()}
    via = tuple(each for each in plane.status.via if each in templates)
    return Revisions(goal=plane.status.revision, via=via, templates=templates)


async def forget_unused(store: Store, plane: ControlPlane, named: Iterable[str], *, lease: Lease | None = None) -> None:
    """Delete unused revisions of a plane, except the last few. ``named``: used by others than the plane and its
    replicas.
    """
    status = plane.status
    used = {status.revision, *status.via, *(each.revision for each in status.memory.replicas), *named}
    await belongings.forget_unused(store, ReplicaRevision, plane.name, used, lease=lease)


async def _stored(store: Store, name: str) -> ReplicaRevision | None:
    if not name:
        return None
    try:
        return await store.get(ReplicaRevision, name)
    except NotFound:
        return None


# From the spec to the template of replicas: the only place that reads files of a spec.

#: Bytes: the largest accepted policy.
_LARGEST = 2**20


def audit_wanted(plane: ControlPlane) -> AuditTemplate:
    """The audit log of the spec, with its policy file read now, or with the default policy. Raises InvalidInput for an
    unreadable file.
    """
    wanted = plane.spec.audit
    if wanted is None:
        return AuditTemplate(policy=default_audit_policy(), max_age_days=30, max_backups=10, max_size_megabytes=100)
    return AuditTemplate(
        policy=_policy(plane.name, wanted),
        max_age_days=wanted.max_age_days,
        max_backups=wanted.max_backups,
        max_size_megabytes=wanted.max_size_megabytes,
    )


def _policy(name: str, wanted: Audit) -> str:
    from quarterdeck.yaml_text.streams import first_document  # for planes with an audit policy of their own

    path = Path(wanted.policy_file)
    try:
        text = read_text(path, _LARGEST)
    except UnreadableFileError as error:
        raise _unusable(name, f"{path}: {error}") from error
    document = first_document(text, f"the audit policy of plane {name}: spec.audit.policyFile: {path}")
    if not isinstance(document, dict) or document.get("kind") != "Policy":
        raise _unusable(name, f"{path}: it is not a Policy of audit.k8s.io/v1")
    if problems := policy_problems(document):
        raise _unusable(name, f"{path}: {'; '.join(problems)}", "correct the policy")
    return text


def _unusable(name: str, seen: str, next_step: str = "name a file with the policy") -> InvalidInput:
    return InvalidInput(f"reading the audit policy of plane {name}", f"spec.audit.policyFile: {seen}", next_step)


def template_of(plane: ControlPlane, site: Site, audit: AuditTemplate) -> ReplicaTemplate:
    """The template of a plane's replicas at ``site``. All defaults of the spec are decided here, and never later."""
    spec = plane.spec
    etcd, default = spec.etcd, site.spec.storage_classes[0].name
    events = EventsTemplate(quota_bytes=etcd.events.quota_bytes, storage_class=spec.events_storage_class or default)
    return ReplicaTemplate(
        kubernetes_version=spec.kubernetes_version,
        etcd=EtcdTemplate(
            version=etcd.version,
            quota_bytes=etcd.quota_bytes,
            heartbeat_milliseconds=etcd.heartbeat_milliseconds or ETCD_HEARTBEAT,
            election_milliseconds=etcd.election_milliseconds or ETCD_ELECTION,
            storage_class=spec.etcd_storage_class or default,
            events=events if etcd.events.separate else None,
            snapshot_catchup_entries=CATCHUP_ENTRIES if spec.standby is not None else None,
        ),
        service_cidr=spec.service_cidrs[0],
        secondary_service_cidr=spec.service_cidrs[1] if len(spec.service_cidrs) > 1 else None,
        endpoint_name="" if spec.endpoint.mode is EndpointMode.ADDRESS else plane.host,
        encryption=spec.encryption,
        audit=audit,
        extra_args=spec.extra_args,
        authentication=spec.authentication if spec.authentication and spec.authentication.jwt else None,
        service_account_issuers=written_issuers(spec),
        authorization=spec.authorization if spec.authorization and spec.authorization.webhooks else None,
        admission=spec.admission if spec.admission and (spec.admission.plugins or spec.admission.manifests) else None,
        tracing=spec.tracing,
        scheduler=spec.scheduler,
        cloud_controller_manager=spec.cloud_controller_manager,
        upgrade_window=written_window(window_of(spec)),
        controller_sets=at_rest(spec.controller_sets, spec.kubernetes_version) or None,
        node_bootstrap=True if takes_nodes(plane) else None,
        encryption_key=written(spec.keys.use(KeyPurpose.ENCRYPTION)),
        service_account_key=written(spec.keys.use(KeyPurpose.SERVICE_ACCOUNT)),
        certificates=with_uses(spec.certificates, uses(spec.certificates)),
    )


def takes_nodes(plane: ControlPlane) -> bool:
    """Whether nodes can join a plane with tokens: the default."""
    return plane.spec.nodes.bootstrap is not False


def declared(plane: ControlPlane, site: Site) -> ReplicaTemplate:
    """The template of a plane's present spec. For read-only callers: an unreadable audit policy is empty."""
    try:
        audit = audit_wanted(plane)
    except InvalidInput:
        audit = audit_wanted(plane.with_spec(audit=None))
        audit = audit.model_copy(update={"policy": ""})
    return template_of(plane, site, audit)
