"""What 'upgrade' prints and asks for, of a plane that a test drives by the books alone."""

from __future__ import annotations

import json
from dataclasses import dataclass
from types import SimpleNamespace

import pytest
from support.cli_lab import Cli
from support.fake_face import WELL, FakeFace, books
from support.golden import Golden

from quarterdeck.api.controlplane import ControlPlane, ControlPlaneSpec
from quarterdeck.api.operation import OperationType
from quarterdeck.api.plane.upgrade import UpgradeSettings, UpgradeWindow
from quarterdeck.app import Finding, Verdict
from quarterdeck.cli.commands import upgrades as command
from quarterdeck.components.minors import KUBERNETES
from quarterdeck.engine.preflight import upgrades
from quarterdeck.engine.workspace import recorded
from quarterdeck.engine.workspace.home import Home
from quarterdeck.errors import Conflict
from quarterdeck.model.steps.plan import Plan
from quarterdeck.stores.port import amend

UPGRADE = OperationType.UPGRADE


@dataclass
class Lab:
    """Plane ``demo`` of Kubernetes 1.36.3, as wanted at east."""

    cli: Cli
    face: FakeFace

    def spec(self) -> ControlPlaneSpec:
        return self.cli.with_store(lambda home: recorded.existing(home.store, "demo")).spec

    def at(self) -> tuple[str, UpgradeWindow]:
        return self.spec().kubernetes_version, (self.spec().upgrade or UpgradeSettings()).window

    def asked(self) -> list[str]:
        """The versions that operations were asked for, after the creation."""
        done = self.cli.with_store(lambda home: recorded.operations_of(home.store, "demo"))[1:]
        assert {each.spec.type for each in done} <= {UPGRADE}
        return [each.spec.to.spec.kubernetes_version for each in done if each.spec.to is not None]

    def becomes(self, version: str, upgrade: UpgradeSettings | None = None) -> None:
        async def changed(home: Home) -> None:
            def with_version(plane: ControlPlane) -> ControlPlane:
                return plane.with_spec(kubernetes_version=version, upgrade=upgrade).with_status(revision="")

            await amend(home.store, ControlPlane, "demo", with_version)

        self.cli.with_store(changed)


@pytest.fixture
def lab(cli: Cli, face: FakeFace) -> Lab:
    cli.plane()
    cli.with_store(books)
    made = Lab(cli, face)
    made.becomes("v1.36.3")
    return made


@pytest.fixture(autouse=True)
def _durations(golden: Golden) -> None:
    golden.hide(r"(?m)(?<= in )\d[\d.]* m?s$", "TIME")
    golden.hide(r"demo-upgrade-[0-9a-f]{6}", "demo-upgrade-ID")


def test_an_upgrade_shows_its_checks_and_ends_with_a_report(lab: Lab, golden: Golden) -> None:
    assert lab.cli("upgrade", "demo", "--to", "1.37.2").code == 4, "there is nobody to ask"
    result = lab.cli("upgrade", "demo", "--to", "1.37.2", "--yes")
    assert (result.code, lab.at()) == (0, ("v1.37.2", UpgradeWindow.RAISED)), result
    golden(result.err.splitlines()[:2])
    golden(result.out)
    assert lab.asked() == ["v1.37.2"]


def test_a_plane_that_is_there_has_nothing_to_do(lab: Lab, monkeypatch: pytest.MonkeyPatch, golden: Golden) -> None:
    async def look(*_: object) -> SimpleNamespace:
        return SimpleNamespace(plan=Plan())

    monkeypatch.setattr(upgrades.status, "look", look)
    result = lab.cli("upgrade", "demo", "--to", "1.36.3", "--yes")
    assert (result.code, lab.asked()) == (0, [])
    golden(result.out.rstrip())


def test_minor_versions_between_are_taken_one_after_another(lab: Lab) -> None:
    lab.becomes("v1.34.1")
    result = lab.cli("upgrade", "demo", "--to", "1.37.1", "--yes")
    assert result.code == 0, result
    between = [f"v1.{minor}.{KUBERNETES[1, minor].newest}" for minor in (35, 36)]
    assert lab.asked() == [*between, "v1.37.1"]
    assert lab.at() == ("v1.37.1", UpgradeWindow.RAISED)


def test_programs_get_one_document_of_several_parts(lab: Lab) -> None:
    lab.becomes("v1.35.1")
    result = json.loads(lab.cli("upgrade", "demo", "--to", "1.37.1", "--yes", "-o", "json").out)
    assert (result["action"], result["changed"], result["operation"]["type"]) == ("upgrade", True, "Upgrade")


def test_a_check_of_a_later_part_that_refuses_stops_it_there(lab: Lab, golden: Golden) -> None:
    lab.becomes("v1.35.1")
    refused = Finding("kubelets", Verdict.REFUSE, "older than 1.34: n1 (v1.33.0)", "upgrade them")
    first = True

    async def preview(*_: object, **__: object) -> tuple[tuple[Finding, ...], object]:
        nonlocal first
        found = WELL if first else (*WELL, refused)
        first = False
        return found, lab.face.forecast

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("quarterdeck.engine.preflight.local_changes.preview", preview)
        result = lab.cli("upgrade", "demo", "--to", "1.37.1", "--yes")
    assert result.code == 5, result
    golden(result.err.splitlines()[-1])
    assert lab.at()[0] == f"v1.36.{KUBERNETES[1, 36].newest}"
    assert lab.cli("upgrade", "demo", "--yes").code == 0, "it goes on from there"
    assert lab.at()[0] == "v1.37.1"


def test_with_a_soak_one_window_is_taken_and_the_rest_is_left_to_the_manager(lab: Lab, golden: Golden) -> None:
    result = lab.cli("upgrade", "demo", "--to", "1.37.2", "--soak", "6h", "--yes")
    assert (result.code, lab.at()) == (0, ("v1.37.2", UpgradeWindow.EMULATING)), result
    golden(result.out.splitlines()[-1])
    assert lab.spec().upgrade == UpgradeSettings(window=UpgradeWindow.EMULATING, soak=21_600.0)
    for window in (UpgradeWindow.RAISED, UpgradeWindow.FINAL):
        assert lab.cli("upgrade", "demo", "--yes").code == 0
        assert lab.at() == ("v1.37.2", window)


def test_a_version_is_finished_on_request(lab: Lab) -> None:
    assert lab.cli("upgrade", "demo", "--finish", "--yes").code == 0
    assert lab.at() == ("v1.36.3", UpgradeWindow.FINAL)


def test_the_former_minor_version_is_gone_back_to(lab: Lab) -> None:
    assert lab.cli("upgrade", "demo", "--to", "1.35.4", "--yes").code == 0
    assert lab.at() == ("v1.35.4", UpgradeWindow.RAISED)


def test_a_part_that_the_manager_asked_for_first_is_followed(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    lab.becomes("v1.35.1")
    followed: list[str] = []

    def follow(name: str) -> None:
        followed.append(name)
        lab.becomes("v1.37.1")

    def faster(request: object) -> object:
        if lab.spec().kubernetes_version == "v1.35.1":
            return real(request)
        raise Conflict("upgrading plane demo", "operation demo-upgrade-2 (Upgrade) is in progress", "")

    real = command.planned
    monkeypatch.setattr(command, "planned", faster)
    monkeypatch.setattr(command, "follow", follow)
    assert lab.cli("upgrade", "demo", "--to", "1.37.1", "--yes").code == 0
    assert followed == ["demo"]


@pytest.mark.parametrize(
    ("argv", "code"),
    [
        (("--to", "1.37.2", "--finish"), 2),
        (("--soak", "1h"), 2),
        (("--to", "1.38.0"), 2),
        (("--to", "newest"), 2),
        (("--to", "1.34.4"), 2),
    ],
)
def test_what_no_upgrade_can_be_is_refused(lab: Lab, argv: tuple[str, ...], code: int, golden: Golden) -> None:
    golden(lab.cli.refused("upgrade", "demo", *argv, "--yes", code=code).err)
    assert lab.at() == ("v1.36.3", UpgradeWindow.RAISED)


def test_a_version_without_a_final_window_cannot_be_finished(lab: Lab, golden: Golden) -> None:
    lab.becomes("v1.34.4")
    golden(lab.cli.refused("upgrade", "demo", "--finish", "--yes", code=2).err)
