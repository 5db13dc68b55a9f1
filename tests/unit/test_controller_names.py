"""The names of controllers: which version has which, and what a program says of itself."""

from __future__ import annotations

import pytest
from support.golden import Golden

from quarterdeck.api.plane.controllers import ControllerProgram
from quarterdeck.api.values import DEFAULT_KUBERNETES_VERSION
from quarterdeck.components.controller.names import (
    ALWAYS_KUBE,
    CLOUDS_ALONE,
    KUBE_OFF,
    MINORS,
    NODE_IPAM,
    TOKENS,
    Listed,
    canonical,
    enabled,
    has,
    names_of,
    parse_help,
    suggested,
)
from quarterdeck.components.upstream_versions import minor
from quarterdeck.errors import PreconditionFailed

KUBE, CLOUD = ControllerProgram.KUBE, ControllerProgram.CLOUD
V136 = (1, 36)

#: As a stock program of k8s.io/cloud-provider 0.36 prints it, with a controller that is off.
HELP = """
Generic flags:

      --controller-start-interval duration   Interval between starting controller managers.
      --controllers strings                  A list of controllers to enable. '*' enables all on-by-default \
controllers, 'foo' enables the controller named 'foo', '-foo' disables the controller named 'foo'.
                                             All controllers: cloud-node-controller, node-ipam-controller, tagging
                                             Disabled-by-default controllers: tagging (default [*])
      --leader-elect                         Start a leader election client (default true)
"""


def test_each_minor_version_has_the_names_of_its_own() -> None:
    assert [len(names_of(KUBE, each)) for each in MINORS] == [49, 50, 50, 52, 49]
    assert {*names_of(KUBE, (1, 34))} - {*names_of(KUBE, (1, 33))} == {"podcertificaterequest-cleaner-controller"}
    assert names_of(KUBE, (1, 35)) == names_of(KUBE, (1, 34))
    assert {*names_of(KUBE, (1, 36))} - {*names_of(KUBE, (1, 35))} == {
        "podgroup-protection-controller",
        "resourcepoolstatusrequest-controller",
    }
    assert {*names_of(KUBE, (1, 36))} - {*names_of(KUBE, (1, 37))} == CLOUDS_ALONE
    for each in MINORS:
        assert {ALWAYS_KUBE, NODE_IPAM, *KUBE_OFF} <= {*names_of(KUBE, each)}
        assert len(names_of(CLOUD, each)) == 4
    assert TOKENS < KUBE_OFF


def test_the_version_that_planes_have_by_default_is_known() -> None:
    assert minor(DEFAULT_KUBERNETES_VERSION) in MINORS


@pytest.mark.parametrize("manager", ControllerProgram)
def test_a_version_whose_names_nobody_knows_is_refused_with_those_that_are_known(
    manager: ControllerProgram, golden: Golden
) -> None:
    with pytest.raises(PreconditionFailed) as refused:
        names_of(manager, (1, 38))
    golden(refused.value)


def test_a_kube_controller_manager_has_what_it_lists_but_for_what_it_never_runs() -> None:
    assert has(KUBE, V136, NODE_IPAM)
    assert not has(KUBE, V136, "service-lb-controller")
    assert not has(KUBE, V136, "cloud-node-controller")
    assert has(KUBE, V136, "podgroup-protection-controller")
    assert not has(KUBE, (1, 35), "podgroup-protection-controller")


def test_a_cloud_controller_manager_has_what_it_says_and_may_have_anything_if_it_does_not_say() -> None:
    says = Listed(("cloud-node-controller", "tagging"))
    assert has(CLOUD, V136, "tagging", says)
    assert not has(CLOUD, V136, NODE_IPAM, says)
    assert has(CLOUD, V136, NODE_IPAM)
    assert has(CLOUD, V136, "cloud-node-controller")
    assert not has(CLOUD, V136, "tagging")


@pytest.mark.parametrize(
    ("short", "name"),
    [
        ("nodeipam", NODE_IPAM),
        ("nodelifecycle", "node-lifecycle-controller"),
        ("service", "service-lb-controller"),
        ("route", "node-route-controller"),
        ("cloud-node", "cloud-node-controller"),
        ("cloud-node-lifecycle", "cloud-node-lifecycle-controller"),
        ("attachdetach", "persistentvolume-attach-detach-controller"),
        ("serviceaccount-token", ALWAYS_KUBE),
        ("svm", "storage-version-migrator-controller"),
        (NODE_IPAM, NODE_IPAM),
        ("tagging", "tagging"),
    ],
)
def test_a_short_name_stands_for_a_canonical_one(short: str, name: str) -> None:
    assert canonical(short) == name


def test_no_name_is_short_for_another_one() -> None:
    every = {*names_of(KUBE, V136), *names_of(CLOUD, V136)}
    assert {canonical(each) for each in every} == every


def test_what_was_probably_meant_is_a_short_names_own_or_the_nearest() -> None:
    known = names_of(KUBE, V136)
    assert suggested("nodeipam", known) == NODE_IPAM
    assert suggested("node-ipam-contoller", known) == NODE_IPAM
    assert suggested("job", ("cronjob-controller", "daemonset-controller")) == ""
    assert suggested("xyzzy", known) == ""


@pytest.mark.parametrize(
    ("flag", "on"),
    [
        ("*", True),
        ("", False),
        ("job-controller", False),
        ("node-ipam-controller", True),
        ("nodeipam", True),
        ("*,-node-ipam-controller", False),
        ("-nodeipam,*", False),
        ("-node-ipam-controller,node-ipam-controller", False),
        ("node-ipam-controller,-node-ipam-controller", True),
        ("*,-node-lifecycle-controller", True),
    ],
)
def test_flags_turn_controllers_on_and_off_as_upstream_reads_them(flag: str, on: bool) -> None:
    assert enabled(flag, NODE_IPAM, KUBE_OFF) is on


@pytest.mark.parametrize(("flag", "on"), [("*", False), ("*,tokencleaner", True), ("token-cleaner-controller", True)])
def test_what_is_off_by_itself_runs_where_it_is_named(flag: str, on: bool) -> None:
    assert enabled(flag, "token-cleaner-controller", KUBE_OFF) is on


def test_a_program_says_what_it_has() -> None:
    listed = parse_help(HELP)
    assert listed == Listed(("cloud-node-controller", "node-ipam-controller", "tagging"), frozenset({"tagging"}))
    nothing_off = HELP.replace("controllers: tagging (", "controllers:  (")
    assert parse_help(nothing_off) == Listed(("cloud-node-controller", "node-ipam-controller", "tagging"))


def test_lines_that_were_broken_for_a_terminal_are_read_as_well() -> None:
    listed = parse_help(HELP.replace("node-ipam-controller, ", "\n          node-ipam-controller,\n     "))
    assert listed is not None
    assert listed.names == ("cloud-node-controller", "node-ipam-controller", "tagging")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "usage: ccm [--controllers LIST]",
        HELP.replace("All controllers", "Every controller"),
        HELP.replace("cloud-node-controller, node-ipam-controller, tagging", ""),
        HELP.replace("cloud-node-controller", "see the manual"),
    ],
)
def test_a_program_that_does_not_say_so_as_upstreams_do_has_said_nothing(text: str) -> None:
    assert parse_help(text) is None
