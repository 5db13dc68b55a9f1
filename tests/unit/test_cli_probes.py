"""The probe as a command: where its clients are, and how it ends."""

from __future__ import annotations

import json

import pytest
from report_lab import probe_result, report
from support.cli_lab import Cli
from support.client_view import probed
from support.fake_face import FakeFace
from support.golden import Golden

from quarterdeck.errors import Unavailable
from quarterdeck.report.schema import dump

UNAVAILABLE = 6
ARGV = ("probe", "demo", "--for", "3")


@pytest.fixture(autouse=True)
def _plane(cli: Cli) -> None:
    cli.plane()


def test_its_result_says_from_where_was_probed(cli: Cli, face: FakeFace) -> None:
    result = cli(*ARGV, "--from", "rack/cp-1")
    assert (result.code, "from host rack/cp-1\n" in result.out) == (0, True), result
    assert face.probe.calls == ["look for 3.0 s", "stop"]
    assert json.loads(cli(*ARGV, "--from", "rack/cp-1", "-o", "json").out)["from"] == "rack/cp-1"
    assert json.loads(cli(*ARGV, "-o", "json").out)["from"] is None
    assert "from host" not in cli(*ARGV).out


def test_a_host_that_is_lost_is_no_failure_of_the_plane(cli: Cli, face: FakeFace, golden: Golden) -> None:
    face.probe.lost = Unavailable("probing from host rack/cp-1", "the connection to it was lost: it fell silent")
    result = cli(*ARGV, "--from", "cp-1")
    assert (result.code, result.out) == (UNAVAILABLE, ""), result
    golden(result.err)


@pytest.mark.usefixtures("face")
def test_its_json_can_be_read_back(cli: Cli) -> None:
    seen = probed(cli(*ARGV, "-o", "json").out)
    assert seen.writes == probe_result().writes
    assert seen.failures == probe_result().since(0.0).failures


@pytest.mark.usefixtures("face")
def test_its_json_is_the_reports_part_without_single_samples(cli: Cli) -> None:
    found = json.loads(cli("probe", "demo", "--for", "3", "-o", "json").out)
    wanted = json.loads(dump(report()))["probe"]
    assert set(found) == set(wanted)
    assert not any(found["samples"].values())
    assert set(found["periods"][0]) == set(wanted["periods"][0])
    assert found["periods"][0]["start"] == probe_result().started, "times are Unix seconds"
    assert found["writes"] == wanted["writes"]
