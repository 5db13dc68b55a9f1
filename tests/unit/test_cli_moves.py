"""What the commands that move planes print and ask for, of a plane that a test drives by the books alone."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.cli_lab import Cli
from support.fake_face import ASKER, WELL, FakeFace, books
from support.golden import Golden

from quarterdeck.api.controlplane import ControlPlaneSpec
from quarterdeck.api.operation import Operation, OperationPhase, OperationType
from quarterdeck.api.plane.memory import memory_to_status
from quarterdeck.app import DryRun, Finding, Verdict
from quarterdeck.engine.workspace import operations, recorded
from quarterdeck.engine.workspace.home import Home
from quarterdeck.errors import Unavailable
from quarterdeck.model.memory import Memory, Replica
from quarterdeck.model.seats import Slot
from quarterdeck.model.steps.plan import Wait
from quarterdeck.model.steps.traffic import StopBalancer
from quarterdeck.planner.simulated.dry_run import Forecast


@dataclass
class Lab:
    """Plane ``demo``, as wanted at east."""

    cli: Cli
    face: FakeFace

    def operations(self) -> tuple[Operation, ...]:
        return self.cli.with_store(lambda home: recorded.operations_of(home.store, "demo"))

    def spec(self) -> ControlPlaneSpec:
        return self.cli.with_store(lambda home: recorded.existing(home.store, "demo")).spec

    def site(self) -> str:
        return self.spec().placement.site


@pytest.fixture
def lab(cli: Cli, face: FakeFace) -> Lab:
    cli.plane()
    cli.with_store(books)
    return Lab(cli, face)


@pytest.fixture(autouse=True)
def _durations(golden: Golden) -> None:
    golden.hide(r"(?m)(?<= in )\d[\d.]* m?s$", "TIME")


def test_a_migration_shows_its_checks_and_its_plan_and_ends_with_a_report(lab: Lab, golden: Golden) -> None:
    result = lab.cli("migrate", "demo", "--to", "west", "--yes")
    assert (result.code, lab.site()) == (0, "west"), result
    golden(result.err.splitlines()[:2])
    golden(result.out)  # the plan comes before the report
    made = lab.operations()[-1]
    assert made.spec.requested_by.endswith("(quarterdeck migrate demo)")
    assert made.status.report is not None
    assert f"report: {Path(made.status.report).with_name('report.html')}" in result.out
    golden(lab.cli("report", "demo").out)


def test_a_migration_that_a_check_refuses_shows_only_why(lab: Lab, golden: Golden) -> None:
    lab.face.findings = (*WELL, Finding("alarms", Verdict.REFUSE, "NOSPACE", "disarm it"))
    golden(lab.cli.refused("migrate", "demo", "--to", "west", "--yes", code=5).err)
    assert (lab.site(), len(lab.operations())) == ("east", 1)


def test_a_migration_that_would_not_end_is_refused_after_its_checks_were_shown(lab: Lab, golden: Golden) -> None:
    lab.face.forecast = DryRun(steps=(), stuck_on=(Wait("a person", "see to it"),))
    result = lab.cli("migrate", "demo", "--to", "west", "--yes")
    assert (result.code, result.out, lab.site()) == (5, "", "east"), "its plan is not shown"
    golden(result.err.splitlines())


def test_clients_look_at_the_quiet_plane_then_at_the_move_and_its_report_has_them(lab: Lab, golden: Golden) -> None:
    result = lab.cli("migrate", "demo", "--to", "west", "--yes", "--probe", "--baseline", "0")
    assert (result.code, lab.site()) == (0, "west"), result
    golden(result.err)
    assert lab.face.probe.calls == ["change", "retire pinned", "after", "stop"]
    report = lab.cli("report", "demo", "-o", "json").out
    assert '"probe": {' in report


def test_clients_may_be_those_of_a_host(lab: Lab, golden: Golden) -> None:
    result = lab.cli("migrate", "demo", "--to", "west", "--yes", "--probe-from", "cp-1", "--baseline", "0")
    assert (result.code, lab.face.probe.host) == (0, "cp-1"), result
    golden(result.err)


def test_a_migration_whose_probe_ends_goes_on_and_its_report_has_none(lab: Lab) -> None:
    lab.face.probe.lost = Unavailable("probing from host rack/cp-1", "the connection to it was lost: it fell silent")
    result = lab.cli("migrate", "demo", "--to", "west", "--yes", "--probe", "--baseline", "0")
    assert (result.code, lab.site()) == (6, "west"), result
    assert result.err.splitlines()[-1] == f"error: {lab.face.probe.lost}"
    assert lab.operations()[-1].status.phase is OperationPhase.SUCCEEDED
    assert '"probe": null' in lab.cli("report", "demo", "-o", "json").out


def test_an_abort_brings_the_plane_back_and_says_so(lab: Lab, golden: Golden) -> None:
    async def moving(home: Home) -> None:
        current = await recorded.existing(home.store, "demo")
        placement = current.spec.placement.model_copy(update={"site": "west"})
        wanted = operations.moved(current, placement, None)
        await operations.change(home, wanted, OperationType.MIGRATE, ASKER)

    lab.cli.with_store(moving)
    golden(lab.cli.refused("abort", "demo", code=4).err)
    result = lab.cli("abort", "demo", "--yes")
    assert (result.code, lab.site()) == (0, "east"), result
    golden(result.out.rstrip())
    assert [each.spec.type for each in lab.operations()[1:]] == [OperationType.MIGRATE, OperationType.ABORT]


def test_scaling_shows_its_checks_and_ends_with_a_report_of_scaling(lab: Lab, golden: Golden) -> None:
    assert lab.cli("scale", "demo", "--replicas", "5").code == 4, "there is nobody to ask"
    result = lab.cli("scale", "demo", "--replicas", "5", "--yes")
    assert (result.code, lab.spec().replicas) == (0, 5), result
    golden(result.err.splitlines()[:2])
    assert [each.spec.type for each in lab.operations()] == [OperationType.CREATE, OperationType.SCALE]
    golden(result.out)
    assert "migrat" not in result.out.replace("demo-migrate", "")
    (_, last) = (line.split() for line in lab.cli("history", "demo").out.splitlines()[1:])
    assert last[1:4] == ["Scale", "east/3", "east/5"]


def test_a_document_is_all_that_is_printed_where_one_is_wanted(lab: Lab) -> None:
    result = json.loads(lab.cli("scale", "demo", "--replicas", "5", "--yes", "-o", "json").out)
    assert (result["resource"], result["name"], result["action"], result["changed"]) == ("plane", "demo", "scale", True)
    operation = result["operation"]
    assert (operation["type"], operation["fromReplicas"], operation["toReplicas"]) == ("Scale", 3, 5)
    assert (operation["phase"], Path(operation["report"]).name) == ("Succeeded", "report.json")
    named = lab.cli("scale", "demo", "--replicas", "3", "--yes", "-o", "name").out
    assert named == f"operation/{lab.operations()[-1].name}\n"


def test_an_abort_takes_back_a_change_that_moves_nothing(lab: Lab, golden: Golden) -> None:
    async def changing(home: Home) -> None:
        plane = await recorded.existing(home.store, "demo")
        spec = plane.spec.model_copy(update={"replicas": 5, "service_cidrs": ("10.0.0.0/12",)})
        await operations.change(home, plane.model_copy(update={"spec": spec}), OperationType.APPLY, ASKER)

    before = lab.spec()
    lab.cli.with_store(changing)
    golden(lab.cli.refused("abort", "demo", code=4).err)
    result = lab.cli("abort", "demo", "--yes")
    assert (result.code, lab.spec()) == (0, before), result
    golden(result.out)


def with_replicas(lab: Lab, *names: str) -> None:
    async def work(home: Home) -> None:
        plane = await recorded.existing(home.store, "demo")
        slot = Slot(site="east", zone="a")
        memory = Memory(replicas=tuple(Replica(name=name, slot=slot, machine=f"m-{name}") for name in names))
        status = plane.status.model_copy(update={"memory": memory_to_status(memory)})
        await home.store.update(plane.model_copy(update={"status": status}))

    lab.cli.with_store(work)


def test_a_person_has_one_replica_exchanged_or_all_of_them(lab: Lab, golden: Golden) -> None:
    with_replicas(lab, "demo-2", "demo-3")
    assert lab.cli("replica", "replace", "demo", "demo-3").code == 4, "there is nobody to ask"
    result = lab.cli("replica", "replace", "demo", "demo-3", "--yes")
    assert (result.code, lab.spec().replace_replicas) == (0, ("demo-3",)), result
    golden(result.out)
    again = lab.cli("replica", "replace", "demo", "demo-3", "--yes")
    assert (again.code, "to be replaced already" in again.out) == (0, True)
    assert lab.cli("replica", "replace", "demo", "--yes").code == 0
    assert lab.spec().replace_replicas == ("demo-2", "demo-3")
    with_replicas(lab, "demo-3", "demo-4")
    lab.cli("replica", "replace", "demo", "demo-4", "--yes")
    assert lab.spec().replace_replicas == ("demo-3", "demo-4"), "those that are gone are named no more"


@pytest.mark.parametrize(
    ("argv", "machines", "wait"),
    [
        (("scale", "demo", "--replicas", "5"), "4 machines are up at east, 5 are needed", "a person"),
        (
            ("replica", "replace", "demo", "demo-1"),
            "0 machines are up at east, 1 are needed",
            "a free machine in zone a",
        ),
    ],
    ids=["scale", "replace"],
)
def test_a_change_that_a_check_refuses_or_that_would_not_end_changes_nothing_and_says_what_it_was(
    lab: Lab, argv: tuple[str, ...], machines: str, wait: str, golden: Golden
) -> None:
    with_replicas(lab, "demo-1")
    lab.face.findings = (Finding("machines", Verdict.REFUSE, machines),)
    golden(lab.cli.refused(*argv, "--yes", code=5).err)
    lab.face.findings, lab.face.forecast = (), DryRun(steps=(), stuck_on=(Wait(wait, "see to it"),))
    golden(lab.cli.refused(*argv, "--yes", code=5).err)


def test_renewing_certificates_is_a_change_like_any_other(lab: Lab, golden: Golden) -> None:
    result = lab.cli("certs", "renew", "demo", "--yes")
    assert (result.code, lab.spec().certificates.generation) == (0, 1), result
    golden(result.out)
    assert lab.operations()[-1].spec.type is OperationType.APPLY


def test_certificates_are_listed_with_what_is_left_of_their_lives(lab: Lab, golden: Golden) -> None:
    rows = json.loads(lab.cli("certs", "list", "demo", "-o", "json").out)
    by_name = {row["name"]: row for row in rows}
    day = 24 * 3600
    assert by_name["kubernetes-ca"]["remainingSeconds"] > 3000 * day
    assert 364 * day <= by_name["manager"]["remainingSeconds"] < 366 * day
    assert by_name["manager"]["due"] is False
    assert all(row["message"] for row in rows), "each says what it is for"
    (head, first, *_) = lab.cli("certs", "list", "demo").out.splitlines()
    assert head.split() == ["WHOSE", "FOR", "UNTIL", "DAYS", "LEFT"]
    golden.hide(r"\d{4}-\d\d-\d\d +\d+\s*$", "DATE DAYS")
    golden(first)


def test_a_plan_of_a_file_says_what_differs_and_what_that_needs_and_changes_nothing(
    lab: Lab, tmp_path: Path, golden: Golden
) -> None:
    file = tmp_path / "demo.yaml"
    text = lab.cli("get", "demo", "-o", "yaml").out
    file.write_text(text.replace("replicas: 3", "replicas: 5").replace("onFailure: GoBack", "onFailure: Stay"))
    before = lab.cli.stored()
    step = StopBalancer(site="east", why="")
    lab.face.forecast = DryRun(steps=(Forecast(step=step, voters=3, learners=0, margin=1, quorum_site="east"),))
    for argv in (("plan", "demo", "-f", str(file)), ("apply", "--dry-run", "-f", str(file))):
        result = lab.cli(*argv)
        assert result.code == 0, result
        golden(result.out.splitlines()[:5])
        golden(result.out)
        fact = json.loads(lab.cli(*argv, "-o", "json").out)
        plane = fact["planes"][0] if "planes" in fact else fact
        assert [(each["path"], each["needs"]) for each in plane["differences"]] == [
            ("spec.replicas", "exchange"),
            ("spec.rollout.onFailure", "nothing"),
        ]
        assert plane["steps"][0]["mayFail"] == 1
    file.write_text(text)
    golden(lab.cli("plan", "demo", "-f", str(file)).out)
    golden(lab.cli.refused("plan", "other", "-f", str(file), code=2).err)
    assert lab.cli.stored() == before


def test_what_is_to_be_known_of_controller_sets_is_told_with_a_plan_and_when_it_is_asked_for(
    lab: Lab, tmp_path: Path, golden: Golden
) -> None:
    names = ("job", "cronjob", "ttl")
    sets = [
        {"name": each, "lock": each, "controllers": [f"{each}-controller"], "owner": "kube-controller-manager"}
        for each in names
    ]
    text = HEAD + json.dumps({"placement": {"site": "east"}, "controllerSets": sets})
    file, new = tmp_path / "demo.yaml", tmp_path / "new.yaml"
    file.write_text(text)
    new.write_text(text.replace("name: demo", "name: other"))
    plans = [("plan", "demo", "-f", str(file)), *(("apply", "--dry-run", "-f", str(each)) for each in (file, new))]
    for argv in (*plans, ("apply", "-f", str(file))):
        result = lab.cli(*argv)
        assert result.code == 0, result
        golden(result.out)
    assert len(lab.spec().controller_sets) == 3


def test_a_file_without_what_commands_count_up_leaves_it_as_it_is(lab: Lab, tmp_path: Path, golden: Golden) -> None:
    old = tmp_path / "old.yaml"
    old.write_text(lab.cli("get", "demo", "-o", "yaml").out)
    assert lab.cli("certs", "renew", "demo", "--yes").code == 0
    file = tmp_path / "demo.yaml"
    file.write_text(HEAD + "{placement: {site: east}, replicas: 5}")
    assert lab.cli("apply", "-f", str(file)).code == 0
    assert (lab.spec().replicas, lab.spec().certificates.generation) == (5, 1)
    stale = old.read_text().replace("  resourceVersion", "  # resourceVersion")
    old.write_text(stale)
    golden(lab.cli.refused("apply", "-f", str(old), code=2).err)


HEAD = "apiVersion: quarterdeck.dev/v1alpha1\nkind: ControlPlane\nmetadata: {name: demo}\nspec: "
