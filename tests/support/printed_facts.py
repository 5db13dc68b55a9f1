"""Answers for commands whose facts come from planes, hosts and programs that run: one of each kind, by the books."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from model.stories import serving

from quarterdeck.api.base import Metadata
from quarterdeck.api.belongings import Drill, DrillPhase, DrillSpec, DrillStatus
from quarterdeck.api.controlplane import new_control_plane
from quarterdeck.api.operation import OperationType
from quarterdeck.api.plane.controllers import ControllerProgram
from quarterdeck.app import (
    Disarming,
    Examined,
    LostQuorum,
    MemberHash,
    MemberRemoval,
    NewToken,
    NodeFacts,
    Programs,
    Quarterdeck,
    ReplicaFacts,
    Scale,
    SetHeld,
    Survivor,
    TokenFacts,
    Verification,
    changes,
)
from quarterdeck.app.backup.backups import BackupList, Backups, TakenBackup
from quarterdeck.app.backup.objects import BackedUpObjects
from quarterdeck.app.backup.restores import Restores
from quarterdeck.app.drains import Drain
from quarterdeck.app.etcd.care import EtcdCare
from quarterdeck.app.etcd.failover import LostSite
from quarterdeck.app.looks import Looks
from quarterdeck.app.nodes import WorkerNodes
from quarterdeck.app.plane_status import summary
from quarterdeck.app.plane_watch import WatchedPlane
from quarterdeck.app.site.sites import Sites, Used
from quarterdeck.cli.commands import services
from quarterdeck.engine.background.certificates import Decided
from quarterdeck.engine.preflight.upgrades import UpgradeOption
from quarterdeck.engine.status import Leader, Status
from quarterdeck.engine.workspace import recorded
from quarterdeck.engine.workspace.home import Home
from quarterdeck.etcd.facts import AlarmKind
from quarterdeck.handover.acts import Act
from quarterdeck.handover.judgement import Gap, Overlap, SetTenure, SetVerdict, UnguardedWrite
from quarterdeck.handover.tenures import Tenure
from quarterdeck.model.clusters import Cluster
from quarterdeck.model.components import Component
from quarterdeck.model.faults import Fail
from quarterdeck.model.findings import Checked, Finding, HostFinding, Promise, Verdict
from quarterdeck.model.units import Machine
from quarterdeck.planner.planner import plan
from quarterdeck.stores.port import Event, EventType
from quarterdeck.upstream.catalog import UpstreamProgram
from support.backup_facts import CHANGES, FOUND, FULL, LOSSES, PLAN, RANGE, VERIFIED
from support.cli_lab import Cli
from support.fake_face import books

NOON = datetime(2027, 1, 15, 12, tzinfo=UTC)
AT = NOON.timestamp()
KUBE, CLOUD = ControllerProgram
LEADERS = {Component.SCHEDULER: Leader("east-1", "vm_1f")}
CHECKED = Checked(
    findings=(HostFinding("cp-1", Finding("disk", Verdict.WARN, "9 GiB are free", "free some")),), summary="1 host"
)
REPLICA = ReplicaFacts(
    name="east-1",
    site="east",
    zone="a",
    machine="east-a1",
    revision="r1",
    current=True,
    condemned=False,
    member="leader",
    health="healthy",
    ready=True,
    since=AT,
    cordoned="cordoned by ann",
)
SURVIVOR = Survivor(
    replica="east-1", machine="east-a1", term=2, committed=9, applied=9, revision=7, hash=255, chosen=True
)
LOST = LostQuorum(
    name="demo",
    epoch=1,
    survivors=(SURVIVOR,),
    loss="nothing is known to be lost",
    dead=("east-2",),
    cut_off=("east-3",),
    others_may_live=False,
)
LOST_SITE = LostSite(
    name="demo",
    epoch=1,
    to="west",
    replica="west-4",
    machine="west-a1",
    revision=7,
    seen=9,
    loss="etcd revisions 8 to 9",
    dead=("east-1", "east-2", "east-3"),
    cut_off=(),
    others_may_live=False,
)
HELD = SetHeld(
    name="ipam",
    lock="ipam-migration",
    controllers=("node-ipam-controller",),
    owner=CLOUD,
    guarded_by="ipam-migration",
    manager=CLOUD,
    replica="east-1",
    identity="vm_1f",
    since=NOON,
    renewed_ago=1.4,
    transitions=3,
    why=("the clock is off",),
    well=True,
)
_TENURE = Tenure(lock="ipam", component=KUBE.value, replica="east-1", holder="vm_1f", token=1, begins=AT)
_ACT = Act(
    controllers=("node-ipam-controller",),
    component=KUBE,
    replica="east-1",
    begun=AT,
    at=AT,
    verb="patch",
    object="nodes/n-1",
)
VERIFICATION = Verification(
    plane="demo",
    operation="",
    since=NOON,
    until=NOON + timedelta(hours=1),
    verdicts=(
        SetVerdict(
            name="ipam",
            lock="ipam",
            controllers=("node-ipam-controller",),
            since=AT,
            until=AT + 3600,
            slack=0.05,
            holders=(SetTenure(tenure=_TENURE, begins=AT, ends=None, acts=1),),
            gaps=(Gap(begins=AT, ends=AT + 1),),
            overlaps=(Overlap(begins=AT, ends=AT + 2, first="one", second="two", what="both held it"),),
            outside=(UnguardedWrite(act=_ACT, after="two"),),
            acts=1,
            perhaps=0,
            unwatched=(),
            unknown=("an audit log is gone",),
        ),
    ),
)
DRILL = Drill(
    metadata=Metadata(name="demo-drill-1"),
    spec=DrillSpec(plane="demo", number=1, fail=Fail.UNIT, struck=("the apiserver of east-1",), hold=30.0),
    status=DrillStatus(
        phase=DrillPhase.FAILED,
        started_at=NOON,
        finished_at=NOON,
        detected=1.5,
        requests=9,
        failed=1,
        failures=("GET /healthz: cut",),
        longest_stall_milliseconds=250.0,
        message="a request failed",
        left=("a volume",),
    ),
)
TOKEN = NewToken(
    id="abcdef",
    token="abcdef.0123456789abcdef",
    ends=NOON,
    server="https://demo:6443",
    hash="sha256:00",
    command="kubeadm join",
    kubeconfig="",
)


def install(patch: pytest.MonkeyPatch, cli: Cli) -> None:
    """Have commands get these answers."""
    _looks(patch)
    _changes(patch)
    _places(patch)

    async def event(home: Home) -> None:
        await home.store.record(
            Event(plane="demo", type=EventType.WARNING, reason="NoQuorum", message="none answers", first=AT, last=AT)
        )

    cli.with_store(event)
    patch.setattr(services, "_RUNS", cli.folder)
    for name in ("_systemctl", "_call"):
        patch.setattr(services, name, lambda *_, **__: None)
    patch.setenv("XDG_CONFIG_HOME", str(cli.folder / "config"))


def answer(value: object) -> Callable[..., Awaitable[object]]:
    """A call that has this answer, whatever it is asked."""

    async def answered(*_: object, **__: object) -> object:
        return value

    return answered


def _looks(patch: pytest.MonkeyPatch) -> None:
    async def watching(*_: object, **__: object) -> AsyncIterator[tuple[WatchedPlane, ...]]:
        yield (WatchedPlane(name="demo", facts=summary(status), trouble="it is away"),)

    world = serving()
    plane = new_control_plane("demo", site="east")
    status = Status(plane=plane, world=world, plan=plan(world), operation=None, driver="", leaders=LEADERS)
    patch.setattr(Looks, "examine", answer(status))
    patch.setattr(Looks, "watching", watching)
    patch.setattr(Looks, "replicas", answer((REPLICA,)))
    patch.setattr(Looks, "lost_quorum", answer(LOST))
    patch.setattr(Looks, "lost_site", answer(LOST_SITE))
    patch.setattr(Looks, "controllers", answer((HELD,)))
    patch.setattr(Looks, "verify", answer(VERIFICATION))
    patch.setattr(Looks, "drills", answer((DRILL,)))
    hashes = MemberHash(cluster="etcd", replica="east-1", revision=7, hash=255, same=None)
    patch.setattr(Looks, "compare", answer((hashes,)))


def _changes(patch: pytest.MonkeyPatch) -> None:
    async def planned(face: Any, *_: object) -> Examined:
        return await changes.planned(face._home, face._engine, Scale("demo", 5))

    async def nothing(*_: object, **__: object) -> None: ...

    async def carry_out(face: Any, name: str, *_: object, **__: object) -> None:
        if await recorded.current(face._home.store, name) is not None:
            await books(face._home, name)

    patch.setattr(Quarterdeck, "carry_out", carry_out)
    patch.setattr(Quarterdeck, "recover", nothing)
    _backups(patch)
    patch.setattr(Quarterdeck, "drain", nothing)
    patch.setattr(Quarterdeck, "tidy", nothing)
    patch.setattr(Quarterdeck, "cordon", answer(True))
    patch.setattr(Quarterdeck, "uncordon", answer(False))
    patch.setattr(
        Quarterdeck,
        "plan_drill",
        answer(SimpleNamespace(hold=1.0, struck=(), dangers=(), require=lambda dangerous: None)),
    )
    patch.setattr(Quarterdeck, "drill", answer(DRILL))
    wanted = new_control_plane("demo", site="east")
    drain = Drain(site="east", machine="east-a1", planes=(Examined(kind=OperationType.REPLACE, wanted=wanted),))
    patch.setattr(Quarterdeck, "plan_drain", answer(drain))
    patch.setattr(Quarterdeck, "left_to_drain", answer(("other/east-9",)))
    for commands in ("controllers", "upgrades"):
        patch.setattr(f"quarterdeck.cli.commands.{commands}.planned", _synchronous(planned))
    option = UpgradeOption(
        program="kubernetes",
        version="v1.37.2",
        parts=("v1.37.2",),
        supported_until=date(2027, 10, 28),
        findings=(),
    )
    patch.setattr(Quarterdeck, "upgrade_options", answer((option,)))
    removal = MemberRemoval(plane="demo", member=0x77, description="voter 77", voters=3, healthy=3)
    patch.setattr(EtcdCare, "plan_member_removal", answer(removal))
    patch.setattr(EtcdCare, "remove_member", nothing)
    disarming = Disarming(plane="demo", alarms=((Cluster.MAIN, AlarmKind.NOSPACE),))
    patch.setattr(EtcdCare, "plan_disarming", answer(disarming))
    patch.setattr(EtcdCare, "disarm", nothing)
    patch.setattr(EtcdCare, "fail_over", nothing)
    patch.setattr(EtcdCare, "disable_authentication", nothing)


def _backups(patch: pytest.MonkeyPatch) -> None:
    taken = TakenBackup(plane="demo", store=PLAN.store, revision=1040, full=FULL, size_bytes=7, whole_plane=True)
    found = BackupList(plane="demo", store=PLAN.store, recipients=("age1x",), ranges=(RANGE,))

    async def nothing(*_: object, **__: object) -> None: ...

    patch.setattr(Backups, "create", answer(taken))
    patch.setattr(Backups, "list", answer(found))
    patch.setattr(Backups, "verify", answer(VERIFIED))
    patch.setattr(BackedUpObjects, "diff", answer(LOSSES))
    patch.setattr(BackedUpObjects, "get", answer(FOUND))
    patch.setattr(BackedUpObjects, "plan", answer(CHANGES))
    patch.setattr(BackedUpObjects, "bring_back", nothing)
    patch.setattr(Restores, "plan", answer(replace(PLAN, plane="demo")))
    patch.setattr(Restores, "start", nothing)


def _synchronous(planned: Callable[..., Awaitable[Examined]]) -> Callable[..., Examined]:
    from quarterdeck.cli.open_home import call

    return lambda *_, **__: call(planned)


def _places(patch: pytest.MonkeyPatch) -> None:
    async def promises(*_: object) -> AsyncIterator[Promise]:
        yield Promise(words="a volume is made")

    node = NodeFacts(name="n-1", ready=None, schedulable=True, version="v1", addresses=("10.0.0.9",), since=NOON)
    patch.setattr(WorkerNodes, "list", answer((node,)))
    patch.setattr(WorkerNodes, "approve", answer((Decided("csr-1", "n-1", "it is not its own"),)))
    patch.setattr(WorkerNodes, "make_token", answer(TOKEN))
    patch.setattr(WorkerNodes, "delete_token", answer(None))
    tokens = (TokenFacts(id="abcdef", ends=None, uses=("signing",), description="for rack 7"),)
    patch.setattr(WorkerNodes, "tokens", answer(tokens))
    machine = Machine(name="east-a1", site="east", zone="a", address="127.0.0.9")
    patch.setattr(Sites, "machines", answer((Used(machine=machine, replica="demo/east-1", cordoned="by ann"),)))
    patch.setattr(Sites, "check", answer(CHECKED))
    patch.setattr(Sites, "test_storage", promises)
    for name in ("add_hosts", "replace_host"):
        patch.setattr(Sites, name, answer(CHECKED))
    for name in ("require_spare", "remove_host", "forget"):
        patch.setattr(Sites, name, answer(None))
    patch.setattr(Sites, "require_forgettable", answer(()))
    patch.setattr(Programs, "fetch", answer({UpstreamProgram.ETCD: Path("/cache/etcd")}))
