"""The commands of backups and restores: what they ask for, what they say, and what they refuse."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast
from unittest.mock import AsyncMock

import pytest
from support.backup_facts import CHANGES, CREATES, FOUND, FULL, LOSSES, NOTHING_LOST, PLAN, RANGE, VERIFIED
from support.cli_lab import Cli
from support.databases import AT
from support.golden import Golden

from quarterdeck.api.controlplane import new_control_plane
from quarterdeck.app.backup.backups import BackupList, Backups, TakenBackup
from quarterdeck.app.backup.copied_plane import CopyRequest
from quarterdeck.app.backup.copies import Copies, CopyPlan, ForeignBackup
from quarterdeck.app.backup.events import EventsPlan
from quarterdeck.app.backup.objects import BackedUpObject, BackedUpObjects, BringBack
from quarterdeck.app.backup.removal import PlaneBackups
from quarterdeck.app.backup.restores import RestorePlan, Restores
from quarterdeck.backup.kubernetes.object_changes import MomentDifference
from quarterdeck.backup.proof import Proof
from quarterdeck.cli.bring_back_text import bring_back_lines
from quarterdeck.cli.commands import planes
from quarterdeck.errors import Corrupt


@dataclass
class RestoreCalls:
    """What the face was told of restores; ``plan`` is what it plans."""

    plan: RestorePlan = PLAN
    calls: list[tuple[object, ...]] = field(default_factory=list)


COPY = CopyPlan(
    plane=new_control_plane("beta", site="west"),
    of="alpha",
    store="s3://planes",
    revision=1040,
    at=AT,
    proof=PLAN.proof,
    differences=("cloudControllerManager: off",),
    databases=(Path("db"),),
    events=EventsPlan(why="no backup has them"),
    secrets=cast("Any", None),
    contents=(),
)


@pytest.fixture
def copied(monkeypatch: pytest.MonkeyPatch) -> list[tuple[object, ...]]:
    """What the face was told of restores as another plane."""
    calls: list[tuple[object, ...]] = []

    async def plan(
        _: Copies, name: str, asked: CopyRequest, *, to: str, source: ForeignBackup | None, by_replay: bool
    ) -> CopyPlan:
        url = source.url if source is not None else None
        calls.append(("plan", name, asked, to, url, *(["replay"] if by_replay else [])))
        return COPY

    async def start(_: Copies, plan: CopyPlan) -> None:
        calls.append(("start", plan.plane.name))

    async def discard(_: Copies, plan: CopyPlan) -> None:
        calls.append(("discard", plan.plane.name))

    for each in (plan, start, discard):
        monkeypatch.setattr(Copies, each.__name__, each)
    monkeypatch.setattr("quarterdeck.cli.commands.copies.follow", lambda name: calls.append(("follow", name)))
    return calls


@pytest.fixture
def restore_calls(monkeypatch: pytest.MonkeyPatch) -> RestoreCalls:
    made = RestoreCalls()

    async def adopt(_: Restores, name: str, url: str, *, key: Path, options: Path | None = None) -> str:
        made.calls.append(("adopt", name, url, key.name, options.name if options is not None else None))
        return "uid"

    async def plan(_: Restores, name: str, *, to: str, by_replay: bool) -> RestorePlan:
        made.calls.append(("plan", name, to, *(["replay"] if by_replay else [])))
        return made.plan

    async def start(_: Restores, plan: RestorePlan, *, even_if_others_live: bool) -> None:
        made.calls.append(("start", plan.revision, even_if_others_live))

    for each in (adopt, plan, start):
        monkeypatch.setattr(Restores, each.__name__, each)
    monkeypatch.setattr("quarterdeck.cli.work.follow", lambda name: made.calls.append(("follow", name)))
    return made


# --- restore --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options", [("--key", "KEY"), ("--from", "s3://planes"), ("--options-file", "KEY"), ("--key", "KEY", "--dry-run")]
)
def test_options_of_a_lost_home_are_refused_one_without_the_other(
    cli: Cli, restore_calls: RestoreCalls, tmp_path: Path, options: tuple[str, ...], golden: Golden
) -> None:
    cli.plane("alpha")
    key = tmp_path / "backup.key"
    key.write_text("AGE-SECRET-KEY-1HUNTER2\n")
    done = cli.refused("restore", "alpha", *(str(key) if each == "KEY" else each for each in options), code=2)
    assert restore_calls.calls == []
    assert "HUNTER2" not in done.err
    golden(done.err)


def test_a_restore_says_what_is_lost_before_anybody_consents(
    cli: Cli, restore_calls: RestoreCalls, golden: Golden
) -> None:
    cli.plane("alpha")
    asked = cli("restore", "alpha", "--to", "1040")
    assert asked.code == 4, "there is nobody to ask"
    assert restore_calls.calls == [("plan", "alpha", "1040")]
    golden(asked.err)


@pytest.mark.parametrize("seen", [1040, 1041])
def test_without_a_later_revision_nothing_that_was_observed_is_lost(
    cli: Cli, restore_calls: RestoreCalls, seen: int, golden: Golden
) -> None:
    cli.plane("alpha")
    restore_calls.plan = replace(PLAN, seen=seen, proof=None)
    golden(cli("restore", "alpha").err)


def test_a_moment_of_an_earlier_epoch_loses_all_that_came_later(
    cli: Cli, restore_calls: RestoreCalls, golden: Golden
) -> None:
    cli.plane("alpha")
    restore_calls.plan = replace(PLAN, epoch=PLAN.from_epoch + 2, seen=1_000_000_040, proof=None)
    golden(cli("restore", "alpha").err)
    printed = cli("restore", "alpha", "--dry-run", "-o", "json")
    assert '"lostRevisions": null' in printed.out


@pytest.mark.parametrize("even", [False, True])
def test_with_consent_it_begins_and_is_followed(
    cli: Cli, restore_calls: RestoreCalls, even: bool, golden: Golden
) -> None:
    cli.plane("alpha")
    done = cli("restore", "alpha", "--yes", *(("--even-if-others-live",) if even else ()))
    assert done.code == 0
    assert restore_calls.calls == [("plan", "alpha", "latest"), ("start", 1040, even), ("follow", "alpha")]
    golden(done.out)


def test_a_dry_run_begins_nothing_and_its_result_can_be_read_by_programs(
    cli: Cli, restore_calls: RestoreCalls, golden: Golden
) -> None:
    cli.plane("alpha")
    done = cli("restore", "alpha", "--dry-run")
    assert done.code == 0
    golden(done.out)
    result = json.loads(cli("restore", "alpha", "--dry-run", "--output", "json").out)
    assert (result["revision"], result["lostRevisions"], result["epoch"]) == (1040, 12, 1)
    assert restore_calls.calls == [("plan", "alpha", "latest")] * 2


def test_a_plane_whose_home_was_lost_is_brought_back_first_and_its_key_is_never_shown(
    cli: Cli, restore_calls: RestoreCalls, tmp_path: Path, golden: Golden
) -> None:
    cli.plane("alpha")
    key, options = tmp_path / "backup.key", tmp_path / "options"
    key.write_text("AGE-SECRET-KEY-1HUNTER2\n")
    options.write_text("secret_access_key=HUNTER2\n")
    given = ("--from", "s3://planes", "--key", str(key), "--options-file", str(options))
    dry = cli("restore", "alpha", *given, "--dry-run")
    adopted = ("adopt", "alpha", "s3://planes", "backup.key", "options")
    assert (dry.code, restore_calls.calls) == (0, [adopted, ("plan", "alpha", "latest")])
    golden(dry.err)
    golden(dry.out)
    restore_calls.calls.clear()
    done = cli("restore", "alpha", *given, "--yes")
    assert (done.code, restore_calls.calls[0], restore_calls.calls[2]) == (0, adopted, ("start", 1040, False))
    for each in (dry, done):
        assert "HUNTER2" not in each.out + each.err


def test_a_restore_as_another_plane_says_what_is_different_and_is_followed(
    cli: Cli, copied: list[tuple[object, ...]], restore_calls: RestoreCalls, golden: Golden
) -> None:
    cli.plane("alpha")
    done = cli("restore", "alpha", "--as", "beta", "--site", "west", "--to", "1040", "--yes", "-o", "json")
    asked = CopyRequest(name="beta", site="west")
    assert copied == [("plan", "alpha", asked, "1040", None), ("start", "beta"), ("follow", "beta")]
    assert restore_calls.calls == [], "the plane that was backed up is not touched"
    golden(done.err)
    result = json.loads(done.out)
    assert (result["name"], result["copyOf"], result["lostRevisions"]) == ("beta", "alpha", 0)


def test_a_copy_that_nobody_agrees_to_or_that_is_a_dry_run_leaves_nothing(
    cli: Cli, copied: list[tuple[object, ...]], golden: Golden
) -> None:
    cli.plane("alpha")
    refused = cli("restore", "alpha", "--as", "beta")
    assert (refused.code, [each[0] for each in copied]) == (4, ["plan", "discard"]), "there is nobody to ask"
    golden(refused.err)
    copied.clear()
    dry = cli("restore", "alpha", "--as", "beta", "--endpoint", "k9s.example.com", "--dry-run")
    assert dry.code == 0
    assert copied == [
        ("plan", "alpha", CopyRequest(name="beta", endpoint="k9s.example.com"), "latest", None),
        ("discard", "beta"),
    ]
    golden(dry.out)


@pytest.mark.parametrize(
    "options",
    [("--site", "west"), ("--endpoint", "k9s"), ("--external-controllers",), ("--as", "b", "--even-if-others-live")],
)
def test_options_of_another_plane_are_refused_without_it(
    cli: Cli, copied: list[tuple[object, ...]], restore_calls: RestoreCalls, options: tuple[str, ...], golden: Golden
) -> None:
    cli.plane("alpha")
    golden(cli.refused("restore", "alpha", *options, code=2).err)
    assert (copied, restore_calls.calls) == ([], [])


def test_the_help_says_what_going_on_beside_others_is_for(cli: Cli, golden: Golden) -> None:
    words = " ".join(cli("restore", "--help", COLUMNS="1000").out.split())
    assert "--even-if-others-live" in words
    assert "otherwise two clusters take writes" in words


def test_what_is_lost_is_listed_in_objects_for_programs(cli: Cli, restore_calls: RestoreCalls) -> None:
    cli.plane("alpha")
    losses = json.loads(cli("restore", "alpha", "--dry-run", "-o", "json").out)["losses"]
    assert losses["newest"]["revision"] == 1052
    assert losses["podsCreatedLater"] == ["default/web-1", "default/web-0"]
    assert len(losses["objects"]) == 10, "no leases, no events"


def test_objects_that_cannot_be_compared_keep_nobody_from_restoring(
    cli: Cli, restore_calls: RestoreCalls, golden: Golden
) -> None:
    cli.plane("alpha")
    restore_calls.plan = replace(
        PLAN, losses=Corrupt("reading data/9", "its content has changed", "use another backup")
    )
    golden(cli("restore", "alpha").err)
    done = cli("restore", "alpha", "--yes", "--dry-run", "-o", "json")
    assert (done.code, json.loads(done.out)["losses"]) == (0, None)


def test_the_newest_moment_loses_no_object(cli: Cli, restore_calls: RestoreCalls, golden: Golden) -> None:
    cli.plane("alpha")
    restore_calls.plan = replace(PLAN, losses=NOTHING_LOST, seen=1040)
    golden(cli("restore", "alpha", "--dry-run").err)


# --- backup ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("hashed", [True, False])
def test_a_backup_by_hand_says_what_can_be_restored(
    cli: Cli, hashed: bool, monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    async def create(_: Backups, name: str, *, timeout: float) -> TakenBackup:
        assert (name, timeout) == ("alpha", 90.0)
        full = FULL if hashed else FULL.model_copy(update={"hash": None})
        return TakenBackup(
            plane=name, store="s3://planes", revision=1040, full=full, size_bytes=3 << 20, whole_plane=True
        )

    cli.plane("alpha")
    monkeypatch.setattr(Backups, "create", create)
    golden(cli("backup", "create", "alpha", "--timeout", "90s").out)
    result = json.loads(cli("backup", "create", "alpha", "--timeout", "90s", "--output", "json").out)
    assert (result["fullHash"], result["revision"]) == ("0000beef" if hashed else None, 1040)


def test_a_backup_by_hand_says_that_the_keys_are_missing(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    async def create(_: Backups, name: str, *, timeout: float) -> TakenBackup:
        return TakenBackup(
            plane=name, store="s3://planes", revision=1040, full=FULL, size_bytes=3 << 20, whole_plane=False
        )

    cli.plane("alpha")
    monkeypatch.setattr(Backups, "create", create)
    golden(cli("backup", "create", "alpha").out)


def test_the_list_says_of_each_stretch_what_comes_back(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    ranges = [RANGE, replace(RANGE, cluster="events", epoch=1, whole_plane=False)]

    async def listed(_: Backups, name: str) -> BackupList:
        return BackupList(plane=name, store="s3://planes", recipients=(), ranges=tuple(ranges), overdue=tuple(overdue))

    overdue: list[int] = []
    cli.plane("alpha")
    monkeypatch.setattr(Backups, "list", listed)
    golden(cli("backup", "list", "alpha").out)
    overdue += [3 << 20, 1 << 20]
    golden(cli("backup", "list", "alpha").err)
    overdue.clear()
    ranges.clear()
    empty = cli("backup", "list", "alpha")
    golden(empty.out + empty.err)


def test_a_verification_says_what_was_compared(cli: Cli, monkeypatch: pytest.MonkeyPatch, golden: Golden) -> None:
    replays: list[bool] = []

    async def verify(_: Backups, name: str, *, to: str, by_replay: bool) -> Proof:
        assert (name, to) == ("alpha", "1,040")
        replays.append(by_replay)
        return VERIFIED

    cli.plane("alpha")
    monkeypatch.setattr(Backups, "verify", verify)
    golden(cli("backup", "verify", "alpha", "--to", "1,040").out)
    assert cli("backup", "verify", "alpha", "--to", "1,040", "--replay").code == 0
    assert replays == [False, True]


def test_the_key_file_is_named_and_the_private_key_is_not_shown(cli: Cli) -> None:
    done = cli("backup", "key")
    assert done.code == 0
    assert str(cli.home / "backup.key") in done.out
    assert "public key: age1" in done.out
    assert "AGE-SECRET" not in done.out + done.err
    result = json.loads(cli("backup", "key", "--output", "json").out)
    assert result["publicKey"] in done.out


@pytest.fixture
def differing(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Cli:
    async def diff(_: BackedUpObjects, name: str, *, at: str, to: str) -> MomentDifference:
        assert (name, at) == ("alpha", "1040")
        return LOSSES if to == "latest" else NOTHING_LOST

    cli.plane("alpha")
    monkeypatch.setattr(BackedUpObjects, "diff", diff)
    return cli


def test_two_moments_are_compared_in_objects_and_records_of_programs_are_counted(
    differing: Cli, golden: Golden
) -> None:
    for options in ((), ("-o", "wide"), ("-o", "name"), ("--all",), ("--and", "1,052")):
        done = differing("backup", "diff", "alpha", "--at", "1040", *options)
        assert done.code == 0
        golden(done.err)
        golden(done.out)


def test_the_difference_of_two_moments_can_be_read_by_programs(differing: Cli) -> None:
    found, everything = (
        json.loads(differing("backup", "diff", "alpha", "--at", "1040", *options, "-o", "json").out)
        for options in ((), ("--all",))
    )
    assert (len(found["objects"]), found["leftOut"]) == (10, 2)
    assert (len(everything["objects"]), everything["leftOut"]) == (12, 0)
    assert found["before"]["revision"] == 1040
    assert {
        "name": "web-0",
        "change": "changed",
        "recreated": True,
        "resource": "pods",
        "group": None,
        "namespace": "default",
    } in found["objects"]


def test_a_difference_needs_a_moment(differing: Cli) -> None:
    done = differing("backup", "diff", "alpha")
    assert done.code == 2
    assert "--at" in done.err


# --- objects --------------------------------------------------------------------------------------------------------


GET = ("backup", "get", "alpha", "configmap", "default/settings", "--at", "1040")


@dataclass
class Asked:
    """What the face was asked for; ``plan`` is what it plans."""

    plan: BringBack = CREATES
    calls: list[str] = field(default_factory=list)


@pytest.fixture
def asked(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Asked:
    made = Asked()

    async def get(_: BackedUpObjects, name: str, kind: str, object_: str, *, at: str) -> BackedUpObject:
        assert (name, kind, object_, at) == ("alpha", "configmap", "default/settings", "1040")
        made.calls.append("get")
        return FOUND

    async def plan(_: BackedUpObjects, found: BackedUpObject) -> BringBack:
        assert found is FOUND
        made.calls.append("plan")
        return made.plan

    async def bring_back(_: BackedUpObjects, plan: BringBack) -> None:
        assert plan is made.plan
        made.calls.append("bring back")

    cli.plane("alpha")
    for each in (get, plan, bring_back):
        monkeypatch.setattr(BackedUpObjects, each.__name__, each)
    return made


def test_an_object_is_printed_as_yaml_or_json(cli: Cli, asked: Asked, golden: Golden) -> None:
    done = cli(*GET)
    assert (done.code, done.err) == (0, "")
    golden(done.out)
    assert json.loads(cli(*GET, "-o", "json").out) == FOUND.document
    assert asked.calls == ["get", "get"], "nothing is brought back"


@pytest.mark.parametrize("plan", [CREATES, CHANGES], ids=["gone", "exists"])
def test_what_bringing_an_object_back_does_is_said_before_anybody_consents(
    cli: Cli, asked: Asked, plan: BringBack, golden: Golden
) -> None:
    asked.plan = plan
    done = cli(*GET, "--apply")
    assert done.code == 4, "there is nobody to ask"
    assert asked.calls == ["get", "plan"]
    golden(done.err)
    done = cli(*GET, "--apply", "--yes")
    assert (done.code, asked.calls[2:]) == (0, ["get", "plan", "bring back"])
    golden(done.out)


def test_an_object_of_which_the_plane_has_all_is_left_alone(cli: Cli, asked: Asked, golden: Golden) -> None:
    asked.plan = replace(CHANGES, changes=())
    done = cli(*GET, "--apply")
    assert (done.code, asked.calls) == (0, ["get", "plan"])
    golden(done.out)


def test_what_was_brought_back_can_be_read_by_programs(cli: Cli, asked: Asked) -> None:
    created = json.loads(cli(*GET, "--apply", "--yes", "-o", "json").out)
    assert (created["action"], created["droppedOwners"]) == ("created", ["Deployment/web"])
    asked.plan = CHANGES
    changed = json.loads(cli(*GET, "--apply", "--yes", "-o", "json").out)
    assert changed["changedFields"] == ["data.lines", "data.text", "data.password"]
    assert (changed["action"], changed["leftFields"], changed["revision"]) == ("changed", ["data.later"], 1040)


def test_a_claim_is_brought_back_with_one_word_on_its_data() -> None:
    claim = replace(FOUND, document={"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "one"}})
    lines = [*bring_back_lines(replace(CREATES, object=claim))]
    assert [each for each in lines if "the data of its volume is not in the backup" in each] == [lines[-1]]


@pytest.mark.parametrize("as_another", [(), ("--as", "beta")], ids=["in place", "as another plane"])
def test_a_replay_is_asked_for_wherever_a_plane_is_restored(
    cli: Cli, restore_calls: RestoreCalls, copied: list[tuple[object, ...]], as_another: tuple[str, ...]
) -> None:
    cli.plane("alpha")
    assert cli("restore", "alpha", *as_another, "--replay", "--dry-run").code == 0
    (first, *_) = (*restore_calls.calls, *copied)
    assert (first[0], first[-1]) == ("plan", "replay")


@pytest.fixture
def deletable(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Plane alpha, which is deleted at once, and its backups."""
    cli.plane("alpha")
    found = PlaneBackups(url="s3://planes", folder="alpha/uid", options={}, objects=1234, size_bytes=5 << 20)
    monkeypatch.setattr(planes, "_work", lambda *_, **__: None)
    monkeypatch.setattr(Backups, "stored", AsyncMock(return_value=found))
    return cli


def test_backups_are_deleted_with_a_plane_only_if_that_is_asked_for(
    deletable: Cli, monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    deleted = AsyncMock()
    monkeypatch.setattr(Backups, "delete", deleted)
    golden(deletable.refused("delete", "alpha", "--with-backups", code=4).err)
    golden(deletable.refused("delete", "alpha", "--with-backups", "--detach", "--yes", code=2).err)
    assert deletable("delete", "alpha", "--yes").code == 0
    deleted.assert_not_awaited()
    assert deletable("delete", "alpha", "--with-backups", "--yes").code == 0
    deleted.assert_awaited_once()
