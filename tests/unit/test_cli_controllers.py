"""What ``controllers list`` prints, and how it ends."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime

from support.cli_lab import Cli
from support.fake_face import FakeFace
from support.golden import Golden

from quarterdeck.api.plane.controllers import ControllerProgram
from quarterdeck.app import SetHeld

KUBE, CLOUD = ControllerProgram
HELD = SetHeld(
    name="ipam",
    lock="ipam-migration",
    controllers=("node-ipam-controller",),
    owner=CLOUD,
    guarded_by="ipam-migration",
    manager=CLOUD,
    replica="demo-2",
    identity="vm_1f",
    since=datetime(2027, 1, 15, 8, tzinfo=UTC),
    renewed_ago=1.4,
    transitions=3,
    why=(),
    well=True,
)
NOBODY = replace(
    HELD,
    name="life",
    manager=None,
    replica="",
    identity="",
    since=None,
    renewed_ago=None,
    why=("nobody holds lock life-migration",),
    well=False,
)


def test_each_set_is_a_row(cli: Cli, face: FakeFace, golden: Golden) -> None:
    face.sets = (HELD,)
    result = cli("controllers", "list", "demo")
    assert (result.code, result.err) == (0, "")
    header, row = result.out.splitlines()
    assert header.split("   ")[0] == "SET"
    golden(row)
    assert "2027-01-15 08:00:00Z" in row
    assert "1s ago" in row
    assert "node-ipam-controller" not in row
    assert "node-ipam-controller" in cli("controllers", "list", "demo", "-o", "wide").out


def test_a_set_that_its_owner_does_not_run_is_told_and_the_exit_code_is_1(
    cli: Cli, face: FakeFace, golden: Golden
) -> None:
    face.sets = (
        HELD,
        NOBODY,
        replace(HELD, name="third", manager=None, replica="", well=False),
    )
    result = cli("controllers", "list", "demo")
    assert result.code == 1
    golden(result.err)
    assert "nobody" in result.out.splitlines()[2]
    assert "a stranger" in result.out.splitlines()[3]


def test_what_is_said_against_a_set_that_is_run_as_wanted_fails_nothing(
    cli: Cli, face: FakeFace, golden: Golden
) -> None:
    face.sets = (replace(HELD, why=("the clock is off",)),)
    result = cli("controllers", "list", "demo")
    assert result.code == 0
    golden(result.err)


def test_programs_read_all_there_is(cli: Cli, face: FakeFace) -> None:
    face.sets = (NOBODY,)
    result = cli("controllers", "list", "demo", "-o", "json")
    assert result.code == 1
    assert json.loads(result.out) == [
        {
            "name": "life",
            "lock": "ipam-migration",
            "owner": "cloud-controller-manager",
            "guardedBy": "ipam-migration",
            "manager": None,
            "replica": None,
            "identity": None,
            "transitions": 3,
            "controllers": ["node-ipam-controller"],
            "acquiredAt": None,
            "renewedSecondsAgo": None,
            "heldByOwner": False,
            "reasons": ["nobody holds lock life-migration"],
        }
    ]


def test_a_plane_without_sets_says_so(cli: Cli, face: FakeFace, golden: Golden) -> None:
    face.sets = ()
    result = cli("controllers", "list", "demo")
    assert result.code == 0
    golden(result.out)
    assert json.loads(cli("controllers", "list", "demo", "-o", "json").out) == []


def test_a_plane_that_is_not_there_is_told(cli: Cli) -> None:
    result = cli("controllers", "list", "demo")
    assert result.code != 0
    assert "demo" in result.err
