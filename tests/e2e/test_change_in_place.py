"""Changes of a plane that stays where it is: no client sees a failure, and what does not run is taken back."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml
from support.client_view import watched
from support.conditions import until
from support.issuer import issuer
from support.plane_lab import Done, PlaneLab, started
from support.planes import KeptPlane

from quarterdeck.actions.addresses import apiserver_address
from quarterdeck.actions.plane import Plane
from quarterdeck.api.operation import OperationPhase
from quarterdeck.pki.tls import client_context

pytestmark = pytest.mark.timeout(900)

#: One machine in each zone: there is none to spare.
TIGHT = """
apiVersion: quarterdeck.dev/v1alpha1
kind: Site
metadata: {name: tight}
spec: {zones: [a, b, c], machinesPerZone: 1, storageClasses: [{name: standard}, {name: fast}]}
"""
NAME = "inplace"
PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
#: Nobody may have a ConfigMap of that name.
POLICY = "names.static.k8s.io"
CONFIG_MAPS = {"apiGroups": [""], "apiVersions": ["*"], "operations": ["CREATE"], "resources": ["configmaps"]}
ADMISSION = {"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": POLICY}}
#: Files that a user can have written; the issuer, the webhook and the collector need not answer.
CONFIGURED = {
    "authentication": {
        "jwt": [
            {
                "issuer": {"url": "https://login.invalid/realm", "audiences": ["quarterdeck"]},
                "claimMappings": {"username": {"claim": "sub", "prefix": "login:"}, "groups": {"expression": "[]"}},
                "claimValidationRules": [{"expression": "claims.hd == 'example.com'", "message": "a stranger"}],
            }
        ]
    },
    "admission": {
        "plugins": [
            {
                "name": "PodSecurity",
                "configuration": {
                    "apiVersion": "pod-security.admission.config.k8s.io/v1",
                    "kind": "PodSecurityConfiguration",
                    "defaults": {"enforce": "baseline"},
                },
            }
        ],
        "manifests": [
            {
                **ADMISSION,
                "kind": "ValidatingAdmissionPolicy",
                "spec": {
                    "matchConstraints": {"resourceRules": [CONFIG_MAPS]},
                    "validations": [{"expression": "object.metadata.name != 'forbidden'"}],
                },
            },
            {
                **ADMISSION,
                "kind": "ValidatingAdmissionPolicyBinding",
                "spec": {"policyName": POLICY, "validationActions": ["Deny"]},
            },
        ],
    },
    "authorization": {
        "webhooks": [
            {
                "name": "nobody",
                "server": {"url": "https://127.0.0.1:1"},
                "failurePolicy": "NoOpinion",
                "matchConditions": [{"expression": "request.user == 'nobody'"}],
            }
        ]
    },
    "scheduler": {
        "configuration": {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"schedulerName": "default-scheduler"}, {"schedulerName": "packer"}],
        }
    },
    "serviceCidrs": ["10.96.0.0/16", "fd00:10:96::/112"],
    "tracing": {"endpoint": "127.0.0.1:4317", "samplingRatePerMillion": 100},
}


def _created(lab: PlaneLab, name: str, replicas: int) -> Done:
    lab.run("apply", "-f", str(lab.file(TIGHT)))
    return lab.run("create", name, "--site", "tight", "--replicas", str(replicas))


@pytest.fixture(scope="module")
def kept() -> Iterator[KeptPlane]:
    made = KeptPlane(NAME, _created)
    try:
        yield made
    finally:
        made.close()


def declared(lab: PlaneLab, **spec: Any) -> Path:
    """A file that declares the plane with these parts of the spec changed."""
    document = yaml.safe_load(lab.run("get", NAME, "-o", "yaml").out)
    document.pop("status", None)
    document["metadata"] = {"name": NAME}
    for key, value in spec.items():
        document["spec"][key] = {**document["spec"].get(key, {}), **value} if isinstance(value, dict) else value
    return lab.file(yaml.safe_dump(document))


def flags(lab: PlaneLab, replica: str) -> list[str]:
    """How a replica's apiserver was started."""
    record = next(each for each in lab.plane(NAME).status.memory.replicas if each.name == replica)
    pid = lab.pid("tight", record.machine, f"{NAME}-{replica}-kube-apiserver")
    return Path(f"/proc/{pid}/cmdline").read_text().split("\0")


def classes(lab: PlaneLab) -> set[str]:
    return {each.storage_class or "" for each in lab.plane(NAME).status.memory.replicas}


def survived(lab: PlaneLab, *command: str, steps: int) -> None:
    """A change that comes to its end though its driver is killed after so many steps."""
    after = lab.last_entry(NAME)
    driver = lab.start(*command)
    lab.journal(NAME, lambda seen: started(seen) >= steps, f"{command[0]} is under way", after=after, during=driver)
    driver.kill()
    lab.run("wait", NAME)


@pytest.mark.soak  # tests/model (ROUND_ROBIN) has it at any moment, unit tests what the name has
def test_clients_are_led_to_apiservers_themselves_and_back_while_they_go_on(kept: KeptPlane) -> None:
    """On a plane of its own: whoever was exchanged on its own machine has other ports than clients come to."""
    kept.close()
    lab = kept.ready(3)
    with watched(lab, NAME, "otherwise") as seen:
        for leads_to, where, running in (("apiservers", "the apiservers", False), ("load-balancers", "tight", True)):
            lab.run("apply", "-f", str(declared(lab, endpoint={"leadsTo": leads_to})))
            fact = lab.status(NAME, code=0)
            assert fact["nameLeadsTo"] == where
            assert any(each["running"] for each in fact["loadBalancers"]) is running
            seen.goes_on(f"once the name leads to {where}")


@pytest.mark.soak  # tests/loop and tests/model have it; test_events_etcd.py and test_nodes.py have 1 -> 3
def test_a_plane_shrinks_and_its_only_replica_is_exchanged_on_its_own_machine_and_it_grows_though_its_driver_dies(
    kept: KeptPlane,
) -> None:
    lab = kept.ready(3)
    with watched(lab, NAME, "shrinks"):
        lab.run("scale", NAME, "--replicas", "1", "--yes")
        (before,) = lab.plane(NAME).status.memory.replicas
        lab.run("replica", "replace", NAME, before.name, "--yes")
        (after,) = lab.plane(NAME).status.memory.replicas
        assert (after.machine, after.name != before.name) == (before.machine, True)
        survived(lab, "scale", NAME, "--replicas", "3", "--yes", steps=6)
    fact = lab.status(NAME, code=0)
    assert (fact["voters"], fact["site"]) == (3, "tight")


async def user_of(plane: Plane, token: str) -> set[str]:
    """Who shows this token, as each apiserver has it."""
    users: set[str] = set()
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    async with httpx2.AsyncClient(verify=client_context(plane.secrets.kubernetes_ca.bundle)) as client:
        for record in plane.memory.replicas:
            at = apiserver_address(record)
            where = f"https://{at.host}:{at.port}/apis/authentication.k8s.io/v1/selfsubjectreviews"
            answer = await client.post(where, json=review, headers={"Authorization": f"Bearer {token}"})
            users.add(answer.json()["status"]["userInfo"]["username"] if answer.is_success else str(answer.status_code))
    return users


def processes(lab: PlaneLab) -> dict[str, int]:
    """What runs of the plane, with its process id."""
    records = lab.plane(NAME).status.memory.replicas
    units = [(each.machine, f"{NAME}-{each.name}-{kind}") for each in records for kind in PROGRAMS]
    return {unit: lab.pid("tight", machine, unit) for machine, unit in units}


@pytest.mark.soak  # tests/loop (an issuer of 3) has the reload, and kube-apiserver looks at its file once a minute
def test_an_issuer_is_taken_up_by_apiservers_that_run_and_taken_back(kept: KeptPlane, tmp_path: Path) -> None:
    """With one replica: how a change goes from one to the next is the same for all, and this takes up to a minute."""
    lab = kept.ready(1)
    lab.run("apply", "-f", str(declared(lab, authentication=None)))
    before = processes(lab)
    with issuer(tmp_path) as made, watched(lab, NAME, "issuer"):
        token = made.token("jane")
        assert lab.opened(NAME, lambda plane: user_of(plane, token)) == {"401"}
        path = declared(lab, authentication=made.authentication())
        shown = lab.run("apply", "--dry-run", "-f", str(path)).out
        assert "reloads it while running" in shown
        assert shown.count("reload the files of") == 1
        began = time.monotonic()
        lab.run("apply", "-f", str(path))
        print(f"\nan issuer, taken up by one replica: {time.monotonic() - began:.1f} s")
        assert lab.opened(NAME, lambda plane: user_of(plane, token)) == {"oidc:jane"}
        lab.run("apply", "-f", str(declared(lab, authentication=None)))
        # An apiserver takes a token that it has just seen for 10 s more (kubernetes: TokenSuccessCacheTTL).
        until(lambda: lab.opened(NAME, lambda plane: user_of(plane, token)) == {"401"}, "the token to be refused")
    assert processes(lab) == before, "nothing was restarted"


def test_flags_and_files_roll_and_a_flag_that_no_apiserver_knows_is_taken_back_and_a_dead_driver_costs_nothing(
    kept: KeptPlane,
) -> None:
    lab = kept.ready(3)
    replicas = [each.name for each in lab.plane(NAME).status.memory.replicas]
    path = declared(lab, extraArgs={"kubeApiserver": {"max-requests-inflight": "399"}}, **CONFIGURED)
    shown = lab.run("apply", "--dry-run", "-f", str(path))
    assert "spec.extraArgs.kubeApiserver" in shown.out
    assert "spec.authentication" in shown.out
    with watched(lab, NAME, "flag"):
        survived(lab, "apply", "-f", str(path), steps=8)
        _has_the_flag_and_the_files(lab, replicas)
        _a_flag_that_no_apiserver_knows_is_taken_back(lab)
    assert lab.operation(NAME).status.phase is OperationPhase.FAILED
    assert lab.status(NAME)["voters"] == 3
    lab.run("abort", NAME, "--yes")
    assert lab.status(NAME, code=0)["voters"] == 3


def _has_the_flag_and_the_files(lab: PlaneLab, replicas: list[str]) -> None:
    assert [each.name for each in lab.plane(NAME).status.memory.replicas] == replicas, "nobody was exchanged"
    for replica in replicas:
        argv = flags(lab, replica)
        assert "--max-requests-inflight=399" in argv
        files = dict(each.removeprefix("--").split("=", 1) for each in argv if "=" in each)
        authentication = yaml.safe_load(Path(files["authentication-config"]).read_text())
        assert authentication["jwt"][0]["issuer"]["url"] == "https://login.invalid/realm"
        assert yaml.safe_load(Path(files["tracing-config-file"]).read_text())["samplingRatePerMillion"] == 100
        plugins = yaml.safe_load(Path(files["admission-control-config-file"]).read_text())["plugins"]
        assert [each["name"] for each in plugins] == ["EventRateLimit", "PodSecurity", "ValidatingAdmissionPolicy"]
        assert (Path(plugins[2]["configuration"]["staticManifestsDir"]) / "manifests.yaml").is_file()
        assert "--service-cluster-ip-range=10.96.0.0/16,fd00:10:96::/112" in argv
        authorizers = yaml.safe_load(Path(files["authorization-config"]).read_text())["authorizers"]
        assert [each["name"] for each in authorizers] == ["node", "rbac", "nobody"]


def _a_flag_that_no_apiserver_knows_is_taken_back(lab: PlaneLab) -> None:
    """By itself; where programs are tried first it is refused."""
    path = declared(lab, extraArgs={"kubeApiserver": {"no-such-flag": "1"}})
    before = lab.operation(NAME).metadata.name
    refused = lab.run("apply", "-f", str(path), code=2)
    assert "kube-apiserver does not start" in str(refused)
    assert "unknown flag: --no-such-flag" in str(refused)
    assert lab.operation(NAME).metadata.name == before, "nothing was asked for"
    done = lab.run("apply", "--no-trial", "-f", str(path), code=2)
    assert "unknown flag: --no-such-flag" in str(done)


@pytest.mark.soak  # an exchange on the same machine is what the only replica has above; tests/loop has three
def test_volumes_move_to_another_class_with_no_spare_machine(kept: KeptPlane) -> None:
    lab = kept.ready(3)
    goal = "standard" if classes(lab) == {"fast"} else "fast"
    path = declared(lab, etcd={"storageClass": goal})
    with watched(lab, NAME, "class"):
        lab.run("apply", "-f", str(path))
    assert classes(lab) == {goal}
    assert lab.status(NAME, code=0)["voters"] == 3


@pytest.mark.soak  # searched by tests/model; with no room it is harder, and test_migrate_shapes.py has five
def test_with_room_volumes_move_and_it_grows_to_five_though_its_drivers_die(kept: KeptPlane) -> None:
    lab = kept.ready(3)
    lab.run("apply", "-f", str(lab.file(TIGHT.replace("machinesPerZone: 1", "machinesPerZone: 2"))))
    goal = "standard" if classes(lab) == {"fast"} else "fast"
    before = {each.machine for each in lab.plane(NAME).status.memory.replicas}
    with watched(lab, NAME, "room"):
        survived(lab, "apply", "-f", str(declared(lab, etcd={"storageClass": goal})), steps=12)
        assert classes(lab) == {goal}
        first = {each.machine for each in lab.plane(NAME).status.memory.replicas} - before
        assert first, "nobody went to a machine that was free"
        survived(lab, "scale", NAME, "--replicas", "5", "--yes", steps=6)
    assert lab.status(NAME, code=0)["voters"] == 5
    with watched(lab, NAME, "less"):
        lab.run("scale", NAME, "--replicas", "3", "--yes")
    assert lab.status(NAME, code=0)["voters"] == 3
