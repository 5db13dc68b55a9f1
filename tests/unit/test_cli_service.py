"""The service that starts at boot: what is written, where, and that nothing of anybody else's is touched."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from support.cli_lab import Cli
from support.golden import Golden

from quarterdeck.cli.commands import services
from quarterdeck.cli.service_files import service

THEIRS = "0 3 * * * backup\n"


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of programs that come first; what they are called with is in ``calls``."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return folder


def program(folder: Path, name: str, script: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


@pytest.fixture
def crontab(tmp_path: Path, programs: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A host without systemd, and somebody's crontab."""
    monkeypatch.setattr(services, "_RUNS", tmp_path / "nowhere")
    table = tmp_path / "crontab"
    table.write_text(THEIRS)
    program(programs, "crontab", f'[ "$1" = -l ] && exec cat {table}\nexec cat >{table}')
    return table


@pytest.fixture
def systemd(tmp_path: Path, programs: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A host with systemd; the calls."""
    monkeypatch.setattr(services, "_RUNS", tmp_path)
    calls = tmp_path / "calls"
    calls.touch()
    for name in ("systemctl", "loginctl"):
        program(programs, name, f'echo {name} "$@" >>{calls}')
    return calls


def test_a_line_is_added_to_the_crontab_and_only_it_is_taken_out_again(cli: Cli, crontab: Path, golden: Golden) -> None:
    golden(cli.refused("service", "install", code=4).err)
    assert crontab.read_text() == THEIRS
    for _ in range(2):
        assert cli("service", "install", "--yes").code == 0
    assert "RESTARTED_BY" not in crontab.read_text(), "nobody starts that again before the next boot"
    lines = crontab.read_text().splitlines()
    assert (len(lines), lines[0]) == (2, THEIRS.strip())
    assert f"QUARTERDECK_HOME={cli.home}" in lines[1]
    assert "serve --log-format json" in lines[1]
    assert "crontab: installed" in cli("service", "status").out
    assert cli("service", "remove", "--yes").code == 0
    assert crontab.read_text() == THEIRS
    golden(cli("service", "remove", "--yes").out)


def test_a_crontab_that_cannot_be_read_is_not_written_over(
    cli: Cli, crontab: Path, programs: Path, golden: Golden
) -> None:
    program(programs, "crontab", f'[ "$1" = -l ] && {{ echo "you are not allowed" >&2; exit 1; }}\nexec cat >{crontab}')
    golden(cli.refused("service", "install", "--yes", code=6).err)
    assert crontab.read_text() == THEIRS


def test_a_user_s_unit_is_written_started_and_removed(cli: Cli, systemd: Path, tmp_path: Path) -> None:
    assert "not installed" in cli("service", "status", "--user").out
    assert cli("service", "install", "--user", "--yes").code == 0
    (unit,) = (tmp_path / "config/systemd/user").glob("quarterdeck-*.service")
    assert systemd.read_text().splitlines() == [
        "systemctl --user daemon-reload",
        f"systemctl --user enable --now {unit.name}",
        "loginctl enable-linger",
    ]
    assert f"Environment=QUARTERDECK_HOME={cli.home}" in unit.read_text()
    assert cli("service", "remove", "--user", "--yes").code == 0
    assert not unit.exists()
    assert f"systemctl --user disable --now {unit.name}" in systemd.read_text()


def test_what_would_be_written_can_be_seen_and_nothing_is(cli: Cli, systemd: Path, tmp_path: Path) -> None:
    shown = cli("service", "install", "--user", "--print").out
    assert "KillMode=process" in shown, "planes must outlive it"
    assert "Environment=QUARTERDECK_RESTARTED_BY=systemd" in shown, "it knows that it comes back"
    assert not (tmp_path / "config").exists()
    assert not systemd.read_text()


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze")
@pytest.mark.parametrize("user", ["", "root"])
def test_systemd_understands_the_unit(user: str, tmp_path: Path) -> None:
    made = service(tmp_path / 'a "home" of 100%', {"QUARTERDECK_KEY_FILE": "/a key", "HOME": "/root"}, user=user)
    path = tmp_path / f"{made.name}.service"
    path.write_text(made.unit)
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", path], capture_output=True, text=True, check=False)
    complaints = [line for line in (done.stdout + done.stderr).splitlines() if path.name in line]
    assert not complaints
    assert "/root" not in made.unit.replace("User=root", "")


def test_a_pause_of_no_time_or_of_nonsense_is_refused(cli: Cli, golden: Golden) -> None:
    cli.plane()
    cli.refused("pause", "demo", "--for", "0s", code=2, says=("is in the past",))
    golden(cli.refused("pause", "demo", "--for", "a while", code=2).err)
    assert "is paused until" in cli("pause", "demo", "--for", "2h").out
    cli.refused("wait", "demo", code=4, says=("it is paused until",))
