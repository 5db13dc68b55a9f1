"""Other minor versions of etcd, there and back: clients notice nothing, and what a user aborts goes back."""

from __future__ import annotations

import json
import re
import time
from functools import partial
from pathlib import Path

import pytest
from support.client_view import watched
from support.plane_lab import PlaneLab, did

from quarterdeck.components.minors import ETCD, dotted
from quarterdeck.components.upstream_versions import minor
from quarterdeck.model.components import Component

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1800)]

NAME = "etcds"
OLDEST, FORMER, NEWEST = (f"{dotted(each)}.{ETCD[each].newest}" for each in sorted(ETCD)[-3:])


def running(lab: PlaneLab) -> list[str]:
    """The versions of the members that run."""
    found: list[str] = []
    for record in lab.plane(NAME).status.memory.replicas:
        pid = lab.pid("east", record.machine, f"{NAME}-{record.name}-{Component.ETCD}")
        program = Path(f"/proc/{pid}/cmdline").read_text().split("\0")[0]
        version = re.search(r"/(\d+\.\d+\.\d+)/", program)
        assert version is not None, program
        found.append(version[1])
    return sorted(found)


def upgraded(lab: PlaneLab, *arguments: str) -> float:
    """The seconds that a change took."""
    began = time.monotonic()
    lab.run("upgrade", NAME, *arguments, "--yes", deadline=900.0)
    return time.monotonic() - began


def test_etcd_goes_up_two_minor_versions_and_back_one(lab: PlaneLab) -> None:
    spec = {"placement": {"site": "east"}, "replicas": 3, "etcd": {"version": OLDEST}}
    document = {"apiVersion": "quarterdeck.dev/v1alpha1", "kind": "ControlPlane", "metadata": {"name": NAME}}
    lab.run("apply", "-f", str(lab.file(json.dumps({**document, "spec": spec}))))
    assert running(lab) == [OLDEST] * 3
    options = {each["name"]: each for each in lab.run("upgrade", "plan", NAME, "-o", "json").json}
    assert options[NEWEST]["possible"], options
    assert options[NEWEST]["through"] == [FORMER]
    took: dict[str, float] = {}
    with watched(lab, NAME, "etcd") as seen:
        after = lab.last_entry(NAME)
        driver = lab.start("upgrade", NAME, "--etcd", FORMER, "--yes")
        begun = partial(did, kind="start-unit", text="kube-apiserver")
        lab.journal(NAME, begun, "the first replica has the newer version", after=after, during=driver)
        driver.kill()
        lab.run("abort", NAME, "--yes")
        assert running(lab) == [OLDEST] * 3
        seen.goes_on("after the abort")

        took["two minor versions"] = upgraded(lab, "--etcd", NEWEST)
        assert running(lab) == [NEWEST] * 3
        seen.goes_on("with the newest version")

        after = lab.last_entry(NAME)
        took["one back"] = upgraded(lab, "--etcd", FORMER)
        assert running(lab) == [FORMER] * 3
        assert did(lab.read(lambda home: home.store.journal(NAME, after=after)), "enable-etcd-downgrade")
        seen.goes_on("with the version before it")

        took["one with one kept"] = upgraded(lab, "--etcd", NEWEST, "--soak", "1h")
        assert running(lab) == [FORMER, NEWEST, NEWEST]
        status = lab.status(NAME, code=0)["etcd"]
        assert (status["keepsOne"], status["worksAs"]) == (True, dotted(minor(FORMER)))
        took["the kept one"] = upgraded(lab, "--finish")
        assert running(lab) == [NEWEST] * 3
    print({what: round(seconds, 1) for what, seconds in took.items()})
    assert lab.status(NAME, code=0)["etcd"]["keepsOne"] is False
