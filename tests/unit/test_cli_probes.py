"""The probe as a command: where its clients are, and how it ends."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from report_lab import probe_result, report
from support.cli_lab import Cli
from support.golden import Golden

from quarterdeck.app import Quarterdeck
from quarterdeck.errors import Unavailable
from quarterdeck.probe.result import ProbeResult
from quarterdeck.report.schema import dump

UNAVAILABLE = 6


@dataclass
class FakeSession:
    """Clients at a host, that are there until it is lost."""

    host: str | None
    lost: Unavailable | None

    async def look(self, seconds: float | None) -> None:
        assert seconds == 3.0
        if self.lost is not None:
            raise self.lost

    async def stop(self) -> ProbeResult:
        return probe_result().model_copy(update={"source": self.host})


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    made = Cli(tmp_path, monkeypatch, capsys)
    made.plane()
    return made


def probed(cli: Cli, lost: Unavailable | None = None) -> None:
    @asynccontextmanager
    async def probing(*_: object, host: str | None, **__: object) -> AsyncIterator[FakeSession]:
        yield FakeSession(host, lost)

    cli.monkeypatch.setattr(Quarterdeck, "probing", probing)


def test_its_result_says_from_where_was_probed(cli: Cli) -> None:
    probed(cli)
    argv = ("probe", "demo", "--for", "3")
    said = cli(*argv, "--from", "rack/cp-1")
    assert (said.code, "from host rack/cp-1\n" in said.out) == (0, True), said
    assert json.loads(cli(*argv, "--from", "rack/cp-1", "-o", "json").out)["from"] == "rack/cp-1"
    assert json.loads(cli(*argv, "-o", "json").out)["from"] is None
    assert "from host" not in cli(*argv).out


def test_a_host_that_is_lost_is_no_failure_of_the_plane(cli: Cli, golden: Golden) -> None:
    probed(cli, Unavailable("probing from host rack/cp-1", "the connection to it was lost: it fell silent"))
    said = cli("probe", "demo", "--for", "3", "--from", "cp-1")
    assert (said.code, said.out) == (UNAVAILABLE, ""), said
    golden(said.err)


def test_its_json_is_the_reports_part_without_samples(cli: Cli) -> None:
    probed(cli)
    found = json.loads(cli("probe", "demo", "--for", "3", "-o", "json").out)
    wanted = json.loads(dump(report()))["probe"]
    assert set(found) == set(wanted) - {"samples"}
    assert found["periods"][0] | {"start": 0.0, "overall": 0, "kinds": 0} == {
        **wanted["periods"][0], "start": 0.0, "end": 14.4, "overall": 0, "kinds": 0
    }  # fmt: skip
    assert found["writes"] == wanted["writes"]
