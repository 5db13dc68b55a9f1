"""From what a revision holds to what the components need."""

from __future__ import annotations

from quarterdeck.api.revision import ReplicaTemplate
from quarterdeck.components.settings import Audit, Baseline, PlaneSettings
from quarterdeck.components.tuning import Tuning


def settings_of(plane: str, template: ReplicaTemplate) -> PlaneSettings:
    """What the units of a replica of that revision are rendered from, besides what is the replica's own."""
    etcd, audit = template.etcd, template.audit
    return PlaneSettings(
        name=plane,
        kubernetes=template.kubernetes_version.removeprefix("v"),
        etcd=etcd.version,
        service_cidr=template.service_cidr,
        endpoint_name=template.endpoint_name,
        tuning=Tuning(heartbeat=etcd.heartbeat_milliseconds / 1000, election=etcd.election_milliseconds / 1000),
        quota_bytes=etcd.quota_bytes,
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
        baseline=Baseline(min(template.baseline, max(Baseline))),
        extra_args=template.extra_args.by_component(),
    )
