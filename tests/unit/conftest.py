"""What unit tests are given: the sentences that ``tests/golden`` keeps, and a command line with a home of its own."""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.golden import FOLDER, UPDATE, Golden, GoldenFile

if TYPE_CHECKING:  # most modules of tests need no command line
    from support.cli_lab import Cli
    from support.fake_face import FakeFace

#: Characters of the name of an entry.
LONGEST = 160

_KEPT = pytest.StashKey[dict[Path, Mapping[str, tuple[str, ...]]]]()
_TESTS = pytest.StashKey[defaultdict[Path, set[str]]]()


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """Compares what is handed to it with what is kept under the name of the test. The test's own folder is ``TMP``."""
    made = Golden(_kept(request.node), request.config.getoption(UPDATE))
    if "tmp_path" in request.fixturenames:
        made.hide(re.escape(str(request.getfixturevalue("tmp_path"))), "TMP")
    return made


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    """The command line, and an empty home."""
    from support.cli_lab import Cli

    return Cli(tmp_path, monkeypatch, capsys)


@pytest.fixture
def face(monkeypatch: pytest.MonkeyPatch) -> FakeFace:
    """What the command line is told of planes that run nowhere."""
    from support.fake_face import FakeFace

    made = FakeFace()
    made.install(monkeypatch)
    return made


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """After a test that has passed: what it said is kept, or all that is kept was said."""
    result = yield
    asked = pyfuncitem.funcargs.get("golden")
    ended = asked if isinstance(asked, Golden) else Golden(_kept(pyfuncitem), pyfuncitem.config.getoption(UPDATE))
    ended.finish()
    if ended.updating:
        GoldenFile.of(pyfuncitem.path).keep(name_of(pyfuncitem), tuple(ended.sentences))
    return result


def pytest_itemcollected(item: pytest.Item) -> None:
    """Remember the tests of each module, those too that are left out of this run."""
    item.config.stash.setdefault(_TESTS, defaultdict(set))[item.path].add(name_of(item))


def pytest_collection_finish(session: pytest.Session) -> None:
    """An update drops what is kept for tests that are gone."""
    if session.config.getoption(UPDATE):
        for file, names in strays(session.config).items():
            file.drop(names)


def strays(config: pytest.Config) -> dict[GoldenFile, set[str]]:
    """What is kept for no test: of modules that were collected whole, and of those that are gone."""
    if any("::" in each for each in config.args):
        return {}
    tests = {GoldenFile.of(path): names for path, names in config.stash.get(_TESTS, defaultdict(set)).items()}
    found = {}
    for path in FOLDER.glob("*.txt"):
        file = GoldenFile(path)
        gone = not (Path(__file__).parent / f"test_{path.stem}.py").exists()
        if gone or file in tests:
            found[file] = file.read().keys() - tests.get(file, set())
    return {file: names for file, names in found.items() if names}


def name_of(item: pytest.Item) -> str:
    """What the entry of a test is called: its name, and of one that is very long the beginning and a digest."""
    if len(item.name) <= LONGEST:
        return item.name
    return f"{item.name[:LONGEST]}...{hashlib.sha256(item.name.encode()).hexdigest()[:8]}"


def _kept(item: pytest.Item) -> tuple[str, ...]:
    files = item.config.stash.setdefault(_KEPT, {})
    if item.path not in files:
        files[item.path] = GoldenFile.of(item.path).read()
    return files[item.path].get(name_of(item), ())
