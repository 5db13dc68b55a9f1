"""Another minor version of Kubernetes: clients notice neither the way there, nor an abort, nor the way back."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from support.client_view import watched
from support.former_versions import former
from support.plane_lab import PlaneLab, did

from quarterdeck.api.operation import OperationPhase
from quarterdeck.api.values import DEFAULT_KUBERNETES_VERSION
from quarterdeck.components.minors import dotted
from quarterdeck.components.upstream_versions import minor
from quarterdeck.model.components import Component

pytestmark = pytest.mark.timeout(900)

NAME = "upgraded"
NEWER = DEFAULT_KUBERNETES_VERSION.removeprefix("v")
FORMER = str(former(Component.APISERVER))
PROGRAMS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")


def running(lab: PlaneLab) -> set[tuple[str, bool]]:
    """The versions of all programs of Kubernetes that run, and whether they emulate another one."""
    found: set[tuple[str, bool]] = set()
    for record in lab.plane(NAME).status.memory.replicas:
        for program in PROGRAMS:
            pid = lab.pid("east", record.machine, f"{NAME}-{record.name}-{program}")
            argv = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
            version = next(each for each in (NEWER, FORMER) if f"/{each}/" in argv[0])
            found.add((version, any(each.startswith("--emulated-version") for each in argv)))
    return found


def test_a_plane_goes_to_the_next_minor_version_and_back_and_aborts_on_the_way(lab: PlaneLab) -> None:
    lab.run("create", NAME, "--replicas", "3", "--version", FORMER)
    assert running(lab) == {(FORMER, False)}
    options = {each["name"]: each for each in lab.run("upgrade", "plan", NAME, "-o", "json").json}
    assert options[f"v{NEWER}"]["possible"], options
    with watched(lab, NAME, "upgrade") as seen:
        after = lab.last_entry(NAME)
        driver = lab.start("upgrade", NAME, "--to", NEWER, "--yes")
        begun = partial(did, kind="start-unit", text="kube-apiserver")
        lab.journal(NAME, begun, "the first replica has the newer version", after=after, during=driver)
        driver.kill()
        lab.run("abort", NAME, "--yes")
        assert running(lab) == {(FORMER, False)}
        seen.goes_on("after the abort")

        lab.run("upgrade", NAME, "--to", NEWER, "--yes")
        assert running(lab) == {(NEWER, False)}
        status = lab.status(NAME, code=0)
        assert status["upgrade"] == {"window": "raised", "behavesAs": dotted(minor(NEWER)), "to": None}
        seen.goes_on("with the newer version")

        after = lab.last_entry(NAME)
        lab.run("upgrade", NAME, "--to", FORMER, "--yes")
        assert running(lab) == {(FORMER, False)}
        assert did(lab.read(lambda home: home.store.journal(NAME, after=after)), "check-stored-objects")
    assert lab.operation(NAME).status.phase is OperationPhase.SUCCEEDED
    assert lab.status(NAME, code=0)["kubernetesVersion"] == f"v{FORMER}"
