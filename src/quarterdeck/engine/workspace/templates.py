"""From what the user declares to what replicas are rendered from: the files that a spec names are read here alone."""

from __future__ import annotations

from pathlib import Path

from quarterdeck.api.controlplane import ETCD_ELECTION, ETCD_HEARTBEAT, Audit, ControlPlane
from quarterdeck.api.plane.endpoint import EndpointMode
from quarterdeck.api.revision import AuditTemplate, EtcdTemplate, EventsTemplate, ReplicaTemplate
from quarterdeck.api.site import Site
from quarterdeck.components.audit_policy import default_audit_policy
from quarterdeck.components.audit_rules import policy_problems
from quarterdeck.components.controller.sets import at_rest
from quarterdeck.errors import InvalidInput
from quarterdeck.input_files import UnreadableFileError, read_text
from quarterdeck.yaml_text.streams import first_document

#: Larger policies are no policies.
_LARGEST = 2**20


def audit_wanted(plane: ControlPlane) -> AuditTemplate:
    """The audit log that the spec asks for, its policy read now; else by the default policy.
    Raises InvalidInput when the file is none.
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
    path = Path(wanted.policy_file)
    try:
        text = read_text(path, _LARGEST)
    except UnreadableFileError as error:
        raise _unusable(name, f"{path}: {error}") from error
    document = first_document(text, f"the audit policy of plane {name}: spec.audit.policyFile: {path}")
    if not isinstance(document, dict) or document.get("kind") != "Policy":
        raise _unusable(name, f"{path}: it is no Policy of audit.k8s.io/v1")
    if problems := policy_problems(document):
        raise _unusable(name, f"{path}: {'; '.join(problems)}", "correct the policy")
    return text


def _unusable(name: str, seen: str, next_step: str = "put one there") -> InvalidInput:
    return InvalidInput(f"reading the audit policy of plane {name}", f"spec.audit.policyFile: {seen}", next_step)


def template_of(plane: ControlPlane, site: Site, audit: AuditTemplate) -> ReplicaTemplate:
    """All that the replicas of a plane are to be at ``site``. What the spec leaves open is decided here, and nowhere
    later.
    """
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
        ),
        service_cidr=spec.service_cidr,
        endpoint_name="" if spec.endpoint.mode is EndpointMode.ADDRESS else plane.host,
        encryption=spec.encryption,
        audit=audit,
        extra_args=spec.extra_args,
        authentication=spec.authentication if spec.authentication and spec.authentication.jwt else None,
        admission=spec.admission if spec.admission and spec.admission.plugins else None,
        tracing=spec.tracing,
        cloud_controller_manager=spec.cloud_controller_manager,
        controller_sets=at_rest(spec.controller_sets, spec.kubernetes_version) or None,
        node_bootstrap=True if takes_nodes(plane) else None,
        certificates=spec.certificates,
    )


def takes_nodes(plane: ControlPlane) -> bool:
    """Whether nodes are to join a plane with tokens: they are unless its spec says otherwise."""
    return plane.spec.nodes.bootstrap is not False


def declared(plane: ControlPlane, site: Site) -> ReplicaTemplate:
    """What a plane's spec says of its replicas now. For looking only: an audit policy that cannot be read is empty."""
    try:
        audit = audit_wanted(plane)
    except InvalidInput:
        audit = audit_wanted(plane.with_spec(audit=None))
        audit = audit.model_copy(update={"policy": ""})
    return template_of(plane, site, audit)
