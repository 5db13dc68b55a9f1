"""The CIS Kubernetes Benchmark (v1.12, control plane) on what the units of a replica are rendered to.

The numbers are those of the benchmark; docs/security.md has the table, which must name each check.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

import pytest
import yaml
from support.golden import Golden
from support.templates import but, template

from quarterdeck.api.plane.controllers import CloudControllerManager
from quarterdeck.api.revision import ReplicaTemplate
from quarterdeck.components.arguments import STRONG
from quarterdeck.components.ports import seat_at
from quarterdeck.components.replica import check_extra_args, component_unit
from quarterdeck.components.settings import ClusterState, InitialCluster, Inputs, ReplicaSettings
from quarterdeck.errors import InvalidInput
from quarterdeck.model.components import NAMED, Component
from quarterdeck.model.units import UnitSpec
from quarterdeck.pki.issuance import ReplicaNames, create_plane_secrets, with_replica

NOW = datetime(2026, 3, 1, tzinfo=UTC)
PLANE = but(
    template(),
    kubernetes_version="v1.36.3",
    etcd={"version": "3.6.16"},
    endpoint_name="d.test",
    cloud_controller_manager=CloudControllerManager(program=PurePosixPath("/opt/ccm")),
)
REPLICA = ReplicaSettings(
    name="demo-1",
    seat=seat_at("east-a1", "10.0.0.1", 0),
    volume=PurePosixPath("/volumes/demo-1"),
    audit=PurePosixPath("/volumes/demo-audit"),
    folders={each: PurePosixPath(f"/units/{each}") for each in NAMED},
    programs={each: PurePosixPath(f"/programs/{each}") for each in NAMED},
)
SECRETS = with_replica(
    create_plane_secrets("demo", NOW),
    ReplicaNames(replica="demo-1", addresses=("10.0.0.1",), service_ip="10.96.0.1", programs=NAMED),
    NOW,
)
DOCS = Path(__file__).parents[2] / "docs" / "security.md"
CLOUD = Component.CLOUD_CONTROLLER_MANAGER
ETCD, API, KCM, SCHEDULER = (
    Component.ETCD,
    Component.APISERVER,
    Component.CONTROLLER_MANAGER,
    Component.SCHEDULER,
)


def unit(component: Component, plane: ReplicaTemplate = PLANE) -> UnitSpec:
    certificates = SECRETS.replica("demo-1")
    assert certificates is not None
    cluster = InitialCluster(state=ClusterState.NEW, members=(("demo-1", "https://10.0.0.1:2380"),), token="demo-1")
    inputs = Inputs(
        plane="demo", template=plane, replica=REPLICA, secrets=SECRETS, certificates=certificates, initial=cluster
    )
    return component_unit(component, inputs)


def flags(component: Component, plane: ReplicaTemplate = PLANE) -> dict[str, str]:
    return dict(each.removeprefix("--").split("=", 1) for each in unit(component, plane).argv[1:])


def file(component: Component, name: str, plane: ReplicaTemplate = PLANE) -> bytes:
    return next(each.content for each in unit(component, plane).files if each.path.name == name)


def with_extra(component: Component, **extra: str) -> ReplicaTemplate:
    return but(PLANE, flags={component: {name.replace("_", "-"): value for name, value in extra.items()}})


def private() -> bool:
    return all(each.mode == 0o600 for component in NAMED for each in unit(component).files)


def admits(*plugins: str) -> bool:
    return set(plugins) <= set(flags(API)["enable-admission-plugins"].split(","))


def refuses(component: Component, flag: str, value: str) -> bool:
    try:
        check_extra_args(but(PLANE, flags={component: {flag: value}}))
    except InvalidInput:
        return True
    return False


def strong(value: str) -> bool:
    return set(value.split(",")) <= STRONG


#: Each check that units can show.
CHECKS: dict[str, Callable[[], bool]] = {
    **dict.fromkeys(("1.1.1", "1.1.3", "1.1.5", "1.1.7", "1.1.15", "1.1.17", "1.1.20", "1.1.21"), private),
    "1.2.2": lambda: refuses(API, "token-auth-file", "/t"),
    "1.2.3": lambda: admits("DenyServiceExternalIPs"),
    "1.2.4": lambda: {"kubelet-client-certificate", "kubelet-client-key"} <= flags(API).keys(),
    "1.2.5": lambda: file(API, Path(flags(API)["kubelet-certificate-authority"]).name) == SECRETS.kubernetes_ca.bundle,
    "1.2.6": lambda: "AlwaysAllow" not in flags(API)["authorization-mode"],
    "1.2.7": lambda: "Node" in flags(API)["authorization-mode"].split(","),
    "1.2.8": lambda: "RBAC" in flags(API)["authorization-mode"].split(","),
    "1.2.9": lambda: admits("EventRateLimit") and b"EventRateLimit" in file(API, "admission.yaml"),
    "1.2.10": lambda: refuses(API, "enable-admission-plugins", "AlwaysAdmit"),
    "1.2.12": lambda: refuses(API, "disable-admission-plugins", "ServiceAccount"),
    "1.2.13": lambda: refuses(API, "disable-admission-plugins", "NamespaceLifecycle"),
    "1.2.14": lambda: admits("NodeRestriction") and refuses(API, "disable-admission-plugins", "NodeRestriction"),
    "1.2.15": lambda: flags(API)["profiling"] == "false",
    "1.2.16": lambda: flags(API)["audit-log-path"] == "/volumes/demo-audit/audit.log",
    "1.2.17": lambda: int(flags(API)["audit-log-maxage"]) >= 30,
    "1.2.18": lambda: int(flags(API)["audit-log-maxbackup"]) >= 10,
    "1.2.19": lambda: int(flags(API)["audit-log-maxsize"]) >= 100,
    "1.2.20": lambda: "request-timeout" not in flags(API),
    "1.2.21": lambda: flags(API)["service-account-lookup"] == "true",
    "1.2.22": lambda: "service-account-key-file" in flags(API),
    "1.2.23": lambda: {"etcd-certfile", "etcd-keyfile"} <= flags(API).keys(),
    "1.2.24": lambda: {"tls-cert-file", "tls-private-key-file"} <= flags(API).keys(),
    "1.2.25": lambda: "client-ca-file" in flags(API),
    "1.2.26": lambda: "etcd-cafile" in flags(API),
    "1.2.27": lambda: "encryption-provider-config" in flags(API),
    "1.2.28": lambda: "secretbox" in yaml.safe_load(file(API, "encryption.yaml"))["resources"][0]["providers"][0],
    "1.2.29": lambda: strong(flags(API)["tls-cipher-suites"]),
    "1.2.30": lambda: flags(API)["service-account-extend-token-expiration"] == "false",
    "1.3.1": lambda: int(flags(KCM)["terminated-pod-gc-threshold"]) == 1000,
    "1.3.2": lambda: flags(KCM)["profiling"] == "false",
    "1.3.3": lambda: flags(KCM)["use-service-account-credentials"] == "true",
    "1.3.4": lambda: "service-account-private-key-file" in flags(KCM),
    "1.3.5": lambda: "root-ca-file" in flags(KCM),
    "1.3.6": lambda: refuses(KCM, "feature-gates", "RotateKubeletServerCertificate=false"),
    "1.3.7": lambda: flags(KCM)["bind-address"] == "10.0.0.1",
    "1.4.1": lambda: flags(SCHEDULER)["profiling"] == "false",
    "1.4.2": lambda: flags(SCHEDULER)["bind-address"] == "10.0.0.1",
    "2.1": lambda: {"cert-file", "key-file"} <= flags(ETCD).keys(),
    "2.2": lambda: flags(ETCD)["client-cert-auth"] == "true",
    "2.3": lambda: refuses(ETCD, "auto-tls", "true"),
    "2.4": lambda: {"peer-cert-file", "peer-key-file"} <= flags(ETCD).keys(),
    "2.5": lambda: flags(ETCD)["peer-client-cert-auth"] == "true",
    "2.6": lambda: refuses(ETCD, "peer-auto-tls", "true"),
    "2.7": lambda: file(ETCD, "ca.crt") == SECRETS.etcd_ca.bundle != SECRETS.kubernetes_ca.bundle,
    "3.2.1": lambda: "audit-policy-file" in flags(API),
    "3.2.2": lambda: bool(yaml.safe_load(file(API, "audit-policy.yaml"))["rules"]),
}


@pytest.mark.parametrize("number", CHECKS)
def test_a_unit_passes_the_check(number: str) -> None:
    assert CHECKS[number]()


def test_the_table_in_the_docs_names_each_check_and_says_what_the_units_show() -> None:
    rows = dict(re.findall(r"^\| ([\d.]+) \|.*?\| (pass|differs|manual|n/a)\b", DOCS.read_text(), re.MULTILINE))
    numbers = [
        *(f"1.1.{each}" for each in range(1, 22)),
        *(f"1.2.{each}" for each in range(1, 31)),
        *(f"1.3.{each}" for each in range(1, 8)),
        *("1.4.1", "1.4.2"),
        *(f"2.{each}" for each in range(1, 8)),
        *("3.1.1", "3.1.2", "3.1.3", "3.2.1", "3.2.2"),
    ]
    assert list(rows) == numbers
    assert {number for number, status in rows.items() if status == "pass"} - CHECKS.keys() <= {
        "1.1.2",
        "1.1.4",
        "1.1.6",
        "1.1.8",
        "1.1.11",
        "1.1.12",
        "1.1.13",
        "1.1.14",
        "1.1.16",
        "1.1.18",
        "1.1.19",
    }, "files and folders: the drivers' own tests show who owns them"


@pytest.mark.parametrize(
    ("component", "flag", "value"),
    [
        (API, "token-auth-file", "/tokens.csv"),
        (API, "basic-auth-file", "/passwords.csv"),
        (API, "anonymous-auth", "true"),
        (API, "authorization-mode", "AlwaysAllow"),
        (API, "authorization-config", "/a.yaml"),
        (API, "insecure-port", "8080"),
        (API, "debug-socket-path", "/tmp/s"),
        (API, "etcd-servers", "x"),
        (API, "etcd-servers-overrides", "/events#https://10.0.0.9:2379"),
        (API, "service-account-lookup", "false"),
        (API, "disable-admission-plugins", "LimitRanger,NodeRestriction"),
        (API, "disable-admission-plugins", "ValidatingAdmissionWebhook"),
        (API, "enable-admission-plugins", "AlwaysAdmit"),
        (API, "admission-control", "LimitRanger"),
        (API, "tls-cipher-suites", "TLS_RSA_WITH_AES_128_CBC_SHA"),
        (API, "tls-min-version", "VersionTLS10"),
        (API, "aggregator-reject-forwarding-redirect", "false"),
        (API, "enable-logs-handler", "true"),
        (API, "oidc-issuer-url", "https://id.example"),
        (API, "feature-gates", "AnonymousAuthConfigurableEndpoints=false"),
        (API, "feature-gates", "kube:AnonymousAuthConfigurableEndpoints=false"),
        (KCM, "feature-gates", "X=true,RotateKubeletServerCertificate=false"),
        (API, "emulated-version", "1.36"),
        (API, "emulation-forward-compatible", "true"),
        (KCM, "emulated-version", "1.36"),
        (SCHEDULER, "min-compatibility-version", "1.37"),
        (KCM, "leader-elect", "x"),
        (KCM, "kubeconfig", "x"),
        (KCM, "authorization-always-allow-paths", "*"),
        (KCM, "cluster-signing-kubelet-client-key-file", "/k"),
        (SCHEDULER, "config", "/c.yaml"),
        (SCHEDULER, "secure-port", "x"),
        (SCHEDULER, "write-config-to", "/c.yaml"),
        (CLOUD, "leader-elect-resource-name", "x"),
        (CLOUD, "authorization-always-allow-paths", "*"),
        (CLOUD, "tls-min-version", "VersionTLS10"),
        (CLOUD, "secure-port", "x"),
        (ETCD, "unsafe-no-fsync", "true"),
        (ETCD, "force-new-cluster", "true"),
        (ETCD, "initial-cluster", "x"),
        (ETCD, "data-dir", "x"),
        (ETCD, "max-learners", "x"),
        (ETCD, "discovery-srv", "example.com"),
        (ETCD, "experimental-discovery-token", "x"),
        (ETCD, "enable-pprof", "true"),
        (ETCD, "cipher-suites", "TLS_RSA_WITH_AES_128_CBC_SHA"),
        (ETCD, "tls-max-version", "TLS1.1"),
        (ETCD, "client-cert-auth", "false"),
    ],
)
def test_an_argument_that_would_undo_the_plane_is_refused_with_the_reason(
    component: Component, flag: str, value: str, golden: Golden
) -> None:
    with golden.raises(InvalidInput):
        check_extra_args(but(PLANE, flags={component: {flag: value}}))


@pytest.mark.parametrize(
    ("component", "flag", "value"),
    [
        (API, "event-ttl", "2h"),
        (API, "disable-admission-plugins", "DefaultStorageClass,DenyServiceExternalIPs"),
        (API, "feature-gates", "AnonymousAuthConfigurableEndpoints=true,Other=false"),
        (API, "kubelet-certificate-authority", ""),
        (API, "tls-min-version", "VersionTLS13"),
        (API, "audit-log-path", "-"),
        (KCM, "terminated-pod-gc-threshold", "50"),
        (ETCD, "snapshot-count", "5000"),
        (ETCD, "tls-min-version", "TLS1.3"),
    ],
)
def test_what_a_platform_team_may_want_is_not(component: Component, flag: str, value: str) -> None:
    plane = but(PLANE, flags={component: {flag: value}})
    check_extra_args(plane)
    assert flags(component, plane)[flag] == value or flag == "enable-admission-plugins"


def test_plugins_are_added_to_ours_and_those_that_are_disabled_are_not_enabled_as_well() -> None:
    plane = with_extra(API, enable_admission_plugins="AlwaysPullImages")
    assert flags(API, plane)["enable-admission-plugins"].split(",") == [
        "NodeRestriction",
        "DenyServiceExternalIPs",
        "EventRateLimit",
        "AlwaysPullImages",
    ]
    fewer = with_extra(API, disable_admission_plugins="DenyServiceExternalIPs")
    assert flags(API, fewer)["enable-admission-plugins"] == "NodeRestriction,EventRateLimit"


def test_a_plane_without_limits_for_events_of_its_own_file_does_not_lose_its_apiserver() -> None:
    """EventRateLimit without a configuration has no limit at all; with another file it is the user's to give one."""
    plane = with_extra(API, admission_control_config_file="/own.yaml")
    assert flags(API, plane)["admission-control-config-file"] == "/own.yaml"


def test_etcd_is_given_no_suites_of_1_2_where_only_1_3_is_allowed() -> None:
    assert "cipher-suites" not in flags(ETCD, with_extra(ETCD, tls_min_version="TLS1.3"))
    assert strong(flags(ETCD)["cipher-suites"])


def test_no_rule_of_the_audit_policy_writes_a_body_down_but_what_controllers_set_of_nodes() -> None:
    policy = yaml.safe_load(file(API, "audit-policy.yaml"))
    bodies = [rule for rule in policy["rules"] if rule["level"] not in ("None", "Metadata")]
    assert [(rule["level"], rule["resources"]) for rule in bodies] == [
        ("Request", [{"group": "", "resources": ["nodes"]}])
    ]
    assert policy["rules"][-1] == {"level": "Metadata"}


@pytest.mark.parametrize(
    ("user", "verb", "group", "resource", "level"),
    [
        ("jane", "get", "", "secrets", "Metadata"),
        ("jane", "list", "", "pods", "None"),
        ("jane", "delete", "", "pods", "Metadata"),
        ("jane", "get", "", "pods/exec", "Metadata"),
        ("jane", "get", "rbac.authorization.k8s.io", "clusterroles", "Metadata"),
        ("jane", "update", "coordination.k8s.io", "leases", "Metadata"),
        ("system:kube-scheduler", "update", "coordination.k8s.io", "leases", "None"),
        ("system:kube-controller-manager", "list", "", "secrets", "None"),
        ("system:kube-controller-manager", "create", "", "pods", "Metadata"),
        ("system:serviceaccount:kube-system:token-cleaner", "get", "", "secrets", "Metadata"),
        ("jane", "create", "", "events", "None"),
        ("system:serviceaccount:kube-system:node-controller", "patch", "", "nodes", "Request"),
        ("system:cloud-controller-manager", "update", "", "nodes", "Request"),
        ("system:cloud-controller-manager", "patch", "", "nodes/status", "Metadata"),
        ("system:cloud-controller-manager", "delete", "", "nodes", "Metadata"),
        ("system:kube-controller-manager", "create", "", "secrets", "Metadata"),
        ("jane", "patch", "", "nodes", "Metadata"),
    ],
)
def test_the_audit_policy_keeps_who_changed_what_and_who_saw_secrets(
    user: str, verb: str, group: str, resource: str, level: str
) -> None:
    assert decided(yaml.safe_load(file(API, "audit-policy.yaml")), user, verb, group, resource) == level


def decided(policy: dict[str, list[dict[str, object]]], user: str, verb: str, group: str, resource: str) -> str:
    """The level of the first rule that fits, as apiserver/pkg/audit/policy/checker.go has it."""

    def fits(rule: dict[str, object]) -> bool:
        named: list[dict[str, object]] = rule.get("resources", [])  # type: ignore[assignment]
        return (
            "nonResourceURLs" not in rule
            and "userGroups" not in rule
            and user in (rule.get("users") or [user])  # type: ignore[operator]
            and verb in (rule.get("verbs") or [verb])  # type: ignore[operator]
            and (
                not named
                or any(
                    each["group"] == group and resource in (each.get("resources") or [resource])  # type: ignore[operator]
                    for each in named
                )
            )
        )

    return str(next(rule["level"] for rule in policy["rules"] if fits(rule)))
