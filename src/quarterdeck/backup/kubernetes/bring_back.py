"""One object out of a backup as something to be applied: what of it is applied, and what that changes. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue

from quarterdeck.addons.objects import GroupKind, Manifest, group_kind, items, mapping, text_of

#: The field manager of what is brought back.
MANAGER: Final = "quarterdeck-backup"
#: What an apiserver writes, or what tells one object from another one of its name.
_ITS_OWN: Final = frozenset(
    {
        "creationTimestamp",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "generation",
        "managedFields",
        "resourceVersion",
        "selfLink",
        "uid",
    }
)
#: Finalizers of a deletion that was under way.
_OF_DELETION: Final = frozenset({"foregroundDeletion", "orphan"})
_REFUSED: Final[Mapping[GroupKind, str]] = {
    GroupKind("", "Node"): "a kubelet registers its node itself, with what it finds on the machine",
    GroupKind("", "Event"): "it tells what happened then, and expires",
    GroupKind("events.k8s.io", "Event"): "it tells what happened then, and expires",
    GroupKind("coordination.k8s.io", "Lease"): "its holder renews it all the time, and takes an old one for expired",
}
_POD, _JOB, _SECRET = GroupKind("", "Pod"), GroupKind("batch", "Job"), GroupKind("", "Secret")
_SERVICE_ACCOUNT: Final = GroupKind("", "ServiceAccount")
_VOLUMES: Final = frozenset({GroupKind("", "PersistentVolume"), GroupKind("", "PersistentVolumeClaim")})
#: The type of a Secret that has a token, and its annotations that say of which service account.
_TOKEN, _ACCOUNT = "kubernetes.io/service-account-token", "kubernetes.io/service-account"
#: What an apiserver adds to Jobs that choose their pods by the uid of the Job.
_JOB_LABELS: Final = frozenset({"batch.kubernetes.io/controller-uid", "controller-uid"})
#: The parts of a Secret that may have its values.
_SECRET_PARTS: Final = ("data", "stringData", "metadata.annotations")


@dataclass(frozen=True, slots=True)
class Owner:
    """A reference of an object to its owner."""

    api_version: str
    kind: str
    name: str
    uid: str

    @property
    def group(self) -> str:
        """The API group of its kind."""
        return self.api_version.rpartition("/")[0]


@dataclass(frozen=True, slots=True)
class FieldChange:
    """A field with two values; None where it is missing. ``hidden``: they must not be shown."""

    path: str
    before: JsonValue
    after: JsonValue
    hidden: bool = False


def why_not(document: Manifest) -> str:
    """Why an object cannot be brought back sensibly, in words; "" where it can."""
    kind = group_kind(document)
    if kind == _POD and (node := text_of(mapping(document.get("spec")).get("nodeName"))):
        return f"it was bound to node {node} and ran there; the controller that made it makes another one"
    return _REFUSED.get(kind, "")


def warnings(document: Manifest, *, created: bool) -> tuple[str, ...]:
    """What does not come back with an object, in words. ``created``: the plane has none of its name, so that it gets
    another uid.
    """
    kind = group_kind(document)
    if kind in _VOLUMES:
        return ("the data of its volume is not in the backup: it has what the storage has now, if that is still there",)
    if kind == _SERVICE_ACCOUNT and created:
        return ("it gets another uid: tokens that were issued for it before are refused",)
    if kind == _SECRET and text_of(document.get("type")) == _TOKEN:
        annotations = mapping(mapping(document.get("metadata")).get("annotations"))
        account, uid = (text_of(annotations.get(f"{_ACCOUNT}.{each}")) for each in ("name", "uid"))
        # kubernetes: pkg/controller/serviceaccount/tokens_controller.go
        return (
            f"its token is of service account {account} with uid {uid}: if that has another uid now, the token is"
            " refused, and the controller manager deletes the Secret",
        )
    return ()


def owners_of(document: Manifest) -> tuple[Owner, ...]:
    """The owners that an object names."""
    metadata = mapping(document.get("metadata"))
    return tuple(
        Owner(*(text_of(each.get(name)) for name in ("apiVersion", "kind", "name", "uid")))
        for each in items(metadata.get("ownerReferences"))
    )


def printable(document: Manifest) -> dict[str, JsonValue]:
    """An object as people read it: without ``managedFields``."""
    metadata = {name: value for name, value in mapping(document.get("metadata")).items() if name != "managedFields"}
    return {name: metadata if name == "metadata" else value for name, value in document.items()}


def applicable(document: Manifest, *, without: tuple[Owner, ...] = ()) -> dict[str, JsonValue]:
    """What of an object is applied: not its status, nor what the apiserver writes, nor the owners in ``without``."""
    metadata = {name: value for name, value in mapping(document.get("metadata")).items() if name not in _ITS_OWN}
    gone = {each.uid for each in without}
    kept: list[JsonValue] = [
        dict(each) for each in items(metadata.get("ownerReferences")) if text_of(each.get("uid")) not in gone
    ]
    finalizers = metadata.get("finalizers")
    if isinstance(finalizers, list):
        _put(metadata, "finalizers", [each for each in finalizers if each not in _OF_DELETION])
    _put(metadata, "ownerReferences", kept)
    made: dict[str, JsonValue] = {name: value for name, value in document.items() if name != "status"}
    made["metadata"] = metadata
    return _job(made) if group_kind(document) == _JOB else made


def _put(within: dict[str, JsonValue], name: str, value: list[JsonValue]) -> None:
    if value:
        within[name] = value
    else:
        within.pop(name, None)


def _job(manifest: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """A Job without the selector that an apiserver made from its uid: it makes another one from the new uid."""
    spec = dict(mapping(manifest.get("spec")))
    if spec.get("manualSelector") is True:
        return manifest
    spec.pop("selector", None)
    template = dict(mapping(spec.get("template")))
    template["metadata"] = _unlabelled(mapping(template.get("metadata")))
    return {
        **manifest,
        "metadata": _unlabelled(mapping(manifest.get("metadata"))),
        "spec": {**spec, "template": template},
    }


def _unlabelled(metadata: Manifest) -> dict[str, JsonValue]:
    labels = {name: value for name, value in mapping(metadata.get("labels")).items() if name not in _JOB_LABELS}
    others = {name: value for name, value in metadata.items() if name != "labels"}
    return {**others, "labels": labels} if labels else others


def field_changes(before: Manifest, after: Manifest) -> tuple[FieldChange, ...]:
    """The fields that differ between two states of an object, of what can be applied, in order of their paths."""
    secret = group_kind(after) == _SECRET
    found = sorted(_differing("", applicable(before), applicable(after)), key=lambda each: each.path)
    return tuple(
        FieldChange(each.path, None, None, hidden=True) if secret and each.path.startswith(_SECRET_PARTS) else each
        for each in found
    )


def _differing(path: str, before: JsonValue, after: JsonValue) -> Iterator[FieldChange]:
    if before == after:
        return
    if isinstance(before, dict) and isinstance(after, dict):
        for name in before.keys() | after.keys():
            yield from _differing(f"{path}.{name}" if path else name, before.get(name), after.get(name))
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for number, (was, now) in enumerate(zip(before, after, strict=True)):
            yield from _differing(f"{path}[{number}]", was, now)
    else:
        yield FieldChange(path, before, after)
