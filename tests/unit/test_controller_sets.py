"""Which controller sets may be declared, and which changes of them: each refusal in its one line."""

from __future__ import annotations

import time
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from support.golden import Golden
from support.resources import with_spec

from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.plane.controllers import ControllerProgram
from quarterdeck.components.controller.names import Listed
from quarterdeck.engine.controller_sets import declarations as controllers
from quarterdeck.engine.controller_sets.declarations import admit_controllers, admit_sets, listed_by, warnings_of
from quarterdeck.errors import InvalidInput, PreconditionFailed
from quarterdeck.model.findings import Verdict

KUBE, CLOUD = ControllerProgram.KUBE.value, ControllerProgram.CLOUD.value
IPAM, SERVICE, JOB = "node-ipam-controller", "service-lb-controller", "job-controller"
#: What the program says of itself where a test does not say otherwise.
STOCK = Listed(("cloud-node-controller", "node-route-controller", SERVICE, IPAM))


def one(owner: str = KUBE, *names: str, name: str = "nodes", lock: str = "nodes-migration") -> dict[str, Any]:
    return {"name": name, "lock": lock, "controllers": list(names or (IPAM,)), "owner": owner}


def plane(
    *sets: dict[str, Any],
    cloud: dict[str, str] | None = None,
    kube: dict[str, str] | None = None,
    server: dict[str, str] | None = None,
    **spec: Any,
) -> ControlPlane:
    """A plane with these sets. ``cloud``: the flags of its cloud controller manager (None: it has none); ``kube``,
    ``server``: those of kube-controller-manager and kube-apiserver.
    """
    declared: dict[str, Any] = {
        "placement": {"site": "east"},
        "controllerSets": list(sets),
        "extraArgs": {"kubeControllerManager": kube or {}, "kubeApiserver": server or {}},
        **spec,
    }
    if cloud is not None:
        declared["cloudControllerManager"] = {"program": "/opt/ccm", "flags": cloud}
    return ControlPlane.model_validate({"metadata": {"name": "demo"}, "spec": declared}, strict=False)


def refusal(
    wanted: ControlPlane, current: ControlPlane | None = None, says: Listed | None = STOCK, *, later: bool = False
) -> str:
    """What is said of sets that may not be. ``later``: that they cannot come now."""
    with pytest.raises(PreconditionFailed if later else InvalidInput) as refused:
        admit_sets(wanted, current, says)
    line = str(refused.value)
    assert "\n" not in line
    return line


# Names


@pytest.mark.parametrize("owner", [KUBE, CLOUD])
@pytest.mark.parametrize("says", [STOCK, None])
def test_a_set_of_what_both_have_may_have_either_owner(owner: str, says: Listed | None) -> None:
    admit_sets(plane(one(owner), cloud={}), None, says)


def test_a_plane_without_sets_has_nothing_to_be_refused() -> None:
    flags = {"enable-leader-migration": "true", "feature-gates": "CoordinatedLeaderElection=true"}
    admit_sets(plane(kube=flags, kubernetesVersion="1.38.0"), None)
    admit_sets(plane(kube=flags, kubernetesVersion="1.38.0"), plane())


def test_a_short_name_is_refused_with_the_canonical_one(golden: Golden) -> None:
    golden(refusal(plane(one(KUBE, "nodeipam"), cloud={})))


@pytest.mark.parametrize("name", ["serviceaccount-token-controller", "serviceaccount-token"])
@pytest.mark.parametrize("owner", [KUBE, CLOUD])
def test_the_one_that_always_runs_under_a_main_lock_is_in_no_set(owner: str, name: str, golden: Golden) -> None:
    golden(refusal(plane(one(owner, JOB, name), cloud={}), says=None))


def test_an_unknown_name_is_refused_with_the_nearest(golden: Golden) -> None:
    sets = (one(name="first", lock="first"), one(KUBE, JOB, "node-lifecycle-controler"))
    golden(refusal(plane(*sets), says=None))
    golden(refusal(plane(one(KUBE, "xyzzy")), says=None))


def test_a_name_that_came_later_is_none_of_an_older_version(golden: Golden) -> None:
    sets = one(KUBE, "podgroup-protection-controller")
    admit_sets(plane(sets), None)
    golden(refusal(plane(sets, kubernetesVersion="1.35.6"), says=None))


def test_a_version_whose_names_are_not_known_has_no_sets(golden: Golden) -> None:
    golden(refusal(plane(one(), kubernetesVersion="1.38.0"), later=True))
    golden(refusal(plane(one(), kubernetesVersion="1.38.0"), plane(one()), later=True))


def test_what_a_kube_controller_manager_only_lists_it_does_not_own(golden: Golden) -> None:
    golden(refusal(plane(one(KUBE, SERVICE), cloud={})))
    admit_sets(plane(one(CLOUD, SERVICE), cloud={}), None, STOCK)


def test_an_owner_has_all_controllers_as_its_program_says(golden: Golden) -> None:
    golden(refusal(plane(one(CLOUD, IPAM), cloud={}), says=Listed((SERVICE, "node-ipam-allocator"))))
    admit_sets(plane(one(CLOUD, "tagging"), cloud={}), None, Listed(("tagging",)))


def test_of_a_program_that_does_not_say_what_it_has_all_that_upstream_has_is_believed(golden: Golden) -> None:
    admit_sets(plane(one(CLOUD, SERVICE, JOB), cloud={}), None, None)
    golden(refusal(plane(one(CLOUD, "cloud-nodes-controller"), cloud={}), says=None))


def test_what_another_program_could_not_be_told_to_turn_off_needs_no_set(golden: Golden) -> None:
    golden(refusal(plane(one(KUBE, IPAM, JOB), cloud={})))
    admit_sets(plane(one(KUBE, IPAM, JOB), cloud={}), None, None)
    admit_sets(plane(one(KUBE, IPAM, JOB)), None)


def test_names_are_looked_at_again_when_what_they_depend_on_changes(golden: Golden) -> None:
    current = plane(one(CLOUD, "tagging"), cloud={})
    admit_sets(plane(one(CLOUD, "tagging"), cloud={}, replicas=5), current, None)
    golden(refusal(plane(one(CLOUD, "tagging"), cloud={"v": "2"}), current, None))
    newer = plane(one(CLOUD, "tagging"), cloud={}, kubernetesVersion="1.35.6")
    golden(refusal(newer, current, None))


# Owners


def test_an_owner_is_a_manager_that_there_is(golden: Golden) -> None:
    golden(refusal(plane(one(CLOUD)), says=None))


@pytest.mark.parametrize(
    ("owner", "flags"),
    [
        (KUBE, {"kube": {"controllers": "*,-nodeipam"}, "cloud": {}}),
        (CLOUD, {"cloud": {"controllers": "*,-nodeipam"}}),
    ],
)
def test_an_owner_has_nothing_of_a_set_turned_off(owner: str, flags: dict[str, Any], golden: Golden) -> None:
    golden(refusal(plane(one(owner), **flags)))
    other = CLOUD if owner == KUBE else KUBE
    admit_sets(plane(one(other), **flags), None, STOCK)


def test_what_is_off_by_itself_is_named_at_its_owner(golden: Golden) -> None:
    program = Listed((IPAM, "tagging"), frozenset({"tagging"}))
    golden(refusal(plane(one(CLOUD, "tagging"), cloud={}), says=program))
    admit_sets(plane(one(CLOUD, "tagging"), cloud={"controllers": "*,tagging"}), None, program)
    warner = one(KUBE, "selinux-warning-controller")
    golden(refusal(plane(warner), says=None))
    admit_sets(plane(warner, kube={"controllers": "selinux-warning-controller,*"}), None)


def test_those_of_tokens_run_where_nodes_join_by_them(golden: Golden) -> None:
    tokens = one(KUBE, "bootstrap-signer-controller", "token-cleaner-controller")
    admit_sets(plane(tokens), None)
    golden(refusal(plane(tokens, nodes={"bootstrap": False}), says=None))


# Flags


@pytest.mark.parametrize("flag", ["enable-leader-migration", "leader-migration-config"])
@pytest.mark.parametrize(
    "manager",
    [KUBE, CLOUD],
)
def test_nobody_else_says_what_is_under_which_lock(manager: str, flag: str, golden: Golden) -> None:
    given = {flag: "false"}
    golden(refusal(plane(one(), cloud=given if manager == CLOUD else {}, kube=given if manager == KUBE else {})))


@pytest.mark.parametrize(
    "flags",
    [
        {"kube": 0},
        {"cloud": 0},
        {"server": 0},
    ],
)
@pytest.mark.parametrize(
    "value",
    ["CoordinatedLeaderElection=true", "A=false,kube:CoordinatedLeaderElection=True", "AllBeta=true,A=false"],
)
def test_locks_are_taken_and_not_granted(flags: dict[str, int], value: str, golden: Golden) -> None:
    gates: dict[str, Any] = {each: {"feature-gates": value} for each in flags}
    golden(refusal(plane(one(), **gates)))


@pytest.mark.parametrize(
    "value",
    [
        "CoordinatedLeaderElection=false",
        "AllBeta=true,CoordinatedLeaderElection=false",
        "ControllerManagerReleaseLeaderElectionLockOnExit=true",
    ],
)
def test_gates_that_leave_locks_alone_may_be_on(value: str) -> None:
    gates = {"feature-gates": value}
    admit_sets(plane(one(), kube=gates, cloud=gates, server=gates), None, STOCK)


@pytest.mark.parametrize(
    ("kube", "cloud"),
    [
        ({}, {"leader-elect-lease-duration": "8s", "leader-elect-renew-deadline": "5s"}),
        ({"leader-elect-lease-duration": "1m", "leader-elect-renew-deadline": "15s"}, {}),
        ({"leader-elect-lease-duration": "10.9s", "leader-elect-renew-deadline": "10.5s"}, None),
    ],
)
def test_no_manager_takes_a_lock_that_the_other_still_holds(
    kube: dict[str, str], cloud: dict[str, str] | None, golden: Golden
) -> None:
    golden(refusal(plane(one(), kube=kube, cloud=cloud)))


def test_managers_may_differ_in_their_timing_where_that_is_safe(golden: Golden) -> None:
    slow = {"leader-elect-lease-duration": "1m30s", "leader-elect-renew-deadline": "14s500ms"}
    admit_sets(plane(one(), kube=slow, cloud={}), None, STOCK)
    golden(refusal(plane(one(), kube={"leader-elect-lease-duration": "15"})))


# Changes


def test_what_a_set_has_never_changes(golden: Golden) -> None:
    current = plane(one(KUBE, IPAM, JOB))
    golden(refusal(plane(one(KUBE, IPAM)), current, later=True))
    golden(refusal(plane(one(KUBE, IPAM, JOB, lock="other")), current, later=True))
    admit_sets(plane(one(KUBE, JOB, IPAM)), current, STOCK)


@pytest.mark.parametrize(("before", "after"), [(KUBE, CLOUD), (CLOUD, KUBE)])
def test_a_change_of_owner_is_a_move(before: str, after: str) -> None:
    cidrs = {"allocate-node-cidrs": "true"}
    admit_sets(plane(one(after), kube=cidrs, cloud=cidrs), plane(one(before), kube=cidrs, cloud=cidrs), STOCK)


def test_a_cloud_controller_manager_that_owns_something_stays(golden: Golden) -> None:
    current = plane(one(CLOUD), cloud={})
    for wanted in (plane(one(KUBE)), plane(one(CLOUD)), plane()):
        golden(refusal(wanted, current, None, later=True))
    admit_sets(plane(one(KUBE)), plane(one(KUBE), cloud={}), None)


@pytest.mark.parametrize(
    ("owner", "other"),
    [
        (KUBE, CLOUD),
        (CLOUD, KUBE),
    ],
)
def test_a_set_goes_when_no_other_manager_would_begin_to_run_it(owner: str, other: str, golden: Golden) -> None:
    cidrs = {"allocate-node-cidrs": "true"}
    current = plane(one(owner, IPAM, "node-lifecycle-controller"), kube=cidrs, cloud=cidrs)
    says = Listed((IPAM, "node-lifecycle-controller"))
    golden(refusal(plane(kube=cidrs, cloud=cidrs), current, says, later=True))
    for turned_off in ("-node-ipam-controller,-nodelifecycle,*", "service-lb-controller"):
        flags = {"kube": cidrs, "cloud": cidrs}
        flags["cloud" if other == CLOUD else "kube"] = {**cidrs, "controllers": turned_off}
        admit_sets(plane(**flags), current, says)


def test_a_set_goes_where_there_is_no_other_manager_or_it_does_not_have_them() -> None:
    admit_sets(plane(), plane(one(KUBE, JOB)), None)
    admit_sets(plane(cloud={}), plane(one(CLOUD, SERVICE), cloud={}), STOCK)
    admit_sets(plane(cloud={}), plane(one(KUBE, IPAM), cloud={}), STOCK)  # it gives no nodes their networks


def test_of_a_program_that_does_not_say_what_it_has_it_is_taken_that_it_would_run_them(golden: Golden) -> None:
    golden(refusal(plane(cloud={}), plane(one(KUBE, JOB), cloud={}), None, later=True))


@pytest.mark.parametrize(("owner", "runner"), [(CLOUD, KUBE), (KUBE, CLOUD)])
def test_a_new_set_may_be_declared_with_either_owner_since_it_is_handed_over_like_any_other(
    owner: str, runner: str
) -> None:
    cidrs = {"allocate-node-cidrs": "true"}
    flags = {"cloud" if runner == CLOUD else "kube": cidrs}
    current, wanted = (plane(*sets, **{"cloud": {}, **flags}) for sets in ((), (one(owner),)))
    admit_sets(wanted, current, STOCK)


def test_a_controller_does_not_change_hands_by_going_to_another_set(golden: Golden) -> None:
    current = plane(one(KUBE), cloud={})
    renamed = one(CLOUD, name="others", lock="others")
    golden(refusal(plane(renamed, cloud={}), current, later=True))
    admit_sets(plane(one(KUBE, name="others", lock="others"), cloud={}), current, STOCK)


# Warnings


def test_more_sets_than_a_manager_can_have_under_locks_of_their_own_are_told_of(golden: Golden) -> None:
    every = [one(KUBE, each, name=each, lock=each) for each in (IPAM, JOB, "ttl-controller")]
    assert warnings_of(plane(*every[:2]).spec) == ()
    (found,) = warnings_of(plane(*every).spec)
    assert found.verdict is Verdict.WARN
    golden(found.seen)


# The program is asked


SAYS = """#!/bin/sh
test "$1" = --help || exit 3
echo "$@" >> "$(dirname "$0")/asked"
echo "      --controllers strings   All controllers: service-lb-controller, node-ipam-controller"
echo "                              Disabled-by-default controllers:  (default [*])"
"""


def script(folder: Path, text: str = SAYS) -> Path:
    path = folder / "ccm"
    path.write_text(text)
    path.chmod(0o755)
    return path


def of_program(path: Path, *sets: dict[str, Any], **spec: Any) -> ControlPlane:
    made = plane(*sets, cloud={}, **spec)
    cloud = made.spec.cloud_controller_manager
    assert cloud is not None
    named = cloud.model_copy(update={"program": PurePosixPath(path)})
    return with_spec(made, cloud_controller_manager=named)


async def test_a_program_is_asked_what_it_has(tmp_path: Path) -> None:
    assert await listed_by(script(tmp_path)) == Listed((SERVICE, IPAM))
    assert await listed_by(script(tmp_path, SAYS.replace("echo ", "echo >&2 "))) == Listed((SERVICE, IPAM))


@pytest.mark.parametrize("text", ["#!/bin/sh\nexit 1\n", "#!/nowhere/sh\n", "#!/bin/sh\necho usage: none\n"])
async def test_of_one_that_does_not_say_it_nothing_is_known(tmp_path: Path, text: str) -> None:
    assert await listed_by(script(tmp_path, text)) is None
    assert await listed_by(tmp_path / "none") is None


async def test_one_that_takes_no_end_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controllers, "_HELP_DEADLINE", 0.2)
    began = time.monotonic()
    assert await listed_by(script(tmp_path, "#!/bin/sh\nsleep 600\n")) is None
    assert time.monotonic() - began < 60


async def test_it_is_asked_when_something_of_it_or_of_the_sets_changes(tmp_path: Path, golden: Golden) -> None:
    program = script(tmp_path)
    none, some = of_program(program), of_program(program, one())
    with golden.raises(InvalidInput):
        await admit_controllers(of_program(program, one(KUBE, JOB)), None)
    asked = tmp_path / "asked"
    for wanted, current, times in ((none, None, 0), (some, some, 0), (some, none, 1), (none, some, 1)):
        asked.write_text("")
        await admit_controllers(wanted, current)
        assert asked.read_text().count("--help") == times
    await admit_controllers(plane(one()), None)
