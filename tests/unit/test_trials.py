"""Which programs are tried before a plane is accepted, and what is refused without starting any."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path, PurePosixPath
from typing import cast

import pytest
from support.components import rules_of
from support.golden import Golden
from support.resources import with_spec
from support.templates import but, template

from quarterdeck.api.controlplane import ControlPlane, ExtraArgs, new_control_plane
from quarterdeck.api.documents import load
from quarterdeck.api.plane.controllers import CloudControllerManager
from quarterdeck.api.revision import EventsTemplate, ReplicaTemplate
from quarterdeck.components.admission_plugins import pod_security_problems
from quarterdeck.components.audit_policy import default_audit_policy, policy_problems
from quarterdeck.components.refusals import refuse_dangerous, refuse_host_files, service_range_problem
from quarterdeck.components.replica import configurations
from quarterdeck.engine.preflight.admission import admit
from quarterdeck.engine.reconcile.drive import Engine
from quarterdeck.engine.reconcile.trials import NoTrials, require_start
from quarterdeck.engine.workspace import operations
from quarterdeck.engine.workspace.home import Home
from quarterdeck.engine.workspace.operations import Requester
from quarterdeck.errors import InvalidInput
from quarterdeck.model.components import NAMED, Component
from quarterdeck.upstream.catalog import UpstreamProgram
from quarterdeck.upstream.upstream import Upstream
from quarterdeck.yaml_text.streams import first_document

ETCD, API, KCM, SCHEDULER, CLOUD = (
    Component.ETCD,
    Component.APISERVER,
    Component.CONTROLLER_MANAGER,
    Component.SCHEDULER,
    Component.CLOUD_CONTROLLER_MANAGER,
)
PLANE = but(template(), kubernetes_version="v1.36.3", etcd={"version": "3.6.16"})
PROGRAMS = {each: PurePosixPath("/programs") / each for each in NAMED}


class FakeTrials:
    """Trials that fail as they are told."""

    def __init__(self, **words: str) -> None:
        self.words = {Component(name.replace("_", "-")): text for name, text in words.items()}
        self.asked: list[Component] = []

    async def failures(
        self, template: ReplicaTemplate, components: Collection[Component], programs: Mapping[Component, PurePosixPath]
    ) -> Mapping[Component, str]:
        del template
        assert {*components} <= {*programs}
        self.asked += components
        return {each: words for each, words in self.words.items() if each in components}


# Which programs are tried


async def test_all_programs_of_a_new_plane_are_tried() -> None:
    trials = FakeTrials()
    await require_start(
        trials,
        "demo",
        but(PLANE, etcd={"events": EventsTemplate(quota_bytes=2**30, storage_class="standard")}),
        None,
        PROGRAMS,
    )
    assert trials.asked == [ETCD, API, KCM, SCHEDULER]


@pytest.mark.parametrize(
    ("changed", "tried"),
    [
        (PLANE, []),
        (but(PLANE, endpoint_name="other.example"), []),
        (but(PLANE, flags={SCHEDULER: {"v": "2"}}), [SCHEDULER]),
        (but(PLANE, flags={ETCD: {"snapshot-count": "5000"}}), [ETCD]),
        (but(PLANE, policy="kind: Policy"), [API]),
        (but(PLANE, service_cidr="10.97.0.0/16"), [API, KCM]),
        (but(PLANE, secondary_service_cidr="fd00::/112"), [API, KCM]),
        (but(PLANE, etcd={"version": "3.6.15"}), [ETCD]),
        (but(PLANE, kubernetes_version="v1.36.2"), [API, KCM, SCHEDULER]),
        (but(PLANE, etcd={"quota_bytes": 2**30}), [ETCD]),
    ],
)
async def test_a_change_tries_what_it_touches_alone(changed: ReplicaTemplate, tried: list[Component]) -> None:
    trials = FakeTrials()
    await require_start(trials, "demo", changed, PLANE, PROGRAMS)
    assert trials.asked == tried


async def test_a_users_program_is_tried_where_it_is_a_file() -> None:
    file = CloudControllerManager(program=PurePosixPath("/opt/ccm"))
    image = CloudControllerManager(image="registry.example/ccm:v1")
    with_file, with_image = FakeTrials(), FakeTrials()
    programs = {each: path for each, path in PROGRAMS.items() if each != CLOUD}
    await require_start(with_file, "demo", but(PLANE, cloud_controller_manager=file), PLANE, programs)
    await require_start(with_image, "demo", but(PLANE, cloud_controller_manager=image), PLANE, programs)
    assert (with_file.asked, with_image.asked) == ([KCM, CLOUD], [KCM])


async def test_a_refusal_names_the_programs_their_words_and_where_their_flags_are(golden: Golden) -> None:
    trials = FakeTrials(kube_scheduler="exit code 1: unknown flag: --x", etcd="exit code 2: no")
    with pytest.raises(InvalidInput) as caught:
        await require_start(trials, "demo", PLANE, None, PROGRAMS)
    golden(caught.value)
    await require_start(NoTrials(), "demo", PLANE, None, PROGRAMS)


def test_files_of_machines_are_no_part_of_what_is_tried() -> None:
    named = but(PLANE, flags={API: {"egress-selector-config-file": "/etc/egress.yaml"}})
    assert configurations(named) == configurations(PLANE)


class Programs:
    """The upstream programs, which nobody runs here."""

    async def ensure(self, programs: tuple[UpstreamProgram, ...], versions: object) -> dict[UpstreamProgram, Path]:
        del versions
        return {each: Path("/programs") / each for each in programs}


async def test_a_new_plane_is_tried_as_it_would_be_made_and_a_change_by_what_differs(
    tmp_path: Path, golden: Golden
) -> None:
    home = await Home.open(tmp_path / "home")
    trials = FakeTrials()
    engine = Engine(home=home, upstream=cast("Upstream", Programs()), requester=Requester(name="a test"), trials=trials)
    try:
        plane = new_control_plane("demo", site="east")
        await admit(engine, plane)
        assert trials.asked == [ETCD, API, KCM, SCHEDULER]
        await operations.create(home, plane, engine.requester)
        stored = await home.store.get(ControlPlane, "demo")
        trials.asked.clear()
        await admit(engine, stored, current=stored)
        assert trials.asked == [], "as it was made"
        extra = ExtraArgs().model_copy(update={"kube_scheduler": {"v": "2"}})
        changed = with_spec(stored, extra_args=extra)
        trials.words = {SCHEDULER: "exit code 1: no"}
        with golden.raises(InvalidInput):
            await admit(engine, changed, current=stored)
        assert trials.asked == [SCHEDULER]
    finally:
        await home.close()


# Flags


@pytest.mark.parametrize(
    ("component", "flag", "value"),
    [
        (API, "audit-policy-file", "/etc/policy.yaml"),
        (API, "audit-webhook-config-file", "/etc/webhook.yaml"),
        (API, "egress-selector-config-file", "egress.yaml"),
        (API, "tracing-config-file", "/etc/tracing.yaml"),
        (API, "audit-log-path", "/var/log/audit.log"),
        (API, "kubelet-certificate-authority", "/etc/ca.crt"),
        (KCM, "tls-sni-cert-key", "/a.crt,/a.key"),
        (KCM, "flex-volume-plugin-dir", "/opt/plugins"),
        (KCM, "cloud-config", "/etc/cloud.conf"),
        (SCHEDULER, "requestheader-client-ca-file", "./ca.crt"),
        (ETCD, "peer-crl-file", "/etc/crl"),
        (ETCD, "log-outputs", "/var/log/etcd"),
        (CLOUD, "cloud-config", "/etc/cloud.conf"),
    ],
)
def test_flags_that_name_files_of_a_machine_are_refused(
    component: Component, flag: str, value: str, golden: Golden
) -> None:
    with golden.raises(InvalidInput):
        refuse_host_files(rules_of(component), {flag: value})


@pytest.mark.parametrize(
    ("flag", "value"),
    [
        ("audit-log-path", "-"),
        ("audit-log-path", ""),
        ("kubelet-certificate-authority", ""),
        ("runtime-config", "api/all=true"),
        ("cors-allowed-origins", "https://example"),
        ("external-hostname", "demo.example"),
        ("event-ttl", "2h"),
    ],
)
def test_other_flags_are_not(flag: str, value: str) -> None:
    refuse_host_files(API, {flag: value})


@pytest.mark.parametrize(
    ("component", "flag"),
    [
        (API, "cloud-provider"),
        (ETCD, "enable-v2v3"),
        (KCM, "pod-eviction-timeout"),
        (SCHEDULER, "policy-config-file"),
        (SCHEDULER, "config"),
        (API, "encryption-provider-config"),
        (API, "service-cluster-ip-range"),
    ],
)
def test_what_is_gone_or_not_supported_is_refused_in_those_words(
    component: Component, flag: str, golden: Golden
) -> None:
    with golden.raises(InvalidInput):
        refuse_dangerous(rules_of(component), {flag: "x"})


HEAD = "apiVersion: quarterdeck.dev/v1alpha1\nkind: ControlPlane\nmetadata: {name: demo}\n"


@pytest.mark.parametrize(
    "spec",
    [
        "serviceCidr: '10.96.0.0/16,fd00::/112'",
        "ipFamilyPolicy: PreferDualStack",
        "encryption: {kms: {endpoint: 'unix:///kms'}}",
        "schedulerConfiguration: {profiles: []}",
        "scheduler: {schedulerConfiguration: {profiles: []}}",
        "extraArgs: {kubeApiserver: [{name: event-ttl, value: 2h}]}",
        "extraArgs: [{name: event-ttl, value: 2h}]",
    ],
)
def test_what_there_is_not_is_refused_with_its_path(spec: str, golden: Golden) -> None:
    with golden.raises(InvalidInput):
        load(f"{HEAD}spec: {{placement: {{site: east}}, {spec}}}", "a file")


# Audit policies


def problems(text: str, head: str = "apiVersion: audit.k8s.io/v1\nkind: Policy\n") -> str:
    document = first_document(head + text, "a policy")
    assert isinstance(document, dict)
    return "; ".join(policy_problems(document))


@pytest.mark.parametrize(
    "rule",
    [
        "{level: Everything}",
        "{verbs: [get]}",
        "{level: None, omitStages: [Sent]}",
        "{level: None, nonResourceURLs: ['/a*b']}",
        "{level: None, nonResourceURLs: [healthz]}",
        "{level: None, nonResourceURLs: [/x], namespaces: [a]}",
        "{level: None, nonResourceURLs: [/x], resources: [{group: ''}]}",
        "{level: None, resources: [{group: apps/v1}]}",
        "{level: None, resources: [{resourceNames: [a]}]}",
        "level",
    ],
)
def test_audit_rules_that_no_apiserver_takes_are_named_with_their_path(rule: str, golden: Golden) -> None:
    golden(problems(f"rules: [{rule}]"))


def test_audit_policies_of_another_version_or_without_rules_are_refused_and_good_ones_are_not(golden: Golden) -> None:
    rules = "rules: [{level: None, nonResourceURLs: ['*', '/healthz*']}, {level: Request, resources: [{group: '*'}]}]"
    assert problems(rules) == ""
    golden(problems(rules, "apiVersion: audit.k8s.io/v1beta1\n"))
    golden(problems("rules: []"))
    golden(problems(""))
    document = first_document(default_audit_policy(), "the policy")
    assert isinstance(document, dict)
    assert policy_problems(document) == ()


# PodSecurity


@pytest.mark.parametrize(
    "given",
    [
        {"defaults": {"enforce": "strict"}},
        {"defaults": {"warn-version": "1.30"}},
        {"defaults": {"audit-version": "v1"}},
        {"defaults": {"enforced": "baseline"}},
        {"exemptions": {"users": ["a"]}},
        {"default": {}},
        {"defaults": "baseline"},
        {"apiVersion": "pod-security.admission.config.k8s.io/v2"},
    ],
)
def test_pod_security_that_no_apiserver_takes_is_named_with_its_path(given: dict[str, object], golden: Golden) -> None:
    base = {"apiVersion": "pod-security.admission.config.k8s.io/v1", "kind": "PodSecurityConfiguration"}
    golden(pod_security_problems({**base, **given})[0])
    right = {"enforce": "baseline", "enforce-version": "v1.36", "audit": "restricted", "warn-version": "latest"}
    assert pod_security_problems({**base, "defaults": right, "exemptions": {"namespaces": ["kube-system"]}}) == ()


# Ranges of Services


@pytest.mark.parametrize(
    ("network", "words"),
    [
        ("169.254.0.0/16", "link-local"),
        ("224.1.0.0/16", "multicast"),
        ("127.1.0.0/16", "never leave a host"),
        ("0.0.0.0/12", "this host"),
        ("240.0.0.0/16", "reserved"),
        ("fe80::/112", "link-local"),
        ("ff00::/112", "multicast"),
        ("::/112", "unspecified"),
        ("fd00::/112", "IPv6, and the site's machines have IPv4 addresses"),
        ("192.0.2.0/24", "contains 192.0.2.7, the address of a machine"),
        ("10.96.0.0/16", ""),
        ("172.20.0.0/16", ""),
    ],
)
def test_ranges_that_services_cannot_have(network: str, words: str, golden: Golden) -> None:
    found = service_range_problem(network, ["192.0.2.7", "192.0.2.8"], first=True)
    golden(found)
    assert bool(found) == bool(words)


def test_ipv6_is_for_sites_of_ipv6(golden: Golden) -> None:
    assert service_range_problem("fd00::/112", ["2001:db8::1"], first=True) == ""
    golden(service_range_problem("10.96.0.0/16", ["2001:db8::1"], first=True))
    assert service_range_problem("10.96.0.0/16", ["2001:db8::1"], first=False) == ""
    golden(service_range_problem("2001:db8::/112", ["2001:db8::1"], first=False))
    assert isinstance(load(f"{HEAD}spec: {{placement: {{site: east}}}}", "a file")[0], ControlPlane)
