"""Which manager runs a controller under which lock, and how a set goes from one to the other without two running it."""

from __future__ import annotations

from itertools import pairwise
from pathlib import PurePosixPath

import yaml
from hypothesis import given
from hypothesis import strategies as st
from support.templates import template, units_of

from quarterdeck.api.controlplane import ExtraArgs
from quarterdeck.api.plane.controllers import CloudControllerManager, ControllerProgram, ControllerSetSpec
from quarterdeck.api.revision import ControllerSetTemplate, Guard, ReplicaTemplate
from quarterdeck.components.controller.sets import at_rest, lock_of
from quarterdeck.components.transitions.ways import apart, way
from quarterdeck.model.components import Component

IPAM, LIFE = "node-ipam-controller", "node-lifecycle-controller"
KUBE, CLOUD = ControllerProgram
#: The last minor version whose kube-controller-manager can hold a migration lock, and one that cannot.
OLD, NEW = "v1.35.4", "v1.36.3"


def one_set(owner: ControllerProgram, *controllers: str, name: str = "ipam") -> ControllerSetSpec:
    return ControllerSetSpec(name=name, lock=f"{name}-migration", controllers=controllers or (IPAM,), owner=owner)


def held(owner: ControllerProgram, guard: Guard) -> ReplicaTemplate:
    return clouded(controller_sets=(ControllerSetTemplate(**one_set(owner).model_dump(), guard=guard),))


def plain(**changes: object) -> ReplicaTemplate:
    return template(**{"kubernetes_version": OLD, **changes})


def clouded(flags: dict[str, str] | None = None, **changes: object) -> ReplicaTemplate:
    cloud = CloudControllerManager(program=PurePosixPath("/opt/ccm"), flags=flags or {})
    return plain(cloud_controller_manager=cloud, **changes)


def guards(each: ReplicaTemplate, name: str = IPAM) -> tuple[str, str]:
    return lock_of(each, KUBE, name), lock_of(each, CLOUD, name)


def flag(each: ReplicaTemplate, component: Component, name: str) -> str:
    """The value of a flag of a unit; "" if it has none."""
    return next((arg.split("=", 1)[1] for arg in units_of(each)[component].argv if arg.startswith(f"--{name}=")), "")


def config_of(each: ReplicaTemplate, component: Component) -> dict[str, object]:
    files = {file.path.name: file.content for file in units_of(each)[component].files}
    found: dict[str, object] = yaml.safe_load(files["leader-migration.yaml"])
    return found


def test_of_one_owner_the_first_set_is_under_its_own_lock_and_the_others_under_its_main_one() -> None:
    sets = (one_set(KUBE), one_set(CLOUD, LIFE, name="life"), one_set(KUBE, "ttl-controller", name="ttl"))
    rested = clouded(controller_sets=at_rest(sets, OLD))
    assert [each.guard is Guard.SET for each in rested.controller_sets or ()] == [True, True, False]
    assert guards(rested) == ("ipam-migration", "")
    assert guards(rested, LIFE) == ("", "life-migration")
    assert guards(rested, "ttl-controller") == ("kube-controller-manager", "")


def test_what_nobody_has_declared_runs_as_flags_say() -> None:
    assert guards(plain()) == ("kube-controller-manager", "")
    assert guards(clouded()) == ("kube-controller-manager", "cloud-controller-manager")
    off = ExtraArgs.model_validate({"kubeControllerManager": {"controllers": f"*,-{IPAM}"}})
    assert guards(clouded(extra_args=off)) == ("", "cloud-controller-manager")
    assert guards(clouded({"controllers": LIFE})) == ("kube-controller-manager", "")


def test_the_owner_alone_is_told_of_the_lock_and_the_other_one_has_the_controllers_turned_off() -> None:
    kube, cloud = Component.CONTROLLER_MANAGER, Component.CLOUD_CONTROLLER_MANAGER
    for owner, other, has in ((kube, cloud, held(KUBE, Guard.SET)), (cloud, kube, held(CLOUD, Guard.SET))):
        assert config_of(has, owner) == {
            "apiVersion": "controllermanager.config.k8s.io/v1",
            "kind": "LeaderMigrationConfiguration",
            "leaderName": "ipam-migration",
            "controllerLeaders": [{"name": IPAM, "component": str(owner)}],
        }
        assert flag(has, owner, "enable-leader-migration") == "true"
        assert f"-{IPAM}" not in flag(has, owner, "controllers")
        assert flag(has, other, "enable-leader-migration") == "", "it would take the lock, and run nothing under it"
        assert f"-{IPAM}" in flag(has, other, "controllers").split(",")


def test_a_set_that_is_not_locked_runs_under_the_main_lock_of_its_owner() -> None:
    has = held(CLOUD, Guard.MANAGER)
    assert flag(has, Component.CLOUD_CONTROLLER_MANAGER, "leader-migration-config") == ""
    assert f"-{IPAM}" in flag(has, Component.CONTROLLER_MANAGER, "controllers")


def test_what_a_user_says_of_controllers_stays_beside_what_sets_turn_off() -> None:
    named = ExtraArgs.model_validate({"kubeControllerManager": {"controllers": "*,-ttl-controller"}})
    has = held(CLOUD, Guard.SET).model_copy(update={"extra_args": named, "node_bootstrap": None})
    assert flag(has, Component.CONTROLLER_MANAGER, "controllers") == f"-{IPAM},*,-ttl-controller"


def test_two_managers_may_run_a_controller_under_one_lock_alone() -> None:
    before, after = plain(), held(CLOUD, Guard.MANAGER)
    under_lock, moved = held(KUBE, Guard.SET), held(CLOUD, Guard.SET)
    assert [apart(*each) for each in pairwise((before, under_lock, moved, after))] == [False] * 3
    assert apart(before, moved)
    assert apart(under_lock, after)
    assert apart(before, after)


def test_a_move_of_a_set_that_has_its_lock_takes_one_step_and_one_that_has_none_gets_it_first() -> None:
    assert way(held(KUBE, Guard.SET), held(CLOUD, Guard.SET)) == ()
    (between,) = way(plain(), held(CLOUD, Guard.SET))
    assert guards(between) == ("ipam-migration", "")
    assert between.model_copy(update={"controller_sets": None}) == clouded(), "all else is as it is to be at once"


def test_where_both_may_have_run_it_the_cloud_controller_manager_is_told_first_that_it_is_not_to() -> None:
    found = way(clouded(), held(CLOUD, Guard.SET))
    assert [guards(each) for each in found] == [("kube-controller-manager", ""), ("ipam-migration", "")]


def test_where_a_manager_can_hold_no_migration_lock_nobody_runs_the_set_for_a_moment() -> None:
    kube, cloud = (
        clouded(controller_sets=at_rest([one_set(each)], NEW), kubernetes_version=NEW) for each in ControllerProgram
    )
    assert (guards(kube), guards(cloud)) == ((KUBE.value, ""), ("", "ipam-migration"))
    for before, after in ((kube, cloud), (cloud, kube)):
        (between,) = way(before, after)
        assert guards(between) == ("", "")
        for component in (Component.CONTROLLER_MANAGER, Component.CLOUD_CONTROLLER_MANAGER):
            assert f"-{IPAM}" in flag(between, component, "controllers").split(",")


def test_sets_move_one_after_another_since_a_manager_has_one_migration_lock() -> None:
    start = clouded(controller_sets=at_rest((one_set(KUBE), one_set(KUBE, LIFE, name="life")), OLD))
    goal = clouded(controller_sets=at_rest((one_set(CLOUD), one_set(CLOUD, LIFE, name="life")), OLD))
    line = (start, *way(start, goal), goal)
    assert not any(apart(*each) for each in pairwise(line))
    kube, cloud = KUBE.value, CLOUD.value
    assert [(guards(each), guards(each, LIFE)) for each in line] == [
        (("ipam-migration", ""), (kube, "")),
        (("", "ipam-migration"), (kube, "")),
        (("", cloud), ("life-migration", "")),
        (("", cloud), ("", "life-migration")),
        (("", "ipam-migration"), ("", cloud)),
    ]


NAMES = ("ttl-controller", "job-controller", "namespace-controller")


@st.composite
def templates(draw: st.DrawFn, *, rests: bool) -> ReplicaTemplate:
    """A template with some of three sets, as declared, or as one between may have them."""
    sets = tuple(
        one_set(draw(st.sampled_from(ControllerProgram)), name, name=name[0]) for name in NAMES if draw(st.booleans())
    )
    turned_off = {
        manager: ",".join(("*", *(f"-{each}" for each in NAMES if draw(st.integers(0, 3)) == 0)))
        for manager in ControllerProgram
    }
    kube = ExtraArgs.model_validate({"kubeControllerManager": {"controllers": turned_off[KUBE]}})
    clouds = draw(st.booleans()) or any(each.owner is CLOUD for each in sets)
    made = clouded({"controllers": turned_off[CLOUD]}) if clouds else plain()
    version = draw(st.sampled_from((OLD, NEW)))
    held_by = at_rest(sets, version)
    if not rests:
        guards_of = {each.name: (each.guard, Guard.MANAGER, Guard.NONE) for each in held_by}
        held_by = tuple(
            each.model_copy(update={"guard": draw(st.sampled_from(guards_of[each.name]))}) for each in held_by
        )
    return made.model_copy(
        update={"controller_sets": held_by or None, "extra_args": kube, "kubernetes_version": version}
    )


@given(templates(rests=False), templates(rests=True))
def test_from_whatever_runs_to_whatever_is_declared_no_two_neighbours_must_be_kept_apart(
    start: ReplicaTemplate, goal: ReplicaTemplate
) -> None:
    line = (start, *way(start, goal), goal)
    assert not any(apart(*each) for each in pairwise(line))
    for each in line[1:]:
        for owner in ControllerProgram:
            assert sum(one.guard is Guard.SET and one.owner is owner for one in each.controller_sets or ()) <= 1
