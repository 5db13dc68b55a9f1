"""What the user declares reaches the components."""

from __future__ import annotations

import json
from pathlib import Path

from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.revision import AuditTemplate, ReplicaTemplate
from quarterdeck.api.site import default_sites
from quarterdeck.engine.workspace.revisions import audit_wanted, template_of

POLICY = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]"


def plane(**spec: object) -> ControlPlane:
    document = {"metadata": {"name": "a"}, "spec": {"placement": {"site": "east"}, **spec}}
    return ControlPlane.model_validate_json(json.dumps(document))


def rendered(declared: ControlPlane) -> ReplicaTemplate:
    return template_of(declared, default_sites()[0], audit_wanted(declared))


def test_what_is_declared_is_what_the_components_get(tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY)
    settings = rendered(
        plane(
            kubernetesVersion="v1.35.7",
            serviceCidrs=["10.97.0.0/16", "fd00::/112"],
            etcd={
                "version": "3.6.15",
                "quotaBytes": "1Gi",
                "heartbeatMilliseconds": 200,
                "electionMilliseconds": 3000,
            },
            endpoint={"name": "a.example"},
            encryption={"secrets": False},
            audit={"policyFile": str(policy), "maxAgeDays": 1, "maxBackups": 2, "maxSizeMegabytes": 3},
            extraArgs={"etcd": {"v": 2}},
        )
    )
    assert (settings.kubernetes_version, settings.etcd.version) == ("v1.35.7", "3.6.15")
    assert (settings.service_cidr, settings.endpoint_name) == ("10.97.0.0/16", "a.example")
    assert (settings.etcd.heartbeat_milliseconds, settings.etcd.election_milliseconds) == (200, 3000)
    assert settings.secondary_service_cidr == "fd00::/112"
    assert settings.etcd.quota_bytes == 2**30
    assert settings.encryption.secrets is False
    assert settings.audit == AuditTemplate(policy=POLICY, max_age_days=1, max_backups=2, max_size_megabytes=3)
    assert settings.extra_args.etcd == {"v": "2"}


def test_a_fixed_address_is_no_name() -> None:
    assert rendered(plane(endpoint={"mode": "address", "address": "192.0.2.1"})).endpoint_name == ""
