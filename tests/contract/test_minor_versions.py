"""What the programs of the default versions, and of the minor versions before, accept is what the tables say."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from quarterdeck.components.feature_gates import ETCD_GATES, KUBERNETES_GATES, Gate, gates_problem
from quarterdeck.components.minors import ETCD, KUBERNETES, Minor, dotted, flag_problem, minors_of
from quarterdeck.model.components import Component
from quarterdeck.runner import run
from quarterdeck.upstream import Upstream, UpstreamProgram, Version, Versions

#: Where releases cannot be downloaded, those of the older version are built here.
pytestmark = pytest.mark.timeout(2400)

KUBERNETES_PROGRAMS = (Component.APISERVER, Component.CONTROLLER_MANAGER, Component.SCHEDULER)
#: The two newest minor versions of each project.
KUBERNETES_MINORS = sorted(KUBERNETES)[-2:]
ETCD_MINORS = sorted(ETCD)[-2:]
#: The minor versions that an apiserver is and emulates.
EMULATED = [(KUBERNETES_MINORS[0], KUBERNETES_MINORS[0])]
EMULATED += [(KUBERNETES_MINORS[1], each) for each in KUBERNETES_MINORS]
#: Gates of kubelets alone whose stage in an emulated version differs from that in the version itself.
ODD = frozenset({"TopologyManagerPolicyOptions"})


async def program(component: Component, minor: Minor) -> Path:
    version = Version(*minor, minors_of(component)[minor].newest)
    versions = Versions(etcd=version) if component == Component.ETCD else Versions(kubernetes=version)
    name = UpstreamProgram(component)
    return (await Upstream.from_environment(os.environ).ensure([name], versions))[name]


async def errors(path: Path, *flags: str) -> str:
    """What a program says against flags when it is asked for its version; "" if it accepts them."""
    ended = await run([str(path), *flags, "--version"], doing=f"running {path.name}", deadline=60.0)
    return "" if ended.code == 0 else f"{ended.output}\n{ended.errors}"


def flags_told(component: Component) -> list[str]:
    """Every flag that the table has of a program."""
    releases = minors_of(component).values()
    gone = {flag for each in releases for flag in each.flags_gone.get(component, {})}
    return sorted(gone | {flag for each in releases for flag in each.flags_new.get(component, ())})


def lacks(said: str, flag: str) -> bool:
    """Whether a program has said that it has no such flag: of spf13/pflag, and of Go's own package."""
    return re.search(rf"(unknown flag: -|flag provided but not defined: )-{flag}\s", f"{said}\n") is not None


@pytest.mark.parametrize("component", [*KUBERNETES_PROGRAMS, Component.ETCD])
@pytest.mark.parametrize("nth", [0, 1])
async def test_a_program_has_the_flags_that_the_table_says(component: Component, nth: int) -> None:
    minor = sorted(minors_of(component))[-2:][nth]
    path = await program(component, minor)
    seen = {flag: lacks(await errors(path, f"--{flag}=1"), flag) for flag in flags_told(component)}
    assert seen == {flag: bool(flag_problem(component, flag, minor)) for flag in seen}
    assert seen or component == Component.SCHEDULER


@pytest.mark.parametrize("component", KUBERNETES_PROGRAMS)
@pytest.mark.parametrize(("binary", "emulated"), EMULATED)
async def test_a_program_knows_all_gates_that_the_table_says_with_their_defaults(
    component: Component, binary: Minor, emulated: Minor
) -> None:
    gates = [f"{name}={value}" for name, value in defaults(KUBERNETES_GATES, component, binary, emulated)]
    assert len(gates) > 150
    path = await program(component, binary)
    assert not await errors(path, f"--emulated-version={dotted(emulated)}", f"--feature-gates={','.join(gates)}")


@pytest.mark.parametrize(("binary", "emulated"), EMULATED)
async def test_a_program_refuses_each_value_of_a_gate_that_the_table_says_it_refuses(
    binary: Minor, emulated: Minor
) -> None:
    path = await program(Component.APISERVER, binary)
    wrong: list[str] = []
    for pair in refused(KUBERNETES_GATES, Component.APISERVER, binary, emulated):
        said = await errors(path, f"--emulated-version={dotted(emulated)}", f"--feature-gates={pair}")
        if "feature gate" not in said:
            wrong.append(pair)
    assert not wrong


async def test_a_program_lists_no_gate_that_the_table_does_not_have() -> None:
    for minor in KUBERNETES_MINORS:
        path = await program(Component.APISERVER, minor)
        shown = (await run([str(path), "--help"], doing=f"running {path.name}", deadline=60.0)).output
        listed = re.findall(r"kube:(\w+)=true\|false \((ALPHA|BETA) - default=(true|false)\)", shown)
        assert len(listed) > 100
        for name, stage, on in listed:
            if name not in ("AllAlpha", "AllBeta"):
                found = KUBERNETES_GATES[name].at(minor)
                assert found is not None
                assert (found.alpha, found.on) == (stage == "ALPHA", on == "true"), name


@pytest.mark.parametrize("minor", ETCD_MINORS)
async def test_an_etcd_has_the_gates_that_the_table_says(minor: Minor) -> None:
    path = await program(Component.ETCD, minor)
    known = [name for name, _ in defaults(ETCD_GATES, Component.ETCD, minor, minor)]
    seen = {name: not await errors(path, f"--feature-gates={name}=true") for name in ETCD_GATES}
    assert seen == {name: name in known for name in ETCD_GATES}
    shown = (await run([str(path), "--help"], doing="running etcd", deadline=60.0)).output
    assert {*re.findall(r"^\s+(\w+)=true\|false", shown, re.MULTILINE)} == {*known, "AllAlpha", "AllBeta"}


def defaults(
    gates: Mapping[str, Gate], component: Component, binary: Minor, emulated: Minor
) -> Iterator[tuple[str, str]]:
    """The gates that a program accepts, with the values that they have without being set."""
    for name, gate in gates.items():
        stage = gate.at(emulated)
        value = "true" if stage is not None and stage.on else "false"
        if not gates_problem(component, f"{name}={value}", binary=binary, emulated=emulated):
            yield name, value


def refused(gates: Mapping[str, Gate], component: Component, binary: Minor, emulated: Minor) -> Iterator[str]:
    """A value of each gate that a program refuses, but for alpha gates: it accepts these whatever it emulates."""
    for name in gates:
        for value in ("true", "false"):
            why = gates_problem(component, f"{name}={value}", binary=binary, emulated=emulated)
            if why and "is alpha" not in why and name not in ODD:
                yield f"{name}={value}"
                break
