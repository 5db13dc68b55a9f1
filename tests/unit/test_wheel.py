"""What is installed: the package, and nothing that only tests or the project itself need."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from quarterdeck import __version__
from quarterdeck.version import version_text

ROOT = Path(__file__).parents[2]


def build(checkout: Path, into: Path) -> Path:
    """The wheel of a checkout."""
    command = (sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(into))
    subprocess.run(command, cwd=checkout, check=True, capture_output=True, timeout=120)
    (wheel,) = into.glob("*.whl")
    return wheel


def test_the_wheel_has_the_package_and_no_fake_of_a_port(tmp_path: Path) -> None:
    wheel = build(ROOT, tmp_path)
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    parts = {name.partition("/")[0] for name in names}
    assert parts == {"quarterdeck", next(each for each in parts if each.endswith(".dist-info"))}
    assert {"quarterdeck/py.typed", "quarterdeck/stores/sqlite.py"} <= {*names}
    assert [name for name in names if "fake" in name.rpartition("/")[2]] == []
    fakes = {path.read_bytes() for path in (ROOT / "tests" / "fakes").glob("*.py")}
    with zipfile.ZipFile(wheel) as archive:
        assert not fakes & {archive.read(name) for name in names}


def git(folder: Path, *words: str) -> str:
    """What git prints, with an author of its own: the host may have none."""
    author = ("-c", "user.name=test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false")
    done = subprocess.run(("git", "-C", str(folder), *author, *words), check=True, capture_output=True, text=True)
    return done.stdout.strip()


def small_checkout(folder: Path) -> Path:
    """What a build needs, and a package of two modules."""
    for each in ("pyproject.toml", "README.md", "LICENSE", "scripts/build_hook.py", "src/quarterdeck/version.py"):
        (folder / each).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / each, folder / each)
    (folder / "src/quarterdeck/__init__.py").write_text(f'__version__ = "{__version__}"\n')
    return folder


def test_the_version_names_the_commit_in_a_checkout_and_in_a_wheel_of_it(tmp_path: Path) -> None:
    checkout = small_checkout(tmp_path / "checkout")
    git(checkout, "init")
    git(checkout, "add", "--all")
    git(checkout, "commit", "--message", "a first one")
    named = f"{__version__} (commit {git(checkout, 'rev-parse', '--short=7', 'HEAD')})"
    assert version_text(checkout / "src") == named
    wheel = build(checkout, tmp_path / "wheels")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "installed")
    assert version_text(tmp_path / "installed") == named


def test_the_version_names_no_commit_without_git(tmp_path: Path) -> None:
    folder = small_checkout(tmp_path / "folder")
    assert version_text(folder / "src") == __version__
    wheel = build(folder, tmp_path / "wheels")
    with zipfile.ZipFile(wheel) as archive:
        assert "quarterdeck/commit.txt" not in archive.namelist()


def test_the_command_line_prints_the_version() -> None:
    command = (sys.executable, "-m", "quarterdeck", "--version")
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    assert re.fullmatch(rf"quarterdeck {re.escape(__version__)}( \(commit [0-9a-f]{{7,}}\))?\n", done.stdout)
