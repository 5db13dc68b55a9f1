"""The audit logs that replicas leave behind."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from fakes.endpoint import FakeDns
from fakes.etcd import FakeEtcd
from fakes.etcd_cluster import FakeCluster
from fakes.kube import FakeKube
from fakes.site import FakeSite
from fakes.store import MemoryStore
from support.components import programs_in
from support.templates import declared_alone

from quarterdeck.actions.audit import delete_audit_logs, forget_old_audit_logs
from quarterdeck.actions.plane import Plane
from quarterdeck.actions.volumes import audit_volumes, replica_settings
from quarterdeck.api.controlplane import ControlPlaneStatus, new_control_plane
from quarterdeck.api.plane.memory import memory_to_status
from quarterdeck.components.ports import seat_at
from quarterdeck.model.components import Component
from quarterdeck.model.memory import Memory, Replica
from quarterdeck.model.seats import Slot
from quarterdeck.pki.issuance import create_plane_secrets
from quarterdeck.sites.local.settings import LocalSiteSettings, LocalStorageClass

DAY = 86_400.0
NOW = 1_800_000_000.0
HERE, LEFT = "east-a1", "east-b1"


@pytest.fixture
def site() -> FakeSite:
    classes = {"standard": LocalStorageClass(), "fast": LocalStorageClass()}
    return FakeSite(LocalSiteSettings(name="east", storage_classes=classes))


@pytest.fixture
async def plane(site: FakeSite) -> Plane:
    """A plane with a replica on one machine; on another there was one."""
    slot = Slot(site="east", zone="a")
    seat = seat_at(HERE, "127.0.0.1", 0)
    memory = Memory(replicas=(Replica(name="demo-1", machine=HERE, slot=slot, seat=seat, storage_class="fast"),))
    resource = new_control_plane("demo", site="east")
    metadata = resource.metadata.model_copy(update={"uid": "u1"})
    status = ControlPlaneStatus(port_offset=0, memory=memory_to_status(memory))
    return Plane(
        resource=resource.model_copy(update={"metadata": metadata, "status": status}),
        store=MemoryStore(),
        guard=None,
        sites={"east": site},
        machines={("east", each.name): each for each in await site.machines()},
        etcd=FakeEtcd(FakeCluster()),
        kube=FakeKube(),
        balancers={},
        dns=FakeDns(),
        revisions=declared_alone(resource),
        secrets=create_plane_secrets("demo", datetime.now(UTC)),
        programs=programs_in("/programs"),
        clock=lambda: NOW,
        steady=lambda: NOW,
        boot="boot-1",
    )


async def logs(site: FakeSite, machine: str) -> list[str]:
    return [each.name for each in await site.volumes(machine)]


async def leave_log(plane: Plane, site: FakeSite, machine: str, *, days_ago: float) -> None:
    await site.create_volume(machine, audit_volumes(plane), "standard")
    site.put_file(machine, audit_volumes(plane), "audit.log", 100, at=NOW - days_ago * DAY)


async def test_a_log_outlives_its_replica_and_goes_when_it_is_too_old(plane: Plane, site: FakeSite) -> None:
    await leave_log(plane, site, LEFT, days_ago=29)
    await forget_old_audit_logs(plane)
    assert await logs(site, LEFT) == ["demo-audit-u1"]
    await leave_log(plane, site, LEFT, days_ago=31)
    await site.create_volume(LEFT, "demo-other", "standard")
    await forget_old_audit_logs(plane)
    assert await logs(site, LEFT) == ["demo-other"]


async def test_a_log_of_a_seat_that_the_plane_has_left_goes_with_age_too(plane: Plane, site: FakeSite) -> None:
    await leave_log(plane, site, HERE, days_ago=400)
    for name, days_ago in (("demo-audit-u1-6453", 31), ("demo-audit-u1-6463", 29), ("demo-audit-u11", 400)):
        await site.create_volume(HERE, name, "standard")
        site.put_file(HERE, name, "audit.log", 100, at=NOW - days_ago * DAY)
    await forget_old_audit_logs(plane)
    assert await logs(site, HERE) == ["demo-audit-u1", "demo-audit-u1-6463", "demo-audit-u11"]
    await delete_audit_logs(plane)
    assert await logs(site, HERE) == ["demo-audit-u11"]


async def test_the_log_of_a_seat_in_use_is_its_apiservers_own_affair(plane: Plane, site: FakeSite) -> None:
    await leave_log(plane, site, HERE, days_ago=400)
    await forget_old_audit_logs(plane)
    assert await logs(site, HERE) == ["demo-audit-u1"]


async def test_a_machine_that_does_not_answer_holds_nobody_up(plane: Plane, site: FakeSite) -> None:
    await leave_log(plane, site, LEFT, days_ago=31)
    await site.kill_machine(LEFT)
    await forget_old_audit_logs(plane)
    await delete_audit_logs(plane)
    await site.boot_machine(LEFT)
    assert await logs(site, LEFT) == ["demo-audit-u1"]


async def test_a_deleted_plane_takes_all_its_logs_along_and_nobody_elses(plane: Plane, site: FakeSite) -> None:
    for machine in (HERE, LEFT):
        await leave_log(plane, site, machine, days_ago=0)
    await site.create_volume(LEFT, "demo-audit-u2", "standard")
    await delete_audit_logs(plane)
    assert await logs(site, HERE) == []
    assert await logs(site, LEFT) == ["demo-audit-u2"]


async def test_the_log_is_on_the_sites_first_class_or_where_it_was_made(plane: Plane, site: FakeSite) -> None:
    """The member's own volume may be of another class, and sites may change the order of theirs."""
    (record,) = plane.memory.replicas
    settings = await replica_settings(plane, record, Component.APISERVER)
    assert settings.audit is not None
    assert settings.audit.parts[-2:] == ("standard", "demo-audit-u1")
    assert settings.volume.parts[-2:] == ("fast", "demo-demo-1")
    await site.delete_volume(HERE, audit_volumes(plane))
    await site.create_volume(HERE, audit_volumes(plane), "fast")
    settings = await replica_settings(plane, record, Component.APISERVER)
    assert settings.audit is not None
    assert settings.audit.parts[-2:] == ("fast", "demo-audit-u1")


async def test_a_disk_that_only_the_log_is_on_keeps_no_member_from_starting(plane: Plane, site: FakeSite) -> None:
    (record,) = plane.memory.replicas
    await replica_settings(plane, record, Component.ETCD)
    assert await logs(site, HERE) == ["demo-demo-1"], "its class is not even asked"
