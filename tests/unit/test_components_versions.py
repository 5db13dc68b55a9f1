"""What the tables of minor versions say, and what follows for a plane's flags."""

from __future__ import annotations

from datetime import date

import pytest
from support.golden import Golden
from support.templates import template

from quarterdeck.api.controlplane import ExtraArgs
from quarterdeck.api.revision import ReplicaTemplate
from quarterdeck.api.values import DEFAULT_ETCD_VERSION, DEFAULT_KUBERNETES_VERSION
from quarterdeck.components.feature_gates import ETCD_GATES, KUBERNETES_GATES, gates_problem
from quarterdeck.components.minors import ETCD, KUBERNETES, Minor, flag_problem
from quarterdeck.components.upstream_versions import minor, patch
from quarterdeck.components.version_rules import etcd_problems, flaws, illegal_flags, problems
from quarterdeck.model.components import Component

API, KCM, SCHEDULER, ETCD_PROGRAM = (
    Component.APISERVER,
    Component.CONTROLLER_MANAGER,
    Component.SCHEDULER,
    Component.ETCD,
)
V135, V136, V137 = (1, 35), (1, 36), (1, 37)
WORDS = {
    API: "kube_apiserver",
    KCM: "kube_controller_manager",
    SCHEDULER: "kube_scheduler",
    ETCD_PROGRAM: "etcd",
}


def given(
    component: Component, flags: dict[str, str], *, kubernetes: str = "v1.37.2", etcd: str = "3.7.3"
) -> ReplicaTemplate:
    found = template(kubernetes_version=kubernetes, extra_args=ExtraArgs(**{WORDS[component]: flags}))
    return found.model_copy(update={"etcd": found.etcd.model_copy(update={"version": etcd})})


def gates(value: str, binary: Minor, emulated: Minor | None = None, component: Component = API) -> tuple[str, ...]:
    return problems(given(component, {"feature-gates": value}), binary=binary, emulated=emulated or binary)


# The tables.


@pytest.mark.parametrize("minors", [KUBERNETES, ETCD])
def test_the_minor_versions_follow_each_other(minors: dict[Minor, object]) -> None:
    known = sorted(minors)
    assert known == [(known[0][0], known[0][1] + number) for number in range(len(known))]


def test_planes_have_the_newest_versions_by_default() -> None:
    for version, minors in ((DEFAULT_KUBERNETES_VERSION, KUBERNETES), (DEFAULT_ETCD_VERSION, ETCD)):
        assert minor(version) == max(minors)
        assert patch(version) == minors[max(minors)].newest


def test_every_flaw_is_fixed_in_the_newest_patch_release_and_no_floor_is_above_it() -> None:
    for minors in (KUBERNETES, ETCD):
        for release in minors.values():
            assert all(release.lowest < each.fixed <= release.newest for each in release.flaws)
            assert release.lowest <= release.newest


def test_support_ends_later_for_later_versions() -> None:
    ends = [release.supported_until or date.min for _, release in sorted(KUBERNETES.items())]
    assert ends == sorted(set(ends))
    assert date.min not in ends


@pytest.mark.parametrize("table", [KUBERNETES_GATES, ETCD_GATES])
def test_the_history_of_each_gate_has_an_order(table: dict[str, object]) -> None:
    assert list(table) == sorted(table)
    for name, gate in (KUBERNETES_GATES | ETCD_GATES).items():
        versions = [each.since for each in gate.stages]
        assert versions == sorted(set(versions)), name
        assert gate.stages, name
        assert gate.gone is None or gate.gone > max(gate.known, *versions), name
        assert not any(each.locked for each in gate.stages[:-1]), name


# Flags.


@pytest.mark.parametrize(
    ("component", "flag", "version", "right"),
    [
        (KCM, "concurrent-service-syncs", V136, True),
        (KCM, "concurrent-service-syncs", V137, False),
        (API, "tls-curve-preferences", V135, False),
        (API, "tls-curve-preferences", V136, True),
        (SCHEDULER, "min-compatibility-version", (1, 34), False),
        (ETCD_PROGRAM, "experimental-corrupt-check-time", (3, 6), True),
        (ETCD_PROGRAM, "experimental-corrupt-check-time", (3, 7), False),
        (ETCD_PROGRAM, "feature-gates", (3, 5), False),
        (ETCD_PROGRAM, "proxy", (3, 5), True),
        (ETCD_PROGRAM, "proxy", (3, 7), False),
        (API, "event-ttl", V137, True),
    ],
)
def test_a_flag_is_right_in_the_versions_that_have_it(
    component: Component, flag: str, version: Minor, right: bool
) -> None:
    assert bool(flag_problem(component, flag, version)) is not right


@pytest.mark.parametrize(
    ("component", "flags", "versions"),
    [
        (KCM, {"concurrent-service-syncs": "2"}, {}),
        (API, {"tls-curve-preferences": "X25519"}, {"kubernetes": "v1.35.4"}),
        (ETCD_PROGRAM, {"experimental-corrupt-check-time": "1m"}, {}),
        (ETCD_PROGRAM, {"experimental-compact-hash-check-enabled": "true"}, {}),
        (ETCD_PROGRAM, {"feature-gates": "CompactHashCheck=true"}, {"etcd": "3.5.35"}),
        (ETCD_PROGRAM, {"feature-gates": "FastLeaseKeepAlive=true"}, {"etcd": "3.6.16"}),
        (API, {"feature-gates": "APIServerTracing=true"}, {}),
        (API, {"feature-gates": "DynamicResourceAllocation=false,GitRepoVolumeDriver=true"}, {}),
        (SCHEDULER, {"feature-gates": "kube:SElinuxMount=true"}, {}),
        (SCHEDULER, {"feature-gates": "ControllerManagerReleaseLeaderElectionLockOnExit=true"}, {}),
        (KCM, {"feature-gates": "MutablePodResourcesForSuspendedJobs"}, {}),
        (API, {"feature-gates": "EtcdRangeStream=true"}, {"kubernetes": "v1.36.3"}),
    ],
)
def test_what_a_version_refuses_is_told_with_its_path(
    component: Component, flags: dict[str, str], versions: dict[str, str], golden: Golden
) -> None:
    (found,) = illegal_flags(given(component, flags, **versions))
    golden(found)


def test_what_was_illegal_before_blocks_no_other_change() -> None:
    before = given(API, {"feature-gates": "APIServerTracing=true"})
    assert illegal_flags(before)
    assert illegal_flags(before, before) == ()
    assert illegal_flags(before, given(API, dict(before.extra_args.kube_apiserver), kubernetes="v1.36.3"))
    more = given(API, {"feature-gates": "APIServerTracing=true,BtreeWatchCache=true"})
    assert illegal_flags(more, before)


@pytest.mark.parametrize(
    "value", ["", "AllBeta=true", "AllAlpha=true", "WatchList=0", "kube:EtcdRangeStream=F", " SELinuxMount=true ,"]
)
def test_legal_gates_are_no_problem(value: str) -> None:
    assert gates(value, V137) == ()


def test_a_plane_of_defaults_has_nothing_illegal_in_any_version() -> None:
    for kubernetes in KUBERNETES:
        for etcd in ETCD:
            assert problems(template(), binary=kubernetes, emulated=kubernetes) == ()
            assert etcd_problems(template(), etcd) == ()


# Emulation.


def test_flags_are_those_of_the_binary_whatever_it_emulates() -> None:
    gone, new = given(KCM, {"concurrent-service-syncs": "2"}), given(API, {"tls-curve-preferences": "X25519"})
    assert problems(gone, binary=V137, emulated=V136)
    assert not problems(gone, binary=V136, emulated=V136)
    assert not problems(new, binary=V136, emulated=V135)


def test_gates_are_judged_as_the_emulated_version(golden: Golden) -> None:
    new = "EtcdRangeStream=true"
    assert not gates(new, V137)
    golden(*gates(new, V137, V136))
    locked = "NodeDeclaredFeatures=false"
    assert not gates(locked, V137, V136)
    golden(*gates(locked, V137))


def test_a_gate_that_the_binary_does_not_know_ends_it_whatever_it_emulates() -> None:
    assert not gates("APIServerTracing=true", V136)
    assert gates("APIServerTracing=true", V137, V136)


def test_alpha_is_refused_while_a_version_is_emulated(golden: Golden) -> None:
    for value in ("CBORServingAndStorage=true", "AllAlpha=true"):
        assert not gates(value, V137)
        golden(*gates(value, V137, V136))
    assert not gates("CBORServingAndStorage=false,AllAlpha=false", V137, V136)
    apis = given(API, {"runtime-config": "resource.k8s.io/v1alpha3=true,api/beta=true,batch/v1alpha1=false"})
    assert not problems(apis, binary=V137, emulated=V137)
    golden(*problems(apis, binary=V137, emulated=V136))


def test_a_gate_that_came_with_all_its_stages_may_be_set_in_every_emulated_version() -> None:
    assert not gates("AllowServiceExternalIPs=true", V136, V135)
    assert gates("AllowServiceExternalIPs=true", V135)
    assert gates_problem(API, "AllowServiceExternalIPs=true", binary=V136, emulated=V135) == ""


# Flaws of patch releases.


@pytest.mark.parametrize(
    ("kubernetes", "etcd"),
    [("v1.34.1", "3.6.16"), ("v1.34.2", "3.6.16"), ("v1.37.2", "3.5.32"), ("v1.35.0", "3.6.13"), ("v1.36.3", "3.7.0")],
)
def test_known_flaws_are_told_with_the_release_that_has_none(kubernetes: str, etcd: str, golden: Golden) -> None:
    found = flaws(given(API, {}, kubernetes=kubernetes, etcd=etcd))
    assert found
    for each in found:
        golden(each)


@pytest.mark.parametrize(
    ("kubernetes", "etcd"), [("v1.33.6", "3.5.33"), ("v1.34.3", "3.6.14"), ("v1.36.2", "3.7.1"), ("v1.37.0", "3.7.3")]
)
def test_of_a_release_without_known_flaws_nothing_is_told(kubernetes: str, etcd: str) -> None:
    assert flaws(given(API, {}, kubernetes=kubernetes, etcd=etcd)) == ()
