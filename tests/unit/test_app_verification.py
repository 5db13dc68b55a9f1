"""What ``controllers verify`` finds: with real files on the machines of a site of this host."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path, PurePosixPath

import pytest
from pydantic import JsonValue
from support.cli_lab import Cli
from support.golden import Golden
from support.lock_histories import CCM, CLOUD_AGENT, KCM, LOCK, SET, ZERO, line
from support.resources import with_spec, with_status
from support.small_plane import small_plane

from quarterdeck.actions.audit import Placed
from quarterdeck.api.controlplane import ControlPlane, new_control_plane
from quarterdeck.api.operation import OperationPhase, OperationType
from quarterdeck.api.plane.apiserver import Audit
from quarterdeck.api.plane.controllers import ControllerProgram, ControllerSetSpec
from quarterdeck.api.plane.memory import memory_to_status
from quarterdeck.app.verification import assignments_of, placed, verified
from quarterdeck.components.ports import seat_at
from quarterdeck.engine.notices.journal import tell_step
from quarterdeck.engine.workspace import operations, recorded
from quarterdeck.engine.workspace.belongings import secrets_of
from quarterdeck.engine.workspace.home import Home
from quarterdeck.engine.workspace.operations import Requester
from quarterdeck.errors import NotFound, PreconditionFailed
from quarterdeck.handover.judgement import Judgement
from quarterdeck.model.memory import Memory, Replica
from quarterdeck.model.seats import Slot
from quarterdeck.model.steps.placement import PlaceReplica, ReleaseReplica
from quarterdeck.model.steps.units import AdoptRevision
from quarterdeck.stores.port import EntryOutcome, JournalEntry

ASKER = Requester(name="a test")
CLOUD: dict[str, JsonValue] = {"user": {"username": "system:cloud-controller-manager"}, "userAgent": CLOUD_AGENT}
MACHINES = {"demo-1": "east-a1", "demo-2": "east-b1"}
OPERATION_ENDS = 60.0


def owned(owner: ControllerProgram) -> tuple[ControllerSetSpec, ...]:
    return (SET.model_copy(update={"owner": owner}),)


async def handed_over(home: Home, audit: Audit | None = None) -> str:
    """A plane of two replicas whose set went from one manager to the other; the operation's name."""
    made = new_control_plane("demo", site="east")
    before = with_spec(made, controller_sets=owned(KCM), audit=audit)
    await operations.create(home, before, ASKER)
    now = await home.store.get(ControlPlane, "demo")
    await secrets_of(home.store, now)
    replicas = tuple(
        Replica(
            name=name,
            slot=Slot(site="east", zone=at[5]),
            machine=at,
            seat=seat_at(at, "127.0.0.1", 0),
            revision=now.status.revision,
        )
        for name, at in MACHINES.items()
    )
    now = await home.store.update(with_status(now, memory=memory_to_status(Memory(replicas=replicas))))
    wanted = with_spec(now, controller_sets=owned(CCM))
    operation = await operations.change(home, wanted, OperationType.APPLY, ASKER)
    times = {"started_at": at(0), "finished_at": at(OPERATION_ENDS), "phase": OperationPhase.SUCCEEDED}
    done = await home.store.update(with_status(operation, **times))
    return done.metadata.name


def at(seconds: float) -> datetime:
    return datetime.fromtimestamp(ZERO + seconds, UTC)


async def held(home: Home, operation: str) -> None:
    """Who held which lock: kube-controller-manager of demo-1 its own until 10, that of demo-2 the set's from 11."""
    locks = (
        (KCM.value, KCM, "demo-1", -100.0, 10.0, 0),
        (KCM.value, KCM, "demo-2", 10.5, None, 1),
        (CCM.value, CCM, "demo-2", -50.0, None, 0),
        (LOCK, CCM, "demo-2", 11.25, None, 0),
    )
    revision = (await home.store.get(ControlPlane, "demo")).status.revision
    for replica in MACHINES:
        await add_entry(home, operation, 10.25, "adopt-revision", {"revision": revision}, replica=replica)
    for lock, component, replica, begins, ends, token in locks:
        known: dict[str, JsonValue] = {"lock": lock, "holder": f"{replica}_{component}", "token": token}
        holder = {"component": component.value, "replica": replica, "acquired": ZERO + begins}
        await add_entry(home, operation, max(begins, 0.0), "LockTaken", {**known, **holder})
        if ends is not None:
            left: dict[str, JsonValue] = {**known, "renewed": ZERO + ends - 1, "duration": 15.0, "released": True}
            await add_entry(home, operation, ends, "LockLeft", left)


async def add_entry(
    home: Home, operation: str, seconds: float, kind: str, detail: dict[str, JsonValue], *, replica: str = ""
) -> None:
    entry = JournalEntry(
        plane="demo", time=ZERO + seconds, kind=kind, text=kind, operation=operation, detail=detail, replica=replica
    )
    await home.store.append(entry)


async def wrote(home: Home, replica: str, *lines: str) -> None:
    """An apiserver's audit log."""
    site = home.sites.open(await home.site("east"))
    plane = await home.store.get(ControlPlane, "demo")
    volume = await site.create_volume(MACHINES[replica], f"demo-audit-{plane.metadata.uid}", "standard")
    log = Path(volume.path, "audit.log")
    log.write_text("".join(f"{each}\n" for each in lines))
    os.utime(log, (ZERO + 100, ZERO + 100))


async def a_good_one(home: Home, audit: Audit | None = None) -> str:
    operation = await handed_over(home, audit)
    await held(home, operation)
    await wrote(home, "demo-1", line(1.0), line(9.5), line(70.0))
    await wrote(home, "demo-2", line(12.0, **CLOUD), line(13.0, **CLOUD, verb="get"))
    return operation


@pytest.fixture
async def home(tmp_path: Path):
    made = await Home.open(tmp_path / "home")
    yield made
    await made.close()


async def test_a_good_hand_over_is_proven_for_the_time_of_its_operation(home: Home) -> None:
    operation = await a_good_one(home)
    found = await verified(home, "demo", since=None, operation=None)
    assert (found.finding, found.operation) == (Judgement.PROVEN, operation)
    assert (found.since, found.until) == (at(0), at(OPERATION_ENDS))
    (only,) = found.verdicts
    assert [(each.tenure.description, each.tenure.lock, each.acts) for each in only.holders] == [
        ("kube-controller-manager of demo-1", KCM.value, 2),
        ("cloud-controller-manager of demo-2", LOCK, 1),
    ]
    assert [gap.seconds for gap in only.gaps] == [1.25]


async def test_a_log_that_is_gone_leaves_nothing_proven(home: Home, golden: Golden) -> None:
    operation = await handed_over(home)
    await held(home, operation)
    await wrote(home, "demo-1", line(1.0))
    found = await verified(home, "demo", since=None, operation=operation)
    assert found.finding is Judgement.UNKNOWN
    golden(found.verdicts[0].unknown)


async def test_half_a_line_leaves_nothing_proven(home: Home, golden: Golden) -> None:
    operation = await a_good_one(home)
    await wrote(home, "demo-1", line(1.0)[:-5])
    found = await verified(home, "demo", since=None, operation=operation)
    golden(found.verdicts[0].unknown)


async def test_without_an_operation_that_handed_anything_over_the_last_hour_is_looked_at(home: Home) -> None:
    operation = await a_good_one(home)
    stored = {each.metadata.name: each for each in await recorded.operations_of(home.store, "demo")}
    found = await verified(home, "demo", since=timedelta(minutes=10), operation=None)
    assert (found.operation, found.until - found.since) == ("", timedelta(minutes=10))
    await home.store.delete(type(stored[operation]), operation)
    found = await verified(home, "demo", since=None, operation=None)
    assert (found.operation, found.until - found.since) == ("", timedelta(hours=1))


async def test_an_operation_that_never_began_and_a_plane_without_sets_are_refused(home: Home, golden: Golden) -> None:
    await operations.create(home, new_control_plane("demo", site="east"), ASKER)
    with golden.raises(NotFound):
        await verified(home, "demo", since=None, operation="demo-x")
    with golden.raises(PreconditionFailed):
        await verified(home, "demo", since=None, operation=None)


def test_the_command_shows_who_had_the_set_and_ends_with_what_it_comes_to(cli: Cli, golden: Golden) -> None:
    cli.with_store(a_good_one)
    result = cli("controllers", "verify", "demo")
    assert result.code == 0, result
    golden(result.out)
    assert result.out.split("ACTS")[1].split()[1:4] == ["kube-controller-manager", "of", "demo-1"]
    golden(result.err)
    document = json.loads(cli("controllers", "verify", "demo", "-o", "json").out)
    assert (document["finding"], document["sets"][0]["gaps"][0]["durationSeconds"]) == ("no overlap", 1.25)


def test_a_policy_that_leaves_out_what_controllers_do_proves_nothing(cli: Cli, tmp_path: Path, golden: Golden) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: None, verbs: [patch]}]\n")
    cli.with_store(lambda home: a_good_one(home, Audit(policy_file=PurePosixPath(policy))))
    result = cli("controllers", "verify", "demo")
    assert result.code == 6
    golden(result.err)


def test_clocks_may_be_said_to_be_further_apart(cli: Cli) -> None:
    cli.with_store(a_good_one)
    cli.with_store(lambda home: wrote(home, "demo-1", line(10.2)))
    assert cli("controllers", "verify", "demo").code == 1
    result = cli("controllers", "verify", "demo", "--slack", "300ms")
    assert (result.code, "differ by up to 300 ms" in result.err) == (0, True)


def test_the_command_ends_with_one_where_it_found_something_and_with_six_where_it_cannot_tell(
    cli: Cli, golden: Golden
) -> None:
    cli.with_store(a_good_one)
    cli.with_store(lambda home: wrote(home, "demo-1", line(1.0), line(30.0)))
    result = cli("controllers", "verify", "demo")
    assert result.code == 1
    golden(result.out)
    golden(result.err)
    cli.with_store(lambda home: wrote(home, "demo-1", '{"user": {"username": "system:kube-controller-manager"}'))
    result = cli("controllers", "verify", "demo")
    assert (result.code, "undecided" in result.out) == (6, True)
    cli.refused("controllers", "verify", "demo", "--since", "soon", code=2, says=("--since", "5m"))
    both = ("--since", "1h", "--operation", "x")
    golden(cli.refused("controllers", "verify", "demo", *both, code=2).err)


async def test_the_journal_says_where_replicas_were_put_and_what_they_were_to_run_from_when_on() -> None:
    plane = (await small_plane()).plane
    common = {"site": "east", "why": "it is wanted", "replica": "east-4"}
    noted = {**common, "site": ""}  # what is only written down touches no site
    put = PlaceReplica(slot=Slot(site="east", zone="a"), machine="east-a2", revision="r1", **noted)
    for step in (put, AdoptRevision(revision="r2", **noted)):
        await tell_step(plane, step, EntryOutcome.FAILED, {})
        await tell_step(plane, step, EntryOutcome.NOTED, {})
    gone = Placed("east-4", "east", "east-a2", at=1000.0)
    assert await placed(plane.store, plane.name) == (gone,)
    found = await assignments_of(plane.store, plane.resource, owned(KCM))
    assert {(each.component, each.since, each.locks) for each in found if each.replica == "east-4"} == {
        (manager.value, 1000.0, None) for manager in ControllerProgram
    }, "neither revision is kept"
    await tell_step(plane, ReleaseReplica(**common), EntryOutcome.DONE, {})
    assert [each.until for each in await placed(plane.store, plane.name)] == [1000.0]
