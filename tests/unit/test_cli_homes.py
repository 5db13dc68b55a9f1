"""Sealing from the command line, and homes and caches that are not the user's own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support.cli_lab import Cli
from support.golden import Golden

from quarterdeck.api.belongings import PlaneSecrets
from quarterdeck.engine.workspace.belongings import secrets_of
from quarterdeck.engine.workspace.home import Home
from quarterdeck.engine.workspace.home_folder import home_key
from quarterdeck.errors import PreconditionFailed
from quarterdeck.upstream.upstream import Upstream

ROOT = Path(__file__).parents[2]
INVALID, PRECONDITION = 2, 5


@pytest.fixture(autouse=True)
def cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key costs 0.1 s on purpose; each seal says itself what it cost."""
    monkeypatch.setattr("quarterdeck.stores.key_seal._COST", {"n": 2**8, "r": 8, "p": 1})


@pytest.fixture
def home(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("QUARTERDECK_KEY_FILE", raising=False)
    return cli.home


def test_a_home_is_sealed_and_unsealed_by_commands(cli: Cli, home: Path, tmp_path: Path) -> None:
    key, other = tmp_path / "key", tmp_path / "other"
    assert cli("site", "list").code == 0
    cli.refused("home", "seal", "--yes", code=INVALID)
    cli.refused("site", "list", code=INVALID, says=("'key' is not an absolute path",), QUARTERDECK_KEY_FILE="key")
    sealed = cli("home", "seal", "--make", "--yes", QUARTERDECK_KEY_FILE=str(key))
    assert "sealed: the keys of 0 planes" in sealed.out
    assert key.stat().st_mode & 0o777 == 0o600
    assert cli("site", "list", QUARTERDECK_KEY_FILE=str(key)).code == 0
    cli.refused("site", "list", code=PRECONDITION, says=("is sealed; name its key file in QUARTERDECK_KEY_FILE",))
    other.write_text("a passphrase of many words\n")
    other.chmod(0o600)
    rekeyed = cli("home", "rekey", "--to", str(other), "--yes", QUARTERDECK_KEY_FILE=str(key))
    assert "sealed again" in rekeyed.out
    says = ("by another key",)
    cli.refused("site", "list", code=PRECONDITION, says=says, QUARTERDECK_KEY_FILE=str(key))
    assert "unsealed" in cli("home", "unseal", "--yes", QUARTERDECK_KEY_FILE=str(other)).out
    assert cli("site", "list").code == 0


def test_a_key_file_is_never_overwritten(cli: Cli, home: Path, tmp_path: Path, golden: Golden) -> None:
    key = tmp_path / "key"
    key.write_text("the key of another home")
    cli("site", "list")
    argv = ("home", "seal", "--make", "--yes")
    cli.refused(*argv, code=INVALID, says=("it exists",), QUARTERDECK_KEY_FILE=str(key))
    golden(key.read_text())


async def test_what_units_are_given_is_opened_by_the_home(home: Path, tmp_path: Path) -> None:
    from quarterdeck.api.controlplane import new_control_plane

    key = tmp_path / "key"
    key.write_text("a passphrase of many words\n")
    key.chmod(0o600)
    opened = await Home.open(home, key=home_key({"QUARTERDECK_KEY_FILE": str(key)}))
    try:
        plane = await opened.store.create(new_control_plane("alpha", site="east"))
        made = await secrets_of(opened.store, plane)
        assert await secrets_of(opened.store, plane) == made
        assert (await opened.store.get(PlaneSecrets, "alpha")).metadata.name == "alpha"
    finally:
        await opened.close()
    assert b"PRIVATE KEY" not in b"".join(each.read_bytes() for each in home.glob("quarterdeck.db*"))


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o775])
async def test_a_home_that_others_may_write_to_is_refused(home: Path, mode: int, golden: Golden) -> None:
    home.mkdir()
    home.chmod(mode)
    with golden.raises(PreconditionFailed):
        await Home.open(home)
    home.chmod(0o755)
    await (await Home.open(home)).close()


async def test_somebody_elses_home_and_cache_are_refused(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.mkdir(mode=0o700)
    monkeypatch.setattr("quarterdeck.files.os.geteuid", lambda: 12345)
    with pytest.raises(PreconditionFailed, match=r"it belongs to user \d+, not to you \(12345\)"):
        await Home.open(home)
    with pytest.raises(PreconditionFailed, match=r"using the programs in .*: it belongs to user"):
        Upstream.from_environment({"QUARTERDECK_CACHE": str(tmp_path)})


def test_a_cache_that_others_may_write_to_is_refused_before_anything_of_it_is_run(
    tmp_path: Path, golden: Golden
) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    cache.chmod(0o775)
    with golden.raises(PreconditionFailed):
        Upstream.from_environment({"QUARTERDECK_CACHE": str(cache)})
    script = f'set -eu; QD_ROOT="{ROOT}"; . "{ROOT}/scripts/bootstrap.sh"; qd_environment run'
    environment = {"QUARTERDECK_CACHE": str(cache), "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"}
    done = subprocess.run(["/bin/sh", "-c", script], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 70
    golden(done.stderr)
    assert list(cache.iterdir()) == []


def test_a_plane_with_dangerous_arguments_is_refused_before_anything_is_written(cli: Cli, golden: Golden) -> None:
    document = (
        "apiVersion: quarterdeck.dev/v1alpha1\nkind: ControlPlane\nmetadata: {name: alpha}\n"
        "spec: {placement: {site: east}, extraArgs: {etcd: {unsafe-no-fsync: true}}}\n"
    )
    refused = cli.refused("apply", "-f", "-", stdin=document, code=INVALID)
    golden(refused.err.removeprefix("error: "))
    assert "alpha" not in cli("get").out
