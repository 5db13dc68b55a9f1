"""The commands of backups and restores: what they ask for, what they say, and what they refuse."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from support.backup_facts import FULL, PLAN, RANGE, VERIFIED
from support.cli_lab import Cli
from support.golden import Golden

from quarterdeck.app.backup.backups import BackupList, Backups, TakenBackup
from quarterdeck.app.backup.restores import RestorePlan, Restores
from quarterdeck.backup.proof import Proof


@dataclass
class Told:
    """What the face was told of restores; ``plan`` is what it plans."""

    plan: RestorePlan = PLAN
    calls: list[tuple[object, ...]] = field(default_factory=list)


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Told:
    made = Told()

    async def adopt(_: Restores, name: str, url: str, *, key: Path, options: Path | None = None) -> str:
        made.calls.append(("adopt", name, url, key.name, options.name if options is not None else None))
        return "uid"

    async def plan(_: Restores, name: str, *, to: str) -> RestorePlan:
        made.calls.append(("plan", name, to))
        return made.plan

    async def start(_: Restores, plan: RestorePlan, *, even_if_others_live: bool) -> None:
        made.calls.append(("start", plan.revision, even_if_others_live))

    for each in (adopt, plan, start):
        monkeypatch.setattr(Restores, each.__name__, each)
    monkeypatch.setattr("quarterdeck.cli.commands.restores.follow", lambda name: made.calls.append(("follow", name)))
    return made


# --- restore --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options", [("--key", "KEY"), ("--from", "s3://planes"), ("--options-file", "KEY"), ("--key", "KEY", "--dry-run")]
)
def test_options_of_a_lost_home_are_refused_one_without_the_other(
    cli: Cli, told: Told, tmp_path: Path, options: tuple[str, ...], golden: Golden
) -> None:
    cli.plane("alpha")
    key = tmp_path / "backup.key"
    key.write_text("AGE-SECRET-KEY-1HUNTER2\n")
    said = cli.refused("restore", "alpha", *(str(key) if each == "KEY" else each for each in options), code=2)
    assert told.calls == []
    assert "HUNTER2" not in said.err
    golden(said.err)


def test_a_restore_says_what_is_lost_before_anybody_consents(cli: Cli, told: Told, golden: Golden) -> None:
    cli.plane("alpha")
    asked = cli("restore", "alpha", "--to", "1040")
    assert asked.code == 4, "there is nobody to ask"
    assert told.calls == [("plan", "alpha", "1040")]
    golden(asked.err)


@pytest.mark.parametrize("seen", [1040, 1041])
def test_without_a_later_revision_nothing_that_was_observed_is_lost(
    cli: Cli, told: Told, seen: int, golden: Golden
) -> None:
    cli.plane("alpha")
    told.plan = replace(PLAN, seen=seen, proof=None)
    golden(cli("restore", "alpha").err)


def test_a_moment_of_an_earlier_epoch_loses_all_that_came_later(cli: Cli, told: Told, golden: Golden) -> None:
    cli.plane("alpha")
    told.plan = replace(PLAN, epoch=PLAN.from_epoch + 2, seen=1_000_000_040, proof=None)
    golden(cli("restore", "alpha").err)
    printed = cli("restore", "alpha", "--dry-run", "-o", "json")
    assert '"lostRevisions": null' in printed.out


@pytest.mark.parametrize("even", [False, True])
def test_with_consent_it_begins_and_is_followed(cli: Cli, told: Told, even: bool, golden: Golden) -> None:
    cli.plane("alpha")
    done = cli("restore", "alpha", "--yes", *(("--even-if-others-live",) if even else ()))
    assert done.code == 0
    assert told.calls == [("plan", "alpha", "latest"), ("start", 1040, even), ("follow", "alpha")]
    golden(done.out)


def test_a_dry_run_begins_nothing_and_its_result_can_be_read_by_programs(cli: Cli, told: Told, golden: Golden) -> None:
    cli.plane("alpha")
    done = cli("restore", "alpha", "--dry-run")
    assert done.code == 0
    golden(done.out)
    result = json.loads(cli("restore", "alpha", "--dry-run", "--output", "json").out)
    assert (result["revision"], result["lostRevisions"], result["epoch"]) == (1040, 12, 1)
    assert told.calls == [("plan", "alpha", "latest")] * 2


def test_a_plane_whose_home_was_lost_is_brought_back_first_and_its_key_is_never_shown(
    cli: Cli, told: Told, tmp_path: Path, golden: Golden
) -> None:
    cli.plane("alpha")
    key, options = tmp_path / "backup.key", tmp_path / "options"
    key.write_text("AGE-SECRET-KEY-1HUNTER2\n")
    options.write_text("secret_access_key=HUNTER2\n")
    given = ("--from", "s3://planes", "--key", str(key), "--options-file", str(options))
    dry = cli("restore", "alpha", *given, "--dry-run")
    adopted = ("adopt", "alpha", "s3://planes", "backup.key", "options")
    assert (dry.code, told.calls) == (0, [adopted, ("plan", "alpha", "latest")])
    golden(dry.err)
    golden(dry.out)
    told.calls.clear()
    done = cli("restore", "alpha", *given, "--yes")
    assert (done.code, told.calls[0], told.calls[2]) == (0, adopted, ("start", 1040, False))
    for said in (dry, done):
        assert "HUNTER2" not in said.out + said.err


def test_the_help_says_what_going_on_beside_others_is_for(cli: Cli, golden: Golden) -> None:
    words = " ".join(cli("restore", "--help", COLUMNS="1000").out.split())
    assert "--even-if-others-live" in words
    assert "otherwise two clusters take writes" in words


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


def test_the_list_says_of_each_stretch_what_comes_back(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    ranges = [RANGE, replace(RANGE, cluster="events", epoch=1, whole_plane=False)]

    async def listed(_: Backups, name: str) -> BackupList:
        return BackupList(plane=name, store="s3://planes", recipients=(), ranges=tuple(ranges))

    cli.plane("alpha")
    monkeypatch.setattr(Backups, "list", listed)
    golden(cli("backup", "list", "alpha").out)
    ranges.clear()
    empty = cli("backup", "list", "alpha")
    golden(empty.out + empty.err)


def test_a_verification_says_what_was_compared(cli: Cli, monkeypatch: pytest.MonkeyPatch, golden: Golden) -> None:
    async def verify(_: Backups, name: str, *, to: str) -> Proof:
        assert (name, to) == ("alpha", "1,040")
        return VERIFIED

    cli.plane("alpha")
    monkeypatch.setattr(Backups, "verify", verify)
    golden(cli("backup", "verify", "alpha", "--to", "1,040").out)


def test_the_key_file_is_named_and_the_private_key_is_not_shown(cli: Cli) -> None:
    said = cli("backup", "key")
    assert said.code == 0
    assert str(cli.home / "backup.key") in said.out
    assert "public key: age1" in said.out
    assert "AGE-SECRET" not in said.out + said.err
    result = json.loads(cli("backup", "key", "--output", "json").out)
    assert result["publicKey"] in said.out
