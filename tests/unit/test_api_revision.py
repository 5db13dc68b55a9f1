"""Revisions: whole, named by their content, made once."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath

import pytest
from support.golden import Golden
from support.templates import template

from quarterdeck.api.controlplane import ControlPlane, Encryption, new_control_plane
from quarterdeck.api.plane.apiserver import Audit, Tracing
from quarterdeck.api.revision import ReplicaRevision, ReplicaTemplate, revision_of
from quarterdeck.api.site import default_sites
from quarterdeck.engine.workspace.revisions import audit_wanted, template_of
from quarterdeck.errors import InvalidInput


def plane(**spec: object) -> ControlPlane:
    made = new_control_plane("demo", site="east")
    metadata = made.metadata.model_copy(update={"uid": "uid-1"})
    return made.model_copy(update={"metadata": metadata, "spec": made.spec.model_copy(update=spec)})


def test_equal_content_has_one_name_and_other_content_another() -> None:
    there, back = template(), template()
    other = template(encryption=Encryption(secrets=False))
    assert revision_of(plane(), there).name == revision_of(plane(), back).name
    assert revision_of(plane(), there).name != revision_of(plane(), other).name
    # Names are stored: the same content must have the same one in every version.
    audit = there.audit.model_copy(update={"policy": "kind: Policy"})
    etcd = there.etcd.model_copy(update={"version": "3.6.16"})
    made = template(kubernetes_version="v1.36.3", etcd=etcd, audit=audit, node_bootstrap=None)
    assert made.digest.startswith("f22aaf7068")


def test_a_revision_is_read_as_it_was_written() -> None:
    made = revision_of(plane(), template(tracing=Tracing(endpoint="collector.example:4317")))
    assert ReplicaRevision.model_validate_json(made.model_dump_json(exclude_none=True)) == made


def test_a_template_is_whole() -> None:
    made = template()
    assert made.etcd.storage_class == "standard"
    assert (made.etcd.heartbeat_milliseconds, made.etcd.election_milliseconds) == (100, 1000)
    assert made.audit.policy.startswith("apiVersion: audit.k8s.io/v1")
    assert made.endpoint_name == "demo.quarterdeck.internal"


def test_the_policy_is_part_of_the_revision_and_its_file_is_not(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: None}]\n")
    declared = plane(audit=Audit(policy_file=PurePosixPath(file), max_age_days=3))
    made = template_of(declared, default_sites()[0], audit_wanted(declared))
    assert (made.audit.policy, made.audit.max_age_days) == (file.read_text(), 3)
    assert str(file) not in ReplicaTemplate.model_dump_json(made)


def test_a_policy_that_is_a_pipe_is_refused_and_not_waited_for(tmp_path: Path, golden: Golden) -> None:
    os.mkfifo(tmp_path / "policy.yaml")
    with golden.raises(InvalidInput):
        audit_wanted(plane(audit=Audit(policy_file=PurePosixPath(tmp_path / "policy.yaml"))))


@pytest.mark.parametrize(
    "text",
    [
        "---\napiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: None}]\n---\n",
        "apiVersion: audit.k8s.io/v1\t# tab\nkind: Policy\nrules: [{level: None}]\n---\nkind: Second\n---\n",
        "\ufeffapiVersion: audit.k8s.io/v1\nkind: Policy\nx: &x {level: None}\nrules: [{<<: *x, level: Metadata}]\n",
        '{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "None"}]}',
    ],
)
def test_a_policy_that_an_apiserver_reads_is_taken(tmp_path: Path, text: str) -> None:
    (tmp_path / "policy.yaml").write_text(text)
    made = audit_wanted(plane(audit=Audit(policy_file=PurePosixPath(tmp_path / "policy.yaml"))))
    assert made.policy == text.removeprefix("\ufeff")


@pytest.mark.parametrize(
    "content",
    [
        None,
        b"\xff",
        b"a: [",
        b"kind: ConfigMap",
        b"kind: Policy\n" + b"#" * 2**20,
    ],
)
def test_a_policy_that_is_none_is_refused_when_it_is_asked_for(
    tmp_path: Path, content: bytes | None, golden: Golden
) -> None:
    file = tmp_path / "policy.yaml"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(InvalidInput) as refused:
        audit_wanted(plane(audit=Audit(policy_file=PurePosixPath(file))))
    assert f"spec.audit.policyFile: {file}" in str(refused.value)
    golden(refused.value)
    assert len(str(refused.value).splitlines()) == 1
