"""What quarterdeck stores of a plane besides its resource: its keys, the manifests of its add-ons, its drills."""

from __future__ import annotations

import hashlib
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import AfterValidator, AwareDatetime, Field, SecretStr, SerializationInfo, field_serializer

from quarterdeck.api.base import Metadata, Model, Resource, named_within, owner_reference
from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.names import PLANE_NAME_MAX
from quarterdeck.api.operation import PlaneName
from quarterdeck.model.faults import Fail

#: Hexadecimal digits of the content's hash in a name.
_DIGITS = 10
_MIDDLE = "-addons-"


class AddonContent(Model):
    """One add-on. ``data`` is the output of ``quarterdeck.addons.content`` for its objects; they may contain passwords,
    so it is hidden in every repr and dump but the store's, and sealed with the plane's keys.
    """

    name: str
    digest: str
    data: SecretStr

    @field_serializer("data")
    def _reveal_to_store(self, data: SecretStr, info: SerializationInfo) -> str:
        reveal = isinstance(info.context, dict) and bool(info.context.get("reveal_secrets"))
        return data.get_secret_value() if reveal else str(data)


class AddonManifestsSpec(Model):
    """All add-ons of a plane, by name."""

    addons: tuple[AddonContent, ...]


class AddonManifests(Resource):
    """The add-ons of a plane. Named by a hash of the content and immutable: other content is another resource."""

    kind: Literal["AddonManifests"] = "AddonManifests"
    metadata: Annotated[Metadata, AfterValidator(named_within(PLANE_NAME_MAX + len(_MIDDLE) + _DIGITS))]
    spec: AddonManifestsSpec

    def addon(self, name: str) -> AddonContent | None:
        """One of them."""
        return next((each for each in self.spec.addons if each.name == name), None)


def manifests_of(plane: ControlPlane, contents: tuple[AddonContent, ...]) -> AddonManifests:
    """Those of a stored plane, with that content."""
    listing = "\n".join(f"{each.name} {each.digest}" for each in sorted(contents, key=lambda each: each.name))
    name = f"{plane.name}{_MIDDLE}{hashlib.sha256(listing.encode()).hexdigest()[:_DIGITS]}"
    spec = AddonManifestsSpec(addons=tuple(sorted(contents, key=lambda each: each.name)))
    return AddonManifests(metadata=Metadata(name=name, owner_references=(owner_reference(plane),)), spec=spec)


#: The context in which a dump contains secrets; only the store sets it.
REVEAL = {"reveal_secrets": True}


class PlaneSecrets(Resource):
    """The keys of the plane of the same name that has the uid ``plane_uid``: a later plane of that name never gets
    them. ``data`` is hidden in every repr and dump but the store's.
    """

    kind: Literal["PlaneSecrets"] = "PlaneSecrets"
    metadata: Annotated[Metadata, AfterValidator(named_within(PLANE_NAME_MAX))]
    plane_uid: str | None = None
    data: SecretStr

    @field_serializer("data")
    def _reveal_to_store(self, data: SecretStr, info: SerializationInfo) -> str:
        reveal = isinstance(info.context, dict) and bool(info.context.get("reveal_secrets"))
        return data.get_secret_value() if reveal else str(data)


class DrillPhase(StrEnum):
    """The progress of a drill. ``INTERRUPTED``: its process ended, or met an error that it could not handle; the fault
    is undone nevertheless.
    """

    RUNNING = "Running"
    PASSED = "Passed"
    FAILED = "Failed"
    INTERRUPTED = "Interrupted"


class DrillSpec(Model):
    """The failure of a drill."""

    plane: PlaneName
    #: The count of the plane's drills.
    number: Annotated[int, Field(ge=0)]
    fail: Fail
    #: What fails, in sentences.
    struck: tuple[str, ...] = ()
    #: Longest duration of the fault, in seconds.
    hold: float
    dangerous: bool = False
    scheduled: bool = False
    requested_by: str = ""


class DrillStatus(Model):
    """The result of a drill. Times are seconds from the fault on; None: that did not happen."""

    phase: DrillPhase = DrillPhase.RUNNING
    started_at: AwareDatetime | None = None
    finished_at: AwareDatetime | None = None
    #: An observation found the plane impaired; for a slow disk, the manager reported it.
    detected: float | None = None
    #: Clients were served again for good (0: they always were).
    served_again: float | None = None
    #: The last failing request ended.
    last_failure: float | None = None
    #: The last failing request was sent, of those that were not in flight at the fault.
    last_failed_sent: float | None = None
    #: The fault was undone (None: it ended by itself).
    undone: float | None = None
    #: The plane had recovered, and survived all failures that it did before.
    redundant: float | None = None
    requests: int = 0
    failed: int = 0
    #: The first failed requests, described.
    failures: tuple[str, ...] = ()
    longest_stall_milliseconds: float = 0.0
    acknowledged: int = 0
    lost: int = 0
    missed: int = 0
    #: Of a restore beside the plane: seconds of writes that would have been lost.
    lost_seconds: float | None = None
    #: Seconds until an apiserver served the restored objects.
    restored: float | None = None
    #: Objects that the restored plane and the plane have alike.
    objects: int = 0
    #: Why it failed, or is incomplete.
    message: str = ""
    #: The remains of the fault, in sentences.
    left: tuple[str, ...] = ()


class Drill(Resource):
    """A drill."""

    kind: Literal["Drill"] = "Drill"
    spec: DrillSpec
    status: DrillStatus = DrillStatus()
