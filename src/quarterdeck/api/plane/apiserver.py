"""Settings of the apiservers besides flags: the configuration of admission plugins, the audit log, and tracing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated

from pydantic import AfterValidator, Field, JsonValue, model_validator

from quarterdeck.api.base import Model
from quarterdeck.api.names import host, shortened
from quarterdeck.api.plane.manifests import Manifest, manifest_problems
from quarterdeck.api.schema import InSchema, refuse, refuse_if_any
from quarterdeck.api.values import AbsolutePath

#: The plugins that accept a configuration, with its group and kind ("": it has neither).
CONFIGURED: Mapping[str, tuple[str, str]] = {
    "EventRateLimit": ("eventratelimit.admission.k8s.io", "Configuration"),
    "PodNodeSelector": ("", ""),
    "PodSecurity": ("pod-security.admission.config.k8s.io", "PodSecurityConfiguration"),
    "PodTolerationRestriction": ("podtolerationrestriction.admission.k8s.io", "Configuration"),
    "ResourceQuota": ("apiserver.config.k8s.io", "ResourceQuotaConfiguration"),
}
_FILE = "its configuration names a file on the machine, which would not move with the plane"
_REFUSED: Mapping[str, str] = {
    "ImagePolicyWebhook": _FILE,
    "MutatingAdmissionWebhook": _FILE,
    "ValidatingAdmissionWebhook": _FILE,
}


#: A host, in brackets if it is an IPv6 address, and a port.
_COLLECTOR = r"(\[[0-9a-fA-F:.]+\]|[^:\s/]+):(\d{1,5})"


def _plugin(name: str) -> str:
    if name in _REFUSED:
        raise ValueError(f"{name}: {_REFUSED[name]}")
    if name not in CONFIGURED:
        raise ValueError(f"{shortened(name)} accepts no configuration; those that do: {', '.join(CONFIGURED)}")
    return name


def _collector(text: str) -> str:
    match = re.fullmatch(_COLLECTOR, text)
    if match is None or not 0 < int(match[2]) < 65536:
        raise ValueError(f"{shortened(text)} is not a host and a port, such as collector.example:4317")
    host(match[1].strip("[]"))
    return text


class AdmissionPlugin(Model):
    """The configuration of one admission plugin."""

    #: The name of the plugin.
    name: Annotated[str, AfterValidator(_plugin), InSchema({"enum": [*CONFIGURED]})]
    #: The object that an AdmissionConfiguration has under `configuration`.
    configuration: dict[str, JsonValue]

    @model_validator(mode="after")
    def _is_of_its_kind(self) -> AdmissionPlugin:
        group, kind = CONFIGURED[self.name]
        if group:
            type_meta = self.configuration.get("apiVersion"), self.configuration.get("kind")
            if not isinstance(type_meta[0], str) or type_meta[0].split("/")[0] != group:
                refuse(
                    ("configuration.apiVersion", f"must be of {group} for {self.name}, not {shortened(type_meta[0])}")
                )
            if type_meta[1] != kind:
                refuse(("configuration.kind", f"must be {kind!r} for {self.name}, not {shortened(type_meta[1])}"))
        return self


class Admission(Model):
    """Configuration of admission plugins, and what they enforce from the first request on."""

    #: The plugins. A plugin here replaces quarterdeck's own configuration of it.
    plugins: tuple[AdmissionPlugin, ...] = ()
    #: Policies with their bindings, and webhooks, as objects of `admissionregistration.k8s.io/v1`. Apiservers read them
    #: from files, and nobody can change them by the API. It needs Kubernetes 1.37.
    manifests: tuple[Manifest, ...] | None = None

    @model_validator(mode="after")
    def _manifests_can_be_read(self) -> Admission:
        refuse_if_any([(f"manifests{path}", problem) for path, problem in manifest_problems(self.manifests or ())])
        return self

    @model_validator(mode="after")
    def _plugins_are_distinct(self) -> Admission:
        names = [each.name for each in self.plugins]
        refuse_if_any(
            [
                (f"plugins[{number}].name", f"{name!r} is configured twice")
                for number, name in enumerate(names)
                if name in names[:number]
            ]
        )
        return self


class Audit(Model):
    """The audit log of the apiservers."""

    #: The audit policy, a file on this host. It is read when the plane is created, and each time it is applied.
    policy_file: AbsolutePath
    #: Days after which old log files are deleted.
    max_age_days: Annotated[int, Field(ge=1)] = 30
    #: The number of old log files to keep.
    max_backups: Annotated[int, Field(ge=1)] = 10
    #: The size at which a new log file is started.
    max_size_megabytes: Annotated[int, Field(ge=1)] = 100


class Tracing(Model):
    """Traces of the apiservers: OTLP over gRPC. kube-apiserver can send them only without TLS."""

    #: The host and port of the collector.
    endpoint: Annotated[
        str, AfterValidator(_collector), InSchema({"pattern": r"^(\[[0-9a-fA-F:.]+\]|[^:\s/]+):\d{1,5}$"})
    ]
    #: The share of requests to trace; without it, only requests that the client traces.
    sampling_rate_per_million: Annotated[int, Field(ge=0, le=1_000_000)] | None = None
