"""The configuration of kube-scheduler: upstream's KubeSchedulerConfiguration, without what quarterdeck decides."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, JsonValue

from quarterdeck.api.base import Model
from quarterdeck.api.names import shortened
from quarterdeck.api.schema import InSchema, refuse_if_any

API_VERSION, KIND = "kubescheduler.config.k8s.io/v1", "KubeSchedulerConfiguration"
#: The fields that users may set (kubernetes: kube-scheduler/config/v1, 1.33 to 1.37).
_FIELDS = (
    "apiVersion",
    "kind",
    "clientConnection",
    "delayCacheUntilActive",
    "enableContentionProfiling",
    "enableProfiling",
    "extenders",
    "parallelism",
    "percentageOfNodesToScore",
    "podInitialBackoffSeconds",
    "podMaxBackoffSeconds",
    "profiles",
)
_PROFILE_FIELDS = ("schedulerName", "percentageOfNodesToScore", "plugins", "pluginConfig")
_ELECTION = "quarterdeck decides it; spec.extraArgs.kubeScheduler has its times, such as leader-elect-lease-duration"
_SHAPES = (("clientConnection", dict, "a mapping"), ("profiles", list, "a list"), ("extenders", list, "a list"))
#: The scheduler of pods that name none, and the default of a profile.
_DEFAULT = "default-scheduler"
#: Flags that kube-scheduler ignores beside a configuration (cmd/kube-scheduler/app/options: ApplyTo), and the fields
#: that take their place.
IGNORED_FLAGS: Mapping[str, str] = {
    "contention-profiling": "enableContentionProfiling",
    "kube-api-burst": "clientConnection.burst",
    "kube-api-content-type": "clientConnection.contentType",
    "kube-api-qps": "clientConnection.qps",
    "profiling": "enableProfiling",
}


def _configuration(given: dict[str, JsonValue]) -> dict[str, JsonValue]:
    refuse_if_any(list(_problems(given)))
    return given


def _problems(given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The problems that need no scheduler to see; a trial start finds the others."""
    for name, wanted in (("apiVersion", API_VERSION), ("kind", KIND)):
        if given.get(name) != wanted:
            yield name, f"must be {wanted}, not {shortened(given.get(name))}"
    for name in given:
        if name == "leaderElection":
            yield name, f"may not be set: {_ELECTION}"
        elif name not in _FIELDS:
            yield name, f"unknown field; use one of {', '.join(_FIELDS)}"
    for name, kind, words in _SHAPES:
        if given.get(name) is not None and not isinstance(given[name], kind):
            yield name, f"must be {words}, not {shortened(given[name])}"
    connection = given.get("clientConnection")
    if isinstance(connection, dict) and "kubeconfig" in connection:
        yield "clientConnection.kubeconfig", "may not be set: each scheduler uses the apiserver of its own replica"
    yield from _of_profiles(given.get("profiles"))
    yield from _of_extenders(given.get("extenders"))


def _of_profiles(profiles: object) -> Iterator[tuple[str, str]]:
    names: list[object] = []
    for path, profile in _mappings("profiles", profiles):
        for name in profile:
            if name not in _PROFILE_FIELDS:
                yield f"{path}.{name}", f"unknown field; use one of {', '.join(_PROFILE_FIELDS)}"
        name = profile.get("schedulerName", _DEFAULT)
        if name in names:
            yield f"{path}.schedulerName", f"{shortened(name)} is there twice"
        names.append(name)


def _of_extenders(extenders: object) -> Iterator[tuple[str, str]]:
    for path, extender in _mappings("extenders", extenders):
        tls = extender.get("tlsConfig")
        for field, instead in (("certFile", "certData"), ("keyFile", "keyData"), ("caFile", "caData")):
            if isinstance(tls, dict) and field in tls:
                seen = "names a file of one machine, which does not move with the replicas"
                yield f"{path}.tlsConfig.{field}", f"{seen}; give its content (base64) as {instead}"


def _mappings(name: str, items: object) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The items of a list that are mappings, with their paths."""
    for number, each in enumerate(items if isinstance(items, list) else ()):
        if isinstance(each, dict):
            yield f"{name}[{number}]", each


class Scheduler(Model):
    """Settings of kube-scheduler besides flags."""

    #: A KubeSchedulerConfiguration (kubescheduler.config.k8s.io/v1), such as one with profiles, plugins and extenders.
    configuration: Annotated[
        dict[str, JsonValue],
        AfterValidator(_configuration),
        InSchema(
            {
                "required": ["apiVersion", "kind"],
                "properties": {"apiVersion": {"const": API_VERSION}, "kind": {"const": KIND}},
                "propertyNames": {"enum": [*_FIELDS]},
            }
        ),
    ]
