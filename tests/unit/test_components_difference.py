"""What a change of a revision needs is what its units show."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

import pytest
import yaml
from pydantic import BaseModel, JsonValue
from support.components import ALWAYS
from support.golden import Golden
from support.templates import template, units_of

from quarterdeck.api.controlplane import ControlPlaneSpec, Encryption, ExtraArgs, new_control_plane
from quarterdeck.api.plane.apiserver import Admission, AdmissionPlugin, Tracing
from quarterdeck.api.plane.authentication import Authentication
from quarterdeck.api.plane.authorization import Authorization
from quarterdeck.api.plane.certificates import AuthorityUse, Certificates
from quarterdeck.api.plane.controllers import CloudControllerManager, ControllerProgram, ControllerSetSpec
from quarterdeck.api.plane.keys import KeyUse
from quarterdeck.api.plane.scheduler import Scheduler
from quarterdeck.api.plane.service_accounts import OWN_ISSUER
from quarterdeck.api.plane.upgrade import UpgradeWindow
from quarterdeck.api.revision import EventsTemplate, ReplicaTemplate
from quarterdeck.app.words import needs
from quarterdeck.components.controller.sets import at_rest
from quarterdeck.components.difference import Need, change, differences, spec_differences
from quarterdeck.components.template import Revisions
from quarterdeck.model.components import Component, ReplicaChange

BEFORE = template()
ISSUER = {
    "issuer": {"url": "https://login.example", "audiences": ["quarterdeck"]},
    "claimMappings": {"username": {"claim": "sub", "prefix": "login:"}},
}
WEBHOOK = {"name": "guard", "server": {"url": "https://guard.example"}, "failurePolicy": "Deny"}
CONFIGURATION: dict[str, JsonValue] = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
}
EVERYTHING = frozenset(ALWAYS)
APISERVER = frozenset({Component.APISERVER})
MEMBERS = {Component.ETCD, Component.EVENTS_ETCD}
MEMBER = frozenset({Component.ETCD, Component.APISERVER})


def etcd(**changes: object) -> ReplicaTemplate:
    return template(etcd=BEFORE.etcd.model_copy(update=changes))


def audit(**changes: object) -> ReplicaTemplate:
    return template(audit=BEFORE.audit.model_copy(update=changes))


def extra(component: str, **flags: str) -> ReplicaTemplate:
    return template(extra_args=ExtraArgs.model_validate({component: flags}))


CLOUD = CloudControllerManager(program=PurePosixPath("/opt/ccm"), config="password=secret")
CLOUDS, MANAGER = Component.CLOUD_CONTROLLER_MANAGER, Component.CONTROLLER_MANAGER
SET = ControllerSetSpec(
    name="ipam", lock="ipam-migration", controllers=("node-ipam-controller",), owner=ControllerProgram.KUBE
)
EVENTS = EventsTemplate(quota_bytes=2**30, storage_class="fast")

#: Each field of a template by its name, changed.
CHANGED: Mapping[str, ReplicaTemplate] = {
    "kubernetes_version": template(kubernetes_version="v1.35.1"),
    "etcd.version": etcd(version="3.5.31"),
    "etcd.quota_bytes": etcd(quota_bytes=2**30),
    "etcd.snapshot_catchup_entries": etcd(snapshot_catchup_entries=50_000),
    "etcd.heartbeat_milliseconds": etcd(heartbeat_milliseconds=150),
    "etcd.election_milliseconds": etcd(election_milliseconds=2_000),
    "etcd.storage_class": etcd(storage_class="fast"),
    "etcd.events": etcd(events=EVENTS),
    "service_cidr": template(service_cidr="10.97.0.0/16"),
    "secondary_service_cidr": template(secondary_service_cidr="fd00:10:96::/112"),
    "endpoint_name": template(endpoint_name="other.example"),
    "encryption.secrets": template(encryption=Encryption(secrets=False)),
    "audit.policy": audit(policy="kind: Policy\nrules: []"),
    "audit.max_age_days": audit(max_age_days=3),
    "audit.max_backups": audit(max_backups=3),
    "audit.max_size_megabytes": audit(max_size_megabytes=3),
    "extra_args.etcd": extra("etcd", **{"snapshot-count": "5000"}),
    "extra_args.kube_apiserver": extra("kubeApiserver", **{"event-ttl": "2h"}),
    "extra_args.kube_controller_manager": extra("kubeControllerManager", v="2"),
    "extra_args.kube_scheduler": extra("kubeScheduler", v="2"),
    "authentication": template(authentication=Authentication.model_validate({"jwt": [ISSUER]}, strict=False)),
    "service_account_issuers": template(service_account_issuers=("https://tokens.example", OWN_ISSUER)),
    "authorization": template(authorization=Authorization.model_validate({"webhooks": [WEBHOOK]}, strict=False)),
    "admission": template(
        admission=Admission(
            plugins=(AdmissionPlugin(name="PodNodeSelector", configuration={"podNodeSelectorPluginConfig": {}}),)
        )
    ),
    "tracing": template(tracing=Tracing(endpoint="collector.example:4317")),
    "scheduler": template(scheduler=Scheduler(configuration={**CONFIGURATION, "parallelism": 8})),
    "upgrade_window": template(upgrade_window=UpgradeWindow.EMULATING),
    "cloud_controller_manager": template(cloud_controller_manager=CLOUD),
    "controller_sets": template(controller_sets=at_rest([SET], "v1.36.3")),
    "certificates.generation": template(certificates=Certificates(generation=1)),
    "certificates.kubernetes": template(certificates=Certificates(kubernetes=AuthorityUse(issuer=1))),
    "certificates.etcd": template(certificates=Certificates(etcd=AuthorityUse(issuer=1))),
    "certificates.front_proxy": template(certificates=Certificates(front_proxy=AuthorityUse(issuer=1))),
    "encryption_key": template(encryption_key=KeyUse(current=1)),
    "service_account_key": template(service_account_key=KeyUse(current=1)),
    "node_bootstrap": template(node_bootstrap=None),
}
#: What is in a unit's files and not in its template's other fields: certificates and keys are those of the plane.
BEYOND_RENDERING = {
    *(each for each in CHANGED if each.startswith("certificates.") or each.endswith("_key")),
    "kubernetes_version",
    "etcd.version",
}


def leaves(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    for name, field in model.model_fields.items():
        inner = field.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            yield from leaves(inner, f"{prefix}{name}.")
        else:
            yield prefix + name


def test_no_field_of_a_template_is_without_an_answer_to_what_its_change_needs() -> None:
    assert set(CHANGED) == set(leaves(ReplicaTemplate))
    for path, after in CHANGED.items():
        assert differences(BEFORE, after), path


@pytest.mark.parametrize("path", [each for each in CHANGED if each not in BEYOND_RENDERING])
def test_what_is_restarted_is_what_is_rendered_again_and_the_apiserver_of_a_restarted_member(path: str) -> None:
    needed = change(BEFORE, CHANGED[path])
    old, new = units_of(BEFORE), units_of(CHANGED[path])
    both = old.keys() & new.keys()
    rendered = {
        each for each in both if (old[each].digest, old[each].boot_argv) != (new[each].digest, new[each].boot_argv)
    }
    rendered |= {CLOUDS} & (old.keys() ^ new.keys())
    if MEMBERS & rendered:
        rendered.add(Component.APISERVER)
    if needed.exchange:
        assert path in {"etcd.storage_class", "service_cidr", "endpoint_name"}
    else:
        assert needed.restart | needed.reload == rendered != set()
        assert needed.reload == ({Component.APISERVER} if path == "authentication" else set())


def test_feature_gates_of_etcd_restart_it_although_they_are_no_part_of_what_tells_units_apart() -> None:
    after = extra("etcd", **{"feature-gates": "TxnModeWriteWithSharedBuffer=true"})
    assert units_of(BEFORE)[Component.ETCD].digest == units_of(after)[Component.ETCD].digest
    assert change(BEFORE, after).restart == MEMBER


@pytest.mark.parametrize(
    ("path", "where", "before", "after", "needed"),
    [
        ("etcd.quota_bytes", "spec.etcd.quotaBytes", str(8 * 2**30), str(2**30), ReplicaChange(restart=MEMBER)),
        ("etcd.storage_class", "spec.etcd.storageClass", "standard", "fast", ReplicaChange(exchange=True)),
        ("etcd.events", "spec.etcd.events.separate", "false", "true", ReplicaChange(restart=APISERVER)),
        ("encryption.secrets", "spec.encryption.secrets", "true", "false", ReplicaChange(restart=APISERVER)),
        (
            "extra_args.kube_apiserver",
            "spec.extraArgs.kubeApiserver.event-ttl",
            "unset",
            "2h",
            ReplicaChange(restart=APISERVER),
        ),
        (
            "tracing",
            "spec.tracing",
            "unset",
            '{"endpoint": "collector.example:4317"}',
            ReplicaChange(restart=APISERVER),
        ),
        (
            "cloud_controller_manager",
            "spec.cloudControllerManager",
            "unset",
            "/opt/ccm",
            ReplicaChange(restart=frozenset({CLOUDS, MANAGER})),
        ),
        ("certificates.generation", "spec.certificates.generation", "0", "1", ReplicaChange(restart=EVERYTHING)),
    ],
)
def test_a_difference_is_told_as_the_user_writes_it(
    path: str, where: str, before: str, after: str, needed: ReplicaChange
) -> None:
    (found,) = differences(BEFORE, CHANGED[path])
    assert (found.path, found.before, found.after) == (where, before, after)
    assert change(BEFORE, CHANGED[path]) == needed


@pytest.mark.parametrize(
    ("changes", "path", "before", "after"),
    [
        ({"program": PurePosixPath("/opt/2")}, "program", "/opt/ccm", "/opt/2"),
        ({"provider": "fake"}, "provider", "unset", "fake"),
        ({"flags": {"v": "2"}}, "flags.v", "unset", "2"),
        ({"config": "password=other"}, "config", "1 lines, sha256 9a1b", "1 lines, sha256 e0d5"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_what_a_cloud_controller_manager_is_told_restarts_it_alone_and_its_file_is_shown_to_nobody(
    changes: dict[str, object], path: str, before: str, after: str
) -> None:
    one, other = (template(cloud_controller_manager=each) for each in (CLOUD, CLOUD.model_copy(update=changes)))
    (found,) = differences(one, other)
    assert found.path == f"spec.cloudControllerManager.{path}"
    assert (found.before.startswith(before[:15]), found.after.startswith(after[:15])) == (True, True)
    assert not {"password=secret", "password=other"} & {found.before, found.after}
    assert change(one, other) == ReplicaChange(restart=frozenset({CLOUDS}))
    assert {each for each, unit in units_of(one).items() if unit.digest != units_of(other)[each].digest} == (
        {CLOUDS} if path != "program" else set()
    )


def test_members_of_both_clusters_are_restarted_for_what_both_are_made_from() -> None:
    separate = etcd(events=EVENTS)
    for path in ("etcd.version", "etcd.heartbeat_milliseconds", "etcd.election_milliseconds", "extra_args.etcd"):
        after = CHANGED[path].model_copy(update={"etcd": CHANGED[path].etcd.model_copy(update={"events": EVENTS})})
        assert change(separate, after).restart == MEMBERS | APISERVER, path


def test_a_member_of_the_events_etcd_has_a_quota_and_a_class_of_its_own() -> None:
    before = etcd(events=EVENTS)
    larger = etcd(events=EVENTS.model_copy(update={"quota_bytes": 2**31}))
    assert change(before, larger) == ReplicaChange(restart=frozenset({Component.EVENTS_ETCD}) | APISERVER)
    assert units_of(before)[Component.EVENTS_ETCD].digest != units_of(larger)[Component.EVENTS_ETCD].digest
    elsewhere = etcd(events=EVENTS.model_copy(update={"storage_class": "standard"}))
    (found,) = differences(before, elsewhere)
    assert (found.path, found.needs) == ("spec.etcd.events.storageClass", Need.EXCHANGE)
    assert change(before, etcd(events=EVENTS, quota_bytes=2**30)).restart == MEMBER


@pytest.mark.parametrize("on", [True, False])
def test_that_events_are_not_copied_is_said_in_so_many_words(on: bool, golden: Golden) -> None:
    former, latter = (BEFORE, CHANGED["etcd.events"]) if on else (CHANGED["etcd.events"], BEFORE)
    (found,) = differences(former, latter)
    golden(needs(found))


def test_a_member_of_the_events_etcd_is_rendered_before_its_replica_is_of_the_revision_and_after() -> None:
    """It starts before its apiserver asks it, and stops after. It is the same all the while."""
    separate = etcd(events=EVENTS)
    found = Revisions(goal="on", templates={"off": BEFORE, "on": separate})
    assert found.events("off") == found.events("on") == EVENTS
    before, after = (units_of(each, events=EVENTS)[Component.EVENTS_ETCD] for each in (BEFORE, separate))
    assert before == after
    assert f"--quota-backend-bytes={2**30}" in before.argv
    back = Revisions(goal="off", templates={"off": BEFORE, "on": separate})
    assert back.events("off") == EVENTS
    assert back.programs.having(Component.EVENTS_ETCD) == {"on"}


@pytest.mark.parametrize(
    ("version", "flag"),
    [("3.6.5", "--snapshot-catchup-entries=50000"), ("3.5.21", "--experimental-snapshot-catchup-entries=50000")],
)
def test_members_of_a_plane_with_a_standby_keep_more_of_the_log_and_are_restarted_for_it(
    version: str, flag: str
) -> None:
    former, after = etcd(version=version), etcd(version=version, snapshot_catchup_entries=50_000)
    assert flag in units_of(after)[Component.ETCD].argv
    assert not any("catchup" in each for each in units_of(former)[Component.ETCD].argv)
    assert change(former, after).restart == MEMBER


def test_long_values_are_told_by_their_hash(golden: Golden) -> None:
    (found,) = differences(BEFORE, CHANGED["audit.policy"])
    assert found.path == "spec.audit.policyFile"
    golden(found.after)
    assert "Policy" not in found.before + found.after


def test_a_difference_deep_in_a_list_is_told_by_its_place() -> None:
    other = {**ISSUER, "issuer": {**ISSUER["issuer"], "audiences": ["other"]}}
    after = template(authentication=Authentication.model_validate({"jwt": [other]}, strict=False))
    (found,) = differences(CHANGED["authentication"], after)
    assert (found.path, found.before, found.after) == (
        "spec.authentication.jwt[0].issuer.audiences[0]",
        "quarterdeck",
        "other",
    )


def test_several_differences_need_all_that_each_of_them_needs() -> None:
    after = etcd(quota_bytes=2**30).model_copy(
        update={"extra_args": ExtraArgs(kube_scheduler={"v": "2"}), "tracing": Tracing(endpoint="a:1")}
    )
    assert change(BEFORE, after) == ReplicaChange(restart=MEMBER | {Component.SCHEDULER})
    assert change(BEFORE, BEFORE) == ReplicaChange()


def test_what_no_unit_is_rendered_from_needs_no_restart() -> None:
    plane = new_control_plane("demo", site="east").spec
    after = ControlPlaneSpec.model_validate(
        {
            **plane.model_dump(),
            "replicas": 5,
            "placement": {"site": "east", "zones": ("b", "a"), "storageClass": "fast"},
            "endpoint": {"ttl": 10},
            "replaceReplicas": ("demo-1",),
            "rollout": {"onFailure": "Stay"},
            "extraArgs": {"etcd": {"snapshot-count": "5000"}},
        },
        strict=False,
    )
    found = {each.path: each.needs for each in spec_differences(plane, after)}
    assert found == {
        "spec.endpoint.ttl": Need.NOTHING,
        "spec.placement.zones": Need.EXCHANGE,
        "spec.replaceReplicas": Need.EXCHANGE,
        "spec.replicas": Need.EXCHANGE,
        "spec.rollout.onFailure": Need.NOTHING,
    }


def test_issuers_plugins_and_tracing_are_written_for_the_apiserver_beside_quarterdecks_own() -> None:
    after = template(
        authentication=CHANGED["authentication"].authentication,
        admission=CHANGED["admission"].admission,
        tracing=Tracing(endpoint="collector.example:4317", sampling_rate_per_million=100),
    )
    unit = units_of(after)[Component.APISERVER]
    files = {each.path.name: yaml.safe_load(each.content) for each in unit.files if each.path.suffix == ".yaml"}
    assert files["authentication.yaml"]["jwt"] == [
        {**ISSUER, "claimValidationRules": [], "userValidationRules": []}
        | {"claimMappings": {**ISSUER["claimMappings"], "extra": []}}
    ]
    assert files["authentication.yaml"]["anonymous"]["conditions"][0] == {"path": "/healthz"}
    assert [each["name"] for each in files["admission.yaml"]["plugins"]] == ["EventRateLimit", "PodNodeSelector"]
    assert files["tracing.yaml"] == {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "TracingConfiguration",
        "endpoint": "collector.example:4317",
        "samplingRatePerMillion": 100,
    }
    assert "--tracing-config-file=/units/kube-apiserver/tracing.yaml" in unit.argv
    older = units_of(after.model_copy(update={"kubernetes_version": "v1.33.1"}))[Component.APISERVER]
    assert b"apiserver.config.k8s.io/v1beta1" in next(
        each.content for each in older.files if each.path.name == "tracing.yaml"
    )


def test_a_plugin_that_the_user_configures_is_as_the_user_says() -> None:
    limits = {
        "apiVersion": "eventratelimit.admission.k8s.io/v1alpha1",
        "kind": "Configuration",
        "limits": [{"type": "Server", "qps": 1, "burst": 1}],
    }
    after = template(admission=Admission(plugins=(AdmissionPlugin(name="EventRateLimit", configuration=limits),)))
    unit = units_of(after)[Component.APISERVER]
    (written,) = (yaml.safe_load(each.content) for each in unit.files if each.path.name == "admission.yaml")
    assert written["plugins"] == [{"name": "EventRateLimit", "configuration": limits}]
