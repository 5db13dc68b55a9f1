"""Manifests of admission: what an apiserver would refuse is refused by path, and each plugin has its own folder."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from pydantic import JsonValue
from support.golden import Golden
from support.static_admission import static_manifests
from support.templates import but, template, units_of

from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.documents import parse
from quarterdeck.api.plane.apiserver import Admission
from quarterdeck.api.plane.manifests import PLUGINS
from quarterdeck.api.plane.upgrade import UpgradeWindow
from quarterdeck.components.admission_manifests import manifests_problem
from quarterdeck.components.difference import Need, differences
from quarterdeck.errors import InvalidInput
from quarterdeck.model.components import Component
from quarterdeck.model.units import UnitSpec

EACH = static_manifests()


def read(*manifests: dict[str, Any], version: str = "v1.37.2", window: str = "raised") -> ControlPlane:
    spec: dict[str, Any] = {"placement": {"site": "east"}, "kubernetesVersion": version, "upgrade": {"window": window}}
    head: dict[str, JsonValue] = {"apiVersion": "quarterdeck.dev/v1alpha1", "kind": "ControlPlane"}
    spec["admission"] = {"manifests": list(manifests)}
    return parse(ControlPlane, {**head, "metadata": {"name": "a"}, "spec": spec}, "reading it")


def changed(number: int, path: str, value: JsonValue) -> list[dict[str, Any]]:
    """The manifests with the value at that path of one of them; None: without it."""
    found = static_manifests()
    place: Any = found[number]
    *above, last = path.split(".")
    for each in above:
        place = place[int(each) if each.isdigit() else each]
    if value is None:
        del place[last]
    else:
        place[last] = value
    return found


@pytest.mark.parametrize(
    ("number", "path", "value"),
    [
        (0, "apiVersion", "admissionregistration.k8s.io/v1beta1"),
        (0, "kind", "ConfigMap"),
        (0, "metadata.name", "a"),
        (0, "metadata.name", "A_.static.k8s.io"),
        (0, "metadata", None),
        (0, "spec.paramKind", {"kind": "ConfigMap"}),
        (1, "spec.paramRef", {"name": "a"}),
        (1, "spec.policyName", "other.static.k8s.io"),
        (1, "spec", None),
        (4, "webhooks.0.clientConfig", {"service": {"name": "a"}}),
        (5, "webhooks.0.clientConfig", None),
    ],
)
def test_what_an_apiserver_would_refuse_is_refused_by_path(
    number: int, path: str, value: JsonValue, golden: Golden
) -> None:
    with pytest.raises(InvalidInput) as refused:
        read(*changed(number, path, value))
    assert f"spec.admission.manifests[{number}]." in str(refused.value)
    golden(refused.value)


def test_a_name_is_there_once_for_each_kind(golden: Golden) -> None:
    assert read(*EACH).spec.admission is not None
    with golden.raises(InvalidInput):
        read(*EACH, EACH[0])


@pytest.mark.parametrize(("version", "window"), [("v1.36.3", "raised"), ("v1.37.2", "emulating")])
def test_a_version_that_reads_none_is_named(version: str, window: str, golden: Golden) -> None:
    assert manifests_problem(read(*EACH).spec) == ""
    assert manifests_problem(read(version=version, window=window).spec) == ""
    golden(manifests_problem(read(*EACH, version=version, window=window).spec))


def rendered(**changes: object) -> tuple[dict[str, Any], UnitSpec]:
    """The configurations of plugins, and the unit."""
    plane = but(template(), kubernetes_version="v1.37.2", admission=Admission(manifests=tuple(EACH)), **changes)
    unit = units_of(plane)[Component.APISERVER]
    (file,) = (each for each in unit.files if each.path.name == "admission.yaml")
    plugins = yaml.safe_load(file.content)["plugins"]
    return {each["name"]: each["configuration"] for each in plugins}, unit


def test_each_plugin_reads_its_manifests_from_a_folder_that_has_no_others() -> None:
    configured, unit = rendered()
    assert {*configured} == {"EventRateLimit", *PLUGINS.values()}
    contents = {each.path: each for each in unit.files}
    found: list[dict[str, Any]] = []
    for plugin in dict.fromkeys(PLUGINS.values()):
        folder = configured[plugin]["staticManifestsDir"]
        (file,) = (each for path, each in contents.items() if str(path.parent) == folder)
        documents = list(yaml.safe_load_all(file.content))
        assert {PLUGINS[each["kind"]] for each in documents} == {plugin}
        found += documents
    assert sorted(found, key=str) == sorted(EACH, key=str)


def test_an_apiserver_that_behaves_as_the_former_version_has_none() -> None:
    configured, unit = rendered(upgrade_window=UpgradeWindow.EMULATING)
    assert {*configured} == {"EventRateLimit"}
    assert not [each for each in unit.files if each.path.name == "manifests.yaml"]


def test_a_change_restarts_apiservers_and_a_plane_without_manifests_keeps_its_revision() -> None:
    before, after = (but(template(), admission=Admission(manifests=each)) for each in (tuple(EACH[:2]), tuple(EACH)))
    (found,) = differences(before, after)
    assert (found.path, found.needs, found.restart) == (
        "spec.admission.manifests",
        Need.RESTART,
        (Component.APISERVER,),
    )
    assert "manifests" not in but(template(), admission=Admission()).model_dump_json(exclude_none=True)
