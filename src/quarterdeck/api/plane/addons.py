"""Add-ons: objects that quarterdeck keeps applied in a plane, and the state of each."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, AwareDatetime, Field, JsonValue, model_validator

from quarterdeck.api.base import Model
from quarterdeck.api.names import dns_label, label_within, shortened
from quarterdeck.api.schema import InSchema, label, refuse
from quarterdeck.api.values import AbsolutePath

#: Of an add-on's name: the name of the object that records its set contains it.
ADDON_NAME_MAX = 40
#: quarterdeck's own add-ons: what joining nodes read, and the rights of a cloud controller manager.
NODES_ADDON = "quarterdeck-nodes"
CLOUD_ADDON = "quarterdeck-cloud"
LOCKS_ADDON = "quarterdeck-locks"
_CHART_MAX = 512
_RELEASE_MAX = 53  # helm's own


def _text(text: str) -> str:
    if not text.strip():
        raise ValueError("is empty")
    return text


def _chart(text: str) -> str:
    if not text or len(text) > _CHART_MAX or text.startswith("-") or any(each.isspace() for each in text):
        raise ValueError(f"{shortened(text)} is not the name of a chart")
    return text


def _repository(text: str) -> str:
    if not text.startswith(("https://", "http://", "file://")) or any(each.isspace() for each in text):
        raise ValueError(f"{shortened(text)} is not the address of a repository, such as https://charts.example")
    return text


class Chart(Model):
    """A Helm chart. The `helm` program of this host renders it."""

    #: A directory or an archive on this host, `oci://...`, or the name of a chart in `repository`.
    chart: Annotated[str, AfterValidator(_chart), InSchema({"pattern": r"^[^\s-]\S*$", "maxLength": _CHART_MAX})]
    #: The URL of the repository.
    repository: Annotated[str, AfterValidator(_repository), InSchema({"pattern": r"^(https?|file)://\S+$"})] | None = (
        None
    )
    #: The version of the chart; without it, the newest.
    version: Annotated[str, Field(pattern=r"^[^\s-]\S{0,99}$")] | None = None
    #: The name of the release; without it, the name of the add-on.
    release: Annotated[str, AfterValidator(label_within(_RELEASE_MAX)), label(_RELEASE_MAX)] | None = None
    #: Values for the chart.
    values: dict[str, JsonValue] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _it_is_found_from_anywhere(self) -> Chart:
        if self.repository is None and not self.chart.startswith(("/", "oci://")):
            refuse(
                ("chart", f"{shortened(self.chart)} is neither an absolute path nor oci://; else name its repository")
            )
        if self.repository is not None and self.chart.startswith(("/", "oci://")):
            refuse(("repository", "is for charts that are named, not for paths and oci://"))
        return self


class Addon(Model):
    """Kubernetes objects that a plane always has, from exactly one source."""

    #: The name of the add-on.
    name: Annotated[str, AfterValidator(label_within(ADDON_NAME_MAX)), label(ADDON_NAME_MAX)]
    #: The namespace of namespaced objects that name none.
    namespace: Annotated[str, AfterValidator(dns_label), label(63)] = "default"
    #: The objects as YAML text.
    inline: Annotated[str, AfterValidator(_text), InSchema({"pattern": r"\S"})] | None = None
    #: A YAML or JSON file on this host.
    file: AbsolutePath | None = None
    #: A directory on this host; all of its YAML and JSON files are read.
    folder: AbsolutePath | None = None
    #: A Helm chart.
    helm: Chart | None = None

    @model_validator(mode="after")
    def _has_one_source(self) -> Addon:
        sources = ("inline", "file", "folder", "helm")
        given = [each for each in sources if getattr(self, each) is not None]
        if len(given) != 1:
            seen = " and ".join(given) if given else "none"
            refuse(("name", f"add-on {self.name!r} needs exactly one of {', '.join(sources)}, and has {seen}"))
        return self


def _named_once(addons: tuple[Addon, ...]) -> tuple[Addon, ...]:
    names = [each.name for each in addons]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"names add-on {name!r} twice")
    for own in (NODES_ADDON, CLOUD_ADDON, LOCKS_ADDON):
        if own in names:
            raise ValueError(f"names add-on {own!r}, which is quarterdeck's own")
    return addons


Addons = Annotated[tuple[Addon, ...], AfterValidator(_named_once), InSchema({"uniqueItems": True})]


class AddonStatus(Model):
    """The state of one add-on."""

    #: The name of the add-on.
    name: str
    #: The AddonManifests from which the whole add-on was last applied; empty before that.
    manifests: str = ""
    #: The digest of the applied content.
    digest: str = ""
    #: The number of objects.
    objects: Annotated[int, Field(ge=0)] = 0
    #: The digest of the fields that quarterdeck owns. It changes when somebody else takes over one of them.
    fields: str = ""
    #: When the add-on was last applied.
    applied_at: AwareDatetime | None = None
    #: Why the add-on is not applied, or what it waits for; empty if it is applied.
    why: str = ""
