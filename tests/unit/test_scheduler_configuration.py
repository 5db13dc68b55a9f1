"""The configuration of a scheduler: what quarterdeck decides is refused by path, and no flag is lost beside it."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from pydantic import JsonValue
from support.golden import Golden
from support.templates import but, template, units_of

from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.differences import differences
from quarterdeck.api.documents import parse
from quarterdeck.api.plane.scheduler import Scheduler
from quarterdeck.errors import InvalidInput
from quarterdeck.model.components import Component

CONFIGURATION: dict[str, JsonValue] = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
}


def read(*, flags: dict[str, JsonValue] | None = None, **changes: Any) -> ControlPlane:
    spec: dict[str, JsonValue] = {"placement": {"site": "east"}, "extraArgs": {"kubeScheduler": flags or {}}}
    spec["scheduler"] = {"configuration": {**CONFIGURATION, **changes}}
    head: dict[str, JsonValue] = {"apiVersion": "quarterdeck.dev/v1alpha1", "kind": "ControlPlane"}
    return parse(ControlPlane, {**head, "metadata": {"name": "a"}, "spec": spec}, "reading it")


@pytest.mark.parametrize(
    "changes",
    [
        {"apiVersion": "kubescheduler.config.k8s.io/v1beta3"},
        {"kind": "Config"},
        {"leaderElection": {"leaderElect": False}},
        {"clientConnection": {"kubeconfig": "/etc/kubeconfig"}},
        {"clientConnection": []},
        {"profiles": {}},
        {"healthzBindAddress": "0.0.0.0:1"},
        {"profiles": [{"schedulerNames": "a"}]},
        {"profiles": [{}, {"schedulerName": "default-scheduler"}]},
        {"extenders": [{"tlsConfig": {"keyFile": "/a.key", "caFile": "/ca.crt"}}]},
    ],
    ids=lambda each: ".".join(each),
)
def test_what_a_scheduler_must_not_be_told_is_refused_by_path(changes: dict[str, Any], golden: Golden) -> None:
    with pytest.raises(InvalidInput) as refused:
        read(**changes)
    assert "spec.scheduler.configuration." in str(refused.value)
    golden(refused.value)


def test_a_flag_that_a_scheduler_would_ignore_is_refused(golden: Golden) -> None:
    with golden.raises(InvalidInput):
        read(flags={"kube-api-qps": 100, "v": 2, "profiling": True})


def rendered(**changes: JsonValue) -> tuple[dict[str, Any], dict[str, str]]:
    """The file of a scheduler, and its flags."""
    plane = but(template(), scheduler=Scheduler(configuration={**CONFIGURATION, **changes}))
    unit = units_of(plane)[Component.SCHEDULER]
    flags = dict(each.removeprefix("--").split("=", 1) for each in unit.argv[1:])
    (file,) = (each for each in unit.files if str(each.path) == flags["config"])
    assert file.mode == 0o600
    return yaml.safe_load(file.content), flags


def test_what_flags_said_that_are_ignored_beside_it_is_in_the_configuration() -> None:
    file, flags = rendered(clientConnection={"qps": 70}, parallelism=8)
    plain = units_of(template())[Component.SCHEDULER]
    before = dict(each.removeprefix("--").split("=", 1) for each in plain.argv[1:])
    assert {*before} - {*flags} == {"kubeconfig", "profiling"}
    assert file["clientConnection"] == {"qps": 70, "kubeconfig": before["kubeconfig"]}
    assert (file["enableProfiling"], file["parallelism"]) == (False, 8)
    assert flags["leader-elect"] == "true"
    assert rendered(enableProfiling=True)[0]["enableProfiling"] is True


def test_the_key_for_an_extender_is_in_no_difference() -> None:
    one, other = (
        read(extenders=[{"urlPrefix": "https://a.example", "tlsConfig": {"keyData": key}}]).spec
        for key in ("c2VjcmV0", "b3RoZXI=")
    )
    (found,) = differences(one, other)
    assert "c2VjcmV0" not in str(found)
