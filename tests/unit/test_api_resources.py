"""Resources: sites, operations, conditions, secrets, memory and what may be applied over what."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, SecretStr, ValidationError
from support.golden import Golden
from support.resources import with_status

from quarterdeck.api.apply import applied_plane, applied_site
from quarterdeck.api.base import ConditionStatus, Metadata, find_condition, with_condition
from quarterdeck.api.belongings import PlaneSecrets
from quarterdeck.api.conditions import ConditionReason, ConditionType
from quarterdeck.api.controlplane import ControlPlane, OnFailure, Rollout, new_control_plane
from quarterdeck.api.documents import dump_json, dump_yaml, load
from quarterdeck.api.operation import Goal, OperationSpec, OperationType
from quarterdeck.api.plane import memory
from quarterdeck.api.plane.endpoint import EndpointMode
from quarterdeck.api.plane.etcd import Etcd, EtcdUpgrade
from quarterdeck.api.plane.memory import MemoryStatus, memory_from_status, memory_to_status
from quarterdeck.api.plane.upgrade import UpgradeSettings, UpgradeWindow
from quarterdeck.api.site import Site, default_sites
from quarterdeck.errors import Conflict, InvalidInput
from quarterdeck.model import memory as model_memory
from quarterdeck.model.clusters import ClusterMemory, Full, MemberMemory
from quarterdeck.model.components import ReplicaPrograms
from quarterdeck.model.epochs import BackupOrigin, MemberWord, Seed, SurvivorOrigin
from quarterdeck.model.memory import Condemned, KeptData, LeftBehind, Lifetime, Memory, Rejection, Replica, Timeline
from quarterdeck.model.seats import HostPort, Seat, SeatPort, Slot

IDS, TIMES = st.integers(0, 2**64 - 1), st.floats(0, 4e9)
PORTS = st.lists(st.builds(SeatPort, listen=st.builds(HostPort), advertised=st.builds(HostPort)), max_size=2).map(tuple)
FULLS = st.none() | st.builds(Full, since=TIMES, defragmented=st.lists(st.text(), max_size=2).map(tuple))
MOMENTS = st.lists(st.tuples(st.text(), TIMES), max_size=2).map(tuple)


@st.composite
def replicas(draw: st.DrawFn) -> Replica:
    """A replica, whose seat is on its machine."""
    machine = draw(st.text())
    seat = st.none() | st.builds(Seat, machine=st.just(machine), ports=PORTS)
    events = st.none() | st.builds(MemberMemory, epoch=st.integers(0, 9), member_id=IDS)
    made = st.builds(Replica, slot=st.builds(Slot), machine=st.just(machine), member_id=IDS, seat=seat, events=events)
    return draw(made)


ORIGINS = st.builds(SurvivorOrigin, others=st.lists(st.builds(MemberWord)).map(tuple)) | st.builds(BackupOrigin)
MEMORIES = st.builds(
    Memory,
    next_ordinal=st.integers(1, 10**6),
    replicas=st.lists(replicas(), max_size=3).map(tuple),
    bootstrap=st.lists(st.text(), max_size=2).map(tuple),
    created=st.booleans(),
    cluster_id=IDS,
    revision=st.integers(0, 2**63 - 1),
    served_site=st.none() | st.text(),
    **dict.fromkeys(("held", "draining", "unready", "down", "healed", "unhealthy", "revived"), MOMENTS),
    condemned=st.lists(st.builds(Condemned, since=TIMES, alone=st.booleans()), max_size=2).map(tuple),
    timeline=st.none() | st.builds(Timeline, ahead=TIMES),
    unsettled=st.lists(st.text(), max_size=2).map(tuple),
    rejected=st.none() | st.builds(Rejection),
    proven=st.booleans(),
    longer=st.none() | st.builds(Lifetime, ttl=TIMES, until=st.none() | TIMES),
    events=st.builds(ClusterMemory, cluster_id=IDS, full=FULLS),
    full=FULLS,
    epoch=st.integers(0, 9),
    seed=st.none() | st.builds(Seed, origin=ORIGINS, restored=st.booleans()),
    kept=st.lists(st.builds(KeptData), max_size=2).map(tuple),
    quorum_lost=st.none() | TIMES,
    left=st.lists(st.builds(LeftBehind), max_size=2).map(tuple),
)


@given(MEMORIES)
def test_memory_comes_back_from_its_document_as_it_was(made: Memory) -> None:
    text = memory_to_status(made).model_dump_json(exclude_none=True)
    assert memory_from_status(MemoryStatus.model_validate_json(text)) == made


@pytest.mark.parametrize(("fact", "mirror"), memory._STORED.items(), ids=lambda each: each.__name__)
def test_every_fact_of_the_memory_is_written_down(fact: type, mirror: type[BaseModel]) -> None:
    with_its_replica = {"machine"} if fact is Seat else set()
    assert {field.name for field in dataclasses.fields(fact)} - with_its_replica == set(mirror.model_fields)


def test_every_part_of_the_memory_has_what_is_stored_of_it() -> None:
    parts = {each for each in vars(model_memory).values() if dataclasses.is_dataclass(each)}
    assert parts - {ReplicaPrograms} <= set(memory._STORED), "which programs there are is no part of it"


def test_the_default_sites_are_east_and_west_with_numbers_of_their_own() -> None:
    east, west = default_sites()
    assert (east.name, west.name) == ("east", "west")
    assert east.status.number != west.status.number
    assert east.spec.machines_in(east.spec.zones) >= 6


@pytest.mark.parametrize(
    "spec",
    [
        "zones: []",
        "zones: [a, a]",
        "machinesPerZone: 100",
        "machinesPerZone: 0",
        "storageClasses: []",
        "storageClasses: [{name: a}, {name: a}]",
        "storageClasses: [{name: a, pth: /x}]",
        "floatingAddresses: true",
        "isolation: vm",
        "driver: vm",
        "driver: 5",
    ],
)
def test_a_bad_site_is_refused(spec: str, golden: Golden) -> None:
    head = "apiVersion: quarterdeck.dev/v1alpha1\nkind: Site\nmetadata: {name: north}\n"
    with pytest.raises(InvalidInput) as caught:
        load(f"{head}spec: {{{spec}}}", "x")
    golden(caught.value.seen)


def goal_at_east() -> Goal:
    spec = new_control_plane("a", site="east").spec
    return Goal(placement=spec.placement, replicas=spec.replicas, spec=spec, revision="", addon_manifests="")


def test_a_migration_to_the_site_that_it_leaves_is_refused() -> None:
    goal = goal_at_east()
    with pytest.raises(ValidationError, match="is its current site"):
        OperationSpec(plane="a", type=OperationType.MIGRATE, from_=goal, to=goal)
    with pytest.raises(ValidationError, match="required for Abort"):
        OperationSpec(plane="a", type=OperationType.ABORT)
    assert OperationSpec(plane="a", type=OperationType.DELETE).to is None


def test_an_operation_spells_from_as_people_do() -> None:
    goal = goal_at_east()
    spec = OperationSpec(plane="a", type=OperationType.SCALE, from_=goal, to=goal)
    assert "from" in spec.model_dump()


def test_a_condition_keeps_its_time_until_its_status_changes() -> None:
    ready = ConditionType.READY
    first = with_condition((), ready, ConditionStatus.FALSE, reason=ConditionReason.NOT_UP_TO_DATE, now=1.0)
    same = with_condition(first, ready, ConditionStatus.FALSE, reason=ConditionReason.DEGRADED, now=2.0)
    turned = with_condition(same, ready, ConditionStatus.TRUE, reason=ConditionReason.UP_TO_DATE, now=3.0)
    times = [find_condition(each, "Ready") for each in (first, same, turned)]
    assert [each and each.last_transition_time.timestamp() for each in times] == [1.0, 1.0, 3.0]
    assert [each and each.reason for each in times] == ["NotUpToDate", "Degraded", "UpToDate"]
    assert find_condition(turned, "Other") is None


@pytest.mark.parametrize("show", [repr, str, lambda each: dump_yaml([each]), lambda each: dump_json([each])])
def test_secrets_are_never_shown(show: Callable[[PlaneSecrets], str]) -> None:
    secrets = PlaneSecrets(metadata=Metadata(name="a"), data=SecretStr("PRIVATE KEY"))
    assert "PRIVATE" not in show(secrets)


def changed(plane: ControlPlane, **spec: object) -> ControlPlane:
    document = plane.model_dump(mode="json", exclude_none=True)
    document["spec"] |= spec
    return ControlPlane.model_validate_json(json.dumps(document))


def test_applying_changes_the_users_half_alone() -> None:
    stored = new_control_plane("a", site="east")
    stored = with_status(stored, port_offset=7)
    wanted = changed(new_control_plane("a", site="east"), replicas=5)
    applied = applied_plane(stored, wanted)
    assert applied.spec.replicas == 5
    assert applied.status.port_offset == 7


def test_who_keeps_a_name_in_the_users_own_dns_can_change_and_whom_clients_ask_cannot(golden: Golden) -> None:
    tsig = {"keyName": "k.test", "secretFile": "/key"}
    updated = {
        "mode": "rfc2136",
        "name": "a.x.test",
        "rfc2136": {"server": "192.0.2.53", "zone": "x.test", "tsig": tsig},
    }
    by_hand = {"mode": "unmanaged", "name": "a.x.test"}
    stored = changed(new_control_plane("a", site="east"), endpoint=updated)
    assert applied_plane(stored, changed(stored, endpoint=by_hand)).spec.endpoint.mode is EndpointMode.UNMANAGED
    for other in ({"mode": "hosts", "name": "a.x.test"}, {"mode": "address", "address": "192.0.2.1"}):
        with golden.raises(InvalidInput):
            applied_plane(stored, changed(stored, endpoint=other))


def test_what_clients_hold_on_to_cannot_be_changed_by_applying(golden: Golden) -> None:
    stored = new_control_plane("a", site="east")
    with golden.raises(InvalidInput):
        applied_plane(stored, changed(stored, serviceCidrs=["10.97.0.0/16"], endpoint={"name": "b.example"}))
    # The default name spelled out is the same name.
    applied_plane(stored, changed(stored, endpoint={"name": "a.quarterdeck.internal"}))


@pytest.mark.parametrize(
    "spec",
    [
        {"serviceCidrs": ["10.97.0.0/16"]},
        {"endpoint": {"port": 7443}},
    ],
)
def test_what_cannot_be_changed_is_refused_and_says_why(spec: dict[str, object], golden: Golden) -> None:
    stored = new_control_plane("a", site="east")
    with golden.raises(InvalidInput):
        applied_plane(stored, changed(stored, **spec))


def test_a_second_range_of_service_addresses_can_be_added_and_then_stays(golden: Golden) -> None:
    stored = new_control_plane("a", site="east")
    added = applied_plane(stored, changed(stored, serviceCidrs=["10.96.0.0/16", "fd00::/112"]))
    assert added.spec.service_cidrs == ("10.96.0.0/16", "fd00::/112")
    for ranges in (["10.96.0.0/16"], ["10.96.0.0/16", "fd01::/112"], ["fd00::/112", "10.96.0.0/16"]):
        with golden.raises(InvalidInput):
            applied_plane(added, changed(added, serviceCidrs=ranges))


def test_how_far_an_upgrade_of_etcd_goes_stays_as_it_is_until_another_version_is_named() -> None:
    kept = EtcdUpgrade(keep_one=True)
    stored = new_control_plane("a", site="east").with_spec(etcd=Etcd(version="3.6.12", upgrade=kept))

    def applied(etcd: dict[str, object]) -> Etcd:
        document = {"metadata": {"name": "a"}, "spec": {"placement": {"site": "east"}, "etcd": etcd}}
        return applied_plane(stored, ControlPlane.model_validate(document)).spec.etcd

    assert applied({}).upgrade == applied({"version": "3.6.12"}).upgrade == kept
    assert applied({"version": "3.6.13"}).upgrade is None
    assert applied({"version": "3.6.12", "upgrade": {"keepOne": False}}).upgrade == EtcdUpgrade()


def test_versions_that_a_document_does_not_name_stay_as_they_are() -> None:
    stored = new_control_plane("a", site="east").with_spec(
        kubernetes_version="v1.35.1", etcd=Etcd(version="3.6.12"), upgrade=UpgradeSettings(window=UpgradeWindow.FINAL)
    )
    document = {"metadata": {"name": "a"}, "spec": {"placement": {"site": "east"}, "etcd": {"quotaBytes": 2**32}}}
    applied = applied_plane(stored, ControlPlane.model_validate(document)).spec
    assert (applied.kubernetes_version, applied.etcd.version) == ("v1.35.1", "3.6.12")
    assert applied.upgrade == stored.spec.upgrade
    assert applied.etcd.quota_bytes == 2**32


def test_the_consent_to_an_offline_renewal_stays_where_a_document_says_nothing_of_it() -> None:
    stored = new_control_plane("a", site="east").with_spec(rollout=Rollout(offline_generation=2))
    kept = applied_plane(stored, changed(new_control_plane("a", site="east"), rollout={"onFailure": "Stay"})).spec
    assert (kept.rollout.offline_generation, kept.rollout.on_failure) == (2, OnFailure.STAY)
    withdrawn = changed(new_control_plane("a", site="east"), rollout={"offlineGeneration": 0})
    assert applied_plane(stored, withdrawn).spec.rollout.offline_generation == 0


def test_the_window_of_a_version_stays_with_that_version() -> None:
    final = new_control_plane("a", site="east").with_spec(upgrade=UpgradeSettings(window=UpgradeWindow.FINAL))
    plain = new_control_plane("a", site="east")
    assert applied_plane(final, changed(plain)).spec.upgrade == final.spec.upgrade
    assert applied_plane(final, changed(plain, kubernetesVersion="v1.38.0")).spec.upgrade is None
    raised = applied_plane(final, changed(plain, upgrade={"window": "raised"})).spec.upgrade
    assert raised == UpgradeSettings()


@pytest.mark.parametrize(
    "spec",
    [
        {"etcd": {"quotaBytes": 2**32, "heartbeatMilliseconds": 150, "storageClass": "fast"}},
        {"endpoint": {"ttl": 1}},
        {"encryption": {"secrets": False}},
        {"audit": {"policyFile": "/policy.yaml"}},
        {"extraArgs": {"etcd": {"v": "2"}}},
        {"tracing": {"endpoint": "collector.example:4317"}},
        {"certificates": {"generation": 1}},
    ],
)
def test_what_replicas_are_rendered_from_can_be_changed_and_has_files_read_again(spec: dict[str, object]) -> None:
    stored = new_control_plane("a", site="east")
    stored = with_status(stored, revision="a-1234")
    applied = applied_plane(stored, changed(stored, **spec))
    assert applied.spec != stored.spec
    assert applied.status.revision == ""


def test_applying_an_outdated_document_is_a_conflict(golden: Golden) -> None:
    stored = new_control_plane("a", site="east")
    stored = stored.model_copy(update={"metadata": Metadata(name="a", resource_version="9")})
    wanted = stored.model_copy(update={"metadata": Metadata(name="a", resource_version="8")})
    with golden.raises(Conflict):
        applied_plane(stored, wanted)


def test_a_sites_isolation_cannot_be_changed() -> None:
    east, _ = default_sites()
    netns = Site.model_validate_json('{"metadata": {"name": "east"}, "spec": {"isolation": "netns"}}')
    with pytest.raises(InvalidInput, match=r"spec\.isolation"):
        applied_site(east, netns)
