"""Real programs on trial: what does not start is found out, in its own words, and nothing is left of it."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

import pytest
from pydantic import JsonValue
from support.conditions import until
from support.static_admission import static_manifests
from support.templates import but, template

from quarterdeck.api.plane.apiserver import Admission, AdmissionPlugin
from quarterdeck.api.plane.authentication import Authentication, JwtAuthenticator
from quarterdeck.api.plane.authorization import Authorization
from quarterdeck.api.plane.controllers import CloudControllerManager
from quarterdeck.api.revision import EventsTemplate, ReplicaTemplate
from quarterdeck.components.catalogue import programs_of
from quarterdeck.drivers import trials as module
from quarterdeck.drivers.trials import LocalTrials
from quarterdeck.engine.reconcile.drive import released
from quarterdeck.files import remove_folder
from quarterdeck.model.components import Component
from quarterdeck.upstream.catalog import Versions
from quarterdeck.upstream.upstream import Upstream

ETCD, API, KCM, SCHEDULER = (
    Component.ETCD,
    Component.APISERVER,
    Component.CONTROLLER_MANAGER,
    Component.SCHEDULER,
)
VERSIONS = Versions()
PLANE = but(template(), kubernetes_version=f"v{VERSIONS.kubernetes}", etcd={"version": str(VERSIONS.etcd)})
POLICY = "apiVersion: audit.k8s.io/{version}\nkind: Policy\nrules: {rules}\n"
SECURITY: dict[str, JsonValue] = {
    "apiVersion": "pod-security.admission.config.k8s.io/v1",
    "kind": "PodSecurityConfiguration",
    "defaults": {"enforce": "baseline", "enforce-version": "latest"},
}


@pytest.fixture(scope="module")
def programs() -> Mapping[Component, PurePosixPath]:
    upstream = Upstream.from_environment(os.environ)
    found = asyncio.run(upstream.ensure(tuple(dict.fromkeys(released().values())), VERSIONS))
    return {component: PurePosixPath(found[program]) for component, program in released().items()}


@pytest.fixture
def trials(tmp_path: Path) -> LocalTrials:
    return LocalTrials(cache=tmp_path / "trials")


def flags(component: Component, **values: str) -> ReplicaTemplate:
    given = {name.replace("_", "-"): value for name, value in values.items()}
    return but(PLANE, flags={component: given})


def audited(version: str = "v1", rules: str = "[{level: Metadata}]") -> ReplicaTemplate:
    return but(PLANE, policy=POLICY.format(version=version, rules=rules))


def secured(**defaults: str) -> ReplicaTemplate:
    configuration: dict[str, JsonValue] = {
        **SECURITY,
        "defaults": {name.replace("_", "-"): value for name, value in defaults.items()},
    }
    return but(PLANE, admission=Admission(plugins=(AdmissionPlugin(name="PodSecurity", configuration=configuration),)))


def static(field: str, value: object) -> ReplicaTemplate:
    """With a policy of a manifest whose field has that value."""
    policy, *others = static_manifests()
    policy["spec"][field] = value
    return but(PLANE, admission=Admission(manifests=(policy, *others)))


def guarded(expression: str) -> ReplicaTemplate:
    webhook = {"name": "a", "server": {"url": "https://a.example"}, "failurePolicy": "Deny"}
    webhooks = [{**webhook, "matchConditions": [{"expression": expression}]}]
    return but(PLANE, authorization=Authorization.model_validate({"webhooks": webhooks}, strict=False))


#: Etcd and apiservers, which end before they need another program.
BAD: Mapping[str, tuple[Component, ReplicaTemplate, str]] = {
    "etcd: an unknown flag": (ETCD, flags(ETCD, no_such_flag="x"), "no-such-flag"),
    "etcd: a value": (ETCD, flags(ETCD, auth_token="jwt"), "auth"),
    "etcd: a feature gate": (ETCD, flags(ETCD, feature_gates="NoSuchGate=true"), "NoSuchGate"),
    "an unknown flag": (API, flags(API, no_such_flag="x"), "no-such-flag"),
    "a value": (API, flags(API, audit_log_mode="never"), "never"),
    "a feature gate": (API, flags(API, feature_gates="NoSuchGate=true"), "NoSuchGate"),
    "an admission plugin": (API, flags(API, enable_admission_plugins="NoSuchPlugin"), "NoSuchPlugin"),
    "an audit policy's version": (API, audited(version="v1beta1"), "v1beta1"),
    "an audit level": (API, audited(rules="[{level: Everything}]"), "Everything"),
    "no audit rules": (API, audited(rules="[]"), "rules"),
    "contradicting audit fields": (
        API,
        audited(rules="[{level: Metadata, resources: [{group: ''}], nonResourceURLs: ['/x']}]"),
        "rules[0]",
    ),
    "a PodSecurity level": (API, secured(enforce="strict"), "strict"),
    "a PodSecurity version": (API, secured(enforce="baseline", enforce_version="v1"), "version"),
    "an unknown field of PodSecurity": (API, secured(enforced="baseline"), "enforced"),
    "a policy of admission": (API, static("validations", [{"expression": "object.name ="}]), "spec.validations[0]"),
    "a condition of a webhook": (API, guarded("request.user ="), "request.user ="),
}
#: Flags of a controller manager and of a scheduler, with what each says of them: they are tried at the same time.
CONTROLLERS: Mapping[str, tuple[tuple[str, str, str], tuple[str, str, str]]] = {
    "unknown flags": (("no-such-flag", "x", "no-such-flag"), ("no-such-flag", "x", "no-such-flag")),
    "feature gates and controllers": (
        ("controllers", "*,no-such-controller", "no-such-controller"),
        ("feature-gates", "NoSuchGate=true", "NoSuchGate"),
    ),
    "what is read late": (
        ("cluster-cidr", "10.0.0.0/33", "10.0.0.0/33"),
        ("leader-elect-renew-deadline", "20s", "leaseDuration must be greater than renewDeadline"),
    ),
}


async def judged(
    plane: ReplicaTemplate, trials: LocalTrials, programs: Mapping[Component, PurePosixPath], *components: Component
) -> Mapping[Component, str]:
    """The words of programs that do not start."""
    began = time.monotonic()
    failures = await trials.failures(plane, components, programs)
    assert {*failures} == {*components}
    assert not [each for each in failures.values() if "/quarterdeck-trial-" in each], "the folder is gone"
    assert time.monotonic() - began < module._DEADLINE / 2
    return failures


@pytest.mark.parametrize("case", BAD)
async def test_what_does_not_start_is_said_in_the_words_of_the_program(
    case: str, trials: LocalTrials, programs: Mapping[Component, PurePosixPath]
) -> None:
    component, plane, words = BAD[case]
    assert words in (await judged(plane, trials, programs, component))[component]


@pytest.mark.parametrize("case", CONTROLLERS)
async def test_so_is_what_controllers_read_when_they_lead(
    case: str, trials: LocalTrials, programs: Mapping[Component, PurePosixPath]
) -> None:
    (flag, value, words), (other, its, others_words) = CONTROLLERS[case]
    extra = {
        KCM: {"allocate-node-cidrs": "true", "cluster-cidr": "10.200.0.0/16", flag: value},
        SCHEDULER: {other: its},
    }
    failures = await judged(but(PLANE, flags=extra), trials, programs, KCM, SCHEDULER)
    assert words in failures[KCM]
    assert others_words in failures[SCHEDULER]


async def test_programs_with_our_own_flags_start_and_are_not_tried_again(
    trials: LocalTrials, programs: Mapping[Component, PurePosixPath], monkeypatch: pytest.MonkeyPatch
) -> None:
    every = programs_of(PLANE)
    assert await trials.failures(PLANE, every, programs) == {}
    assert len([*trials.cache.iterdir()]) == len(every), "each of them was judged"
    monkeypatch.setattr(module, "_judged", None)
    assert await trials.failures(but(PLANE, endpoint_name="other.example"), every, programs) == {}


JWT = JwtAuthenticator.model_validate(
    {
        "issuer": {"url": "https://issuer.example", "audiences": ("kubernetes",)},
        "claimMappings": {"username": {"claim": "sub", "prefix": "oidc:"}},
    }
)


async def test_a_plane_with_all_that_a_user_may_say_starts(
    trials: LocalTrials, programs: Mapping[Component, PurePosixPath]
) -> None:
    security = secured(enforce="restricted", enforce_version="v1.30", warn="baseline").admission
    assert security is not None
    plane = but(
        PLANE,
        admission=security.model_copy(update={"manifests": tuple(static_manifests())}),
        policy=POLICY.format(version="v1", rules="[{level: None, verbs: [get]}, {level: Request}]"),
        authentication=Authentication(jwt=(JWT,)),
        etcd={"events": EventsTemplate(quota_bytes=2**30, storage_class="standard")},
        service_cidr="10.200.0.0/20",
        secondary_service_cidr="fd00:10:200::/112",
        flags={
            ETCD: {"snapshot-count": "5000", "tls-min-version": "TLS1.3"},
            API: {"event-ttl": "2h", "max-requests-inflight": "800", "audit-log-path": "-", "profiling": "true"},
            KCM: {"allocate-node-cidrs": "true", "cluster-cidr": "10.201.0.0/16", "controllers": "*,-ttl-controller"},
            SCHEDULER: {"v": "2", "kube-api-qps": "100"},
        },
    )
    assert await trials.failures(plane, programs_of(plane), programs) == {}
    assert len([*trials.cache.iterdir()]) == 4


async def test_a_program_that_cannot_be_executed_here_is_not_judged(
    trials: LocalTrials, programs: Mapping[Component, PurePosixPath], tmp_path: Path
) -> None:
    broken = tmp_path / "kube-scheduler"
    broken.write_bytes(b"\x7fELF no program")
    broken.chmod(0o755)
    assert await trials.failures(PLANE, [SCHEDULER], {**programs, SCHEDULER: PurePosixPath(broken)}) == {}
    assert not trials.cache.exists() or not [*trials.cache.iterdir()], "it has not passed either"


CLOUD = """#!/bin/sh
for word; do
  case "$word" in
    --nodes-per-second=*) echo "Error: unknown flag: ${word%%=*}" >&2; exit 1 ;;
    --help) echo usage; exit 0 ;;
  esac
done
touch "$(dirname "$0")/acted"
"""


@pytest.mark.parametrize(("flag", "words"), [("nodes-per-second", "unknown flag: --nodes-per-second"), ("v", "")])
async def test_a_users_program_is_asked_for_its_flags_and_never_started(
    flag: str, words: str, trials: LocalTrials, tmp_path: Path
) -> None:
    program = tmp_path / "ccm"
    program.write_text(CLOUD)
    program.chmod(0o755)
    component = Component.CLOUD_CONTROLLER_MANAGER
    cloud = CloudControllerManager(program=PurePosixPath(program), flags={flag: "4"})
    plane = but(PLANE, cloud_controller_manager=cloud, flags={component: {flag: "4"}})
    failures = await trials.failures(plane, [component], {component: PurePosixPath(program)})
    assert words in failures.get(component, "")
    assert bool(failures) == bool(words)
    assert not (tmp_path / "acted").exists()


KILLED = """
import asyncio, sys
from pathlib import Path, PurePosixPath
from quarterdeck.api.revision import ReplicaTemplate
from quarterdeck.drivers.trials import LocalTrials
from quarterdeck.model.components import Component
template = ReplicaTemplate.model_validate_json(sys.argv[1])
program = {Component.ETCD: PurePosixPath(sys.argv[2])}
asyncio.run(LocalTrials(cache=Path(sys.argv[3])).failures(template, [Component.ETCD], program))
"""


def test_no_process_outlives_a_trial_whose_quarterdeck_is_killed(tmp_path: Path) -> None:
    """The program writes down its process, and runs for ever."""
    program, written = tmp_path / "etcd", tmp_path / "pid"
    program.write_text(f'#!/bin/sh\necho "$$ $*" > "{written}.new"; mv "{written}.new" "{written}"; exec sleep 600\n')
    program.chmod(0o755)
    argv = (sys.executable, "-c", KILLED, PLANE.model_dump_json(by_alias=True), str(program), str(tmp_path / "cache"))
    process = subprocess.Popen(argv)
    until(written.exists, "the program to run")
    pid, *flags_given = written.read_text().split()
    folder = next(Path(each.partition("=")[2]).parents[1] for each in flags_given if each.startswith("--data-dir="))
    assert folder.name.startswith("quarterdeck-trial-")
    os.kill(int(pid), 0)
    process.kill()
    process.wait()
    until(lambda: not Path(f"/proc/{pid}").exists(), "the program to end")
    remove_folder(folder)  # the next trial would, when it is ten minutes old
