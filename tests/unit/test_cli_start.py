"""What a command loads before it does anything: for most of the time of a ``status`` modules are loaded."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from pydantic import BaseModel
from support.cli_lab import Cli
from support.golden import Golden
from typer.core import TyperGroup

from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.cli.contents import PANELS, Entry
from quarterdeck.cli.main import app
from quarterdeck.endpoint.balancers import envoy_status
from quarterdeck.engine.workspace.belongings import secrets_of
from quarterdeck.engine.workspace.home import Home
from quarterdeck.etcd import http as etcd_http
from quarterdeck.kube import documents

#: What only other commands need, and takes long to load.
HEAVY = (
    "cryptography.x509",
    "cryptography.hazmat.primitives.ciphers",
    "h2",
    "hpack",
    "httpx2",
    "plotly",
    "quarterdeck.actions.carry_out",
    "quarterdeck.api.documents",
    "quarterdeck.app.controllers",
    "quarterdeck.app.etcd",
    "quarterdeck.app.face",
    "quarterdeck.app.replicas",
    "quarterdeck.endpoint.balancers.external",
    "quarterdeck.engine.controller_sets.declarations",
    "quarterdeck.engine.reconcile.drive",
    "quarterdeck.planner.simulated",
    "quarterdeck.probe",
    "quarterdeck.report",
    "quarterdeck.upstream",
    "quarterdeck.yaml_text.streams",
    "rich.progress",
    "yaml",
)
#: What commands that only read the store do not need either: clients, drivers, and the planner.
DRIVERS = (
    "asyncssh",
    "dns",
    "envoy",
    "filelock",
    "google",
    "grpc",
    "h11",
    "quarterdeck.actions",
    "quarterdeck.components",
    "quarterdeck.endpoint",
    "quarterdeck.engine.observation",
    "quarterdeck.etcd",
    "quarterdeck.kube",
    "quarterdeck.planner",
    "quarterdeck.sites",
)
_CALL = """
import json, sys
from quarterdeck.cli.main import main
try:
    main()
finally:
    print(json.dumps(sorted(sys.modules)))
"""


def loaded(home: Path, *argv: str) -> list[str]:
    """All modules that a command loads in a process of its own."""
    environment = {**os.environ, "QUARTERDECK_HOME": str(home)}
    done = subprocess.run(
        [sys.executable, "-c", _CALL, *argv], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 1), done.stderr
    assert not done.stderr, done.stderr
    found: list[str] = json.loads(done.stdout.splitlines()[-1])
    return found


def below(modules: list[str], packages: tuple[str, ...]) -> list[str]:
    """Those of the modules that are one of the packages, or in one."""
    return [each for each in modules if each in packages or each.startswith(tuple(f"{name}." for name in packages))]


async def with_keys(home: Home) -> None:
    """As soon as it is driven, a plane has its keys."""
    await secrets_of(home.store, await home.store.get(ControlPlane, "demo"))


def test_a_status_loads_nothing_that_only_other_commands_need(cli: Cli) -> None:
    cli.plane("demo")
    cli.with_store(with_keys)
    found = loaded(cli.home, "status", "demo")
    assert "quarterdeck.engine.observation.observe" in found, "it looked"
    assert not below(found, HEAVY)


@pytest.mark.parametrize("argv", [("get",), ("get", "demo"), ("events", "demo"), ("history", "demo")], ids=" ".join)
def test_a_command_that_reads_the_store_loads_no_driver(cli: Cli, argv: tuple[str, ...]) -> None:
    cli.plane("demo")
    found = loaded(cli.home, *argv)
    assert "quarterdeck.stores.sqlite" in found, "it read the store"
    assert not below(found, (*HEAVY, *DRIVERS))


def test_the_help_loads_no_command_and_nothing_that_opens_a_home(tmp_path: Path) -> None:
    found = loaded(tmp_path, "--help")
    assert "quarterdeck.cli.contents" in found
    ours = {each for each in found if each.startswith("quarterdeck.") and not each.startswith("quarterdeck.cli")}
    assert ours <= {"quarterdeck.errors"}
    assert not [each for each in found if each.startswith(("quarterdeck.cli.commands", "pydantic", "yaml", "grpc"))]


@pytest.mark.parametrize(
    ("name", "entry"), [pytest.param(*each, id=each[0]) for panel in PANELS.values() for each in panel.items()]
)
def test_the_help_of_all_commands_says_what_that_of_each_begins_with(name: str, entry: Entry) -> None:
    root = typer.main.get_command(app)
    assert isinstance(root, TyperGroup)
    command = root.get_command(typer.Context(root), name)
    assert command is not None
    assert " ".join((command.help or "").split("\n\n")[0].split()) == entry.summary
    assert isinstance(command, TyperGroup) == entry.is_group


def test_the_help_has_a_panel_for_each_kind_of_command(cli: Cli) -> None:
    panels = re.findall(r"^╭─ (\w+) ", cli("--help").out, re.MULTILINE)
    assert panels == ["Options", "Create", "Change", "Watch", "Recover", "Sites", "Run"]


def test_every_command_is_in_the_help_and_an_unknown_one_is_told_what_is_like_it(cli: Cli, golden: Golden) -> None:
    help_text = cli("--help").out
    for name in ("demo", "create", "status", "migrate", "probe", "history", "replica", "certs", "site", "home"):
        assert f" {name} " in help_text
    golden(cli("statsu").err)
    assert "list" in cli("replica", "--help").out


@pytest.mark.parametrize(
    ("group", "command", "words"),
    [
        (("site", "machines"), "list", ("east",)),
        (("site", "machines"), "list", ("-o", "json", "east")),
        (("drill",), "run", ("demo", "--fail", "unit")),
        (("drill",), "run", ("--fail", "unit", "demo")),
        (("node", "token"), "create", ("--ttl", "2h", "demo")),
    ],
)
def test_a_group_without_the_name_of_a_command_is_its_most_usual_one(
    cli: Cli, group: tuple[str, ...], command: str, words: tuple[str, ...]
) -> None:
    assert cli(*group, *words) == cli(*group, command, *words)
    assert "Usage: " in cli(*group, "--help").out


def test_models_of_other_servers_are_built_when_one_answers() -> None:
    found = [
        f"{module.__name__}.{each.__name__}"
        for module in (documents, etcd_http, envoy_status)
        for each in vars(module).values()
        if isinstance(each, type) and issubclass(each, BaseModel) and each.__module__ == module.__name__
        if not each.model_config.get("defer_build")
    ]
    assert found == []
