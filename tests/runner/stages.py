"""The stages: what each runs, in which tiers, and what it needs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from support.go_programs import cache_folder
from support.tiers import Tier


@dataclass(frozen=True, slots=True)
class Command:
    """A program that ends with 0 if all is well."""

    argv: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """``commands``: what it runs, given a temporary folder for what they keep. ``pytest``: whether the last of them is
    pytest; ``arguments``: whether it takes the arguments after ``--``. ``tiers``: those that have it (none: it runs
    only when it is named). ``programs``: it needs the upstream programs; ``labs``: modules that build what its tests
    need beyond them, run before it in all tiers but smoke.
    """

    name: str
    what: str
    commands: Callable[[Path], tuple[Command, ...]]
    tiers: frozenset[Tier] = frozenset({Tier.SMOKE, Tier.FULL})
    pytest: bool = False
    arguments: bool = False
    programs: bool = False
    labs: tuple[str, ...] = ()


def module(name: str, *arguments: str, **environment: str) -> Command:
    """A Python module that is run."""
    return Command((sys.executable, "-m", name, *arguments), environment)


def pytest_stage(
    name: str,
    what: str,
    *arguments: str,
    tiers: frozenset[Tier] = frozenset(Tier),
    programs: bool = False,
    labs: tuple[str, ...] = (),
    **environment: str,
) -> Stage:
    """A stage of tests."""
    command = module("pytest", "-q", *arguments, **environment)
    return Stage(
        name=name,
        what=what,
        commands=lambda _: (command,),
        tiers=tiers,
        pytest=True,
        arguments=True,
        programs=programs,
        labs=labs,
    )


def _lint(work: Path) -> tuple[Command, ...]:
    cache = ("--cache-dir", str(work / "ruff"))
    return (
        module("ruff", "check", *cache, "."),
        module("ruff", "format", *cache, "--check", "."),
        Command(("deptry", "--no-ansi", "src")),
        module("runner.shell", str(work / "shell")),
    )


def _types(_: Path) -> tuple[Command, ...]:
    return (mypy(), Command(("basedpyright", "--level", "error")))


def mypy() -> Command:
    """mypy with a cache that is kept from run to run."""
    return module("mypy", "--cache-dir", str(cache_folder() / "mypy"), MYPYPATH="src")


STAGES = (
    Stage(name="lint", what="style, dependencies, shell scripts", commands=_lint),
    Stage(name="types", what="mypy --strict and basedpyright", commands=_types),
    Stage(
        name="layers",
        what="which package may import which",
        commands=lambda _: (Command(("lint-imports", "--no-cache")),),
    ),
    # One worker more than elsewhere: many of these tests wait for a process or a deadline.
    pytest_stage("unit", "every unit test", "-n", "3", "tests/unit", tiers=frozenset({Tier.SMOKE, Tier.FULL})),
    # Some searches take a thousand times as long as others.
    pytest_stage("model", "searches of the planner and of locks", "-n", "2", "--dist", "worksteal", "tests/model"),
    # A life is the same again only where the order of sets is.
    pytest_stage("loop", "lives of the whole loop in one process", "-n", "2", "tests/loop", PYTHONHASHSEED="0"),
    pytest_stage(
        "contract",
        "drivers and fakes against the real thing",
        "-n",
        "4",  # they wait, for processes, machines and deadlines, more than they compute
        "--dist",
        "loadgroup",  # some modules have one replica, or lab, for all of their tests
        "tests/contract",
        programs=True,
        labs=("support.former_versions", "support.prometheus_lab", "support.hosts_lab"),
    ),
    # No worker: Ctrl-C must reach the planes of tests.
    pytest_stage(
        "e2e",
        "real planes under load",
        "-n",
        "0",
        "tests/e2e",
        programs=True,
        labs=("support.former_versions", "support.nodes_lab"),
    ),
    pytest_stage(
        "seeds",
        "searches, lives, moves and hosts with fresh seeds: -- --minutes 60 [--seed N]",
        "-n",
        "0",
        "-s",
        "tests/soak",
        tiers=frozenset({Tier.SOAK}),
        programs=True,
        labs=("support.hosts_lab",),
    ),
    Stage(
        name="mutants",
        what="breaks each line of the planner's rules: -- --searches none, -- --log FILE",
        commands=lambda _: (module("model.mutant_trials"),),
        tiers=frozenset(),
        arguments=True,
    ),
)
