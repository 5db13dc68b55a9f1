"""What quarterdeck keeps of a plane besides its resource: its keys, the manifests of its add-ons, its drills."""

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
    """One add-on. ``data`` is what ``quarterdeck.addons.content`` makes of its objects; they may hold passwords, so it
    is hidden in every repr and dump but the store's, and sealed with the plane's keys.
    """

    name: str
    digest: str
    data: SecretStr

    @field_serializer("data")
    def _told_to_the_store_alone(self, data: SecretStr, info: SerializationInfo) -> str:
        reveal = isinstance(info.context, dict) and bool(info.context.get("reveal_secrets"))
        return data.get_secret_value() if reveal else str(data)


class AddonManifestsSpec(Model):
    """All add-ons of a plane, by name."""

    addons: tuple[AddonContent, ...]


class AddonManifests(Resource):
    """What a plane's add-ons are. Named by its content and never changed: other content is another one."""

    kind: Literal["AddonManifests"] = "AddonManifests"
    metadata: Annotated[Metadata, AfterValidator(named_within(PLANE_NAME_MAX + len(_MIDDLE) + _DIGITS))]
    spec: AddonManifestsSpec

    def addon(self, name: str) -> AddonContent | None:
        """One of them."""
        return next((each for each in self.spec.addons if each.name == name), None)


def manifests_of(plane: ControlPlane, contents: tuple[AddonContent, ...]) -> AddonManifests:
    """Those of a stored plane, with that content."""
    said = "\n".join(f"{each.name} {each.digest}" for each in sorted(contents, key=lambda each: each.name))
    name = f"{plane.name}{_MIDDLE}{hashlib.sha256(said.encode()).hexdigest()[:_DIGITS]}"
    spec = AddonManifestsSpec(addons=tuple(sorted(contents, key=lambda each: each.name)))
    return AddonManifests(metadata=Metadata(name=name, owner_references=(owner_reference(plane),)), spec=spec)


#: The context that makes a dump tell secrets; only the store gives it.
REVEAL = {"reveal_secrets": True}


class PlaneSecrets(Resource):
    """The keys of the plane of the same name that has the uid ``plane_uid``: another one of that name never gets them.
    ``data`` is hidden in every repr and dump but the store's.
    """

    kind: Literal["PlaneSecrets"] = "PlaneSecrets"
    metadata: Annotated[Metadata, AfterValidator(named_within(PLANE_NAME_MAX))]
    plane_uid: str | None = None
    data: SecretStr

    @field_serializer("data")
    def _told_to_the_store_alone(self, data: SecretStr, info: SerializationInfo) -> str:
        reveal = isinstance(info.context, dict) and bool(info.context.get("reveal_secrets"))
        return data.get_secret_value() if reveal else str(data)


class DrillPhase(StrEnum):
    """How far it is. ``INTERRUPTED``: whoever made it ended, or met what it could not go on from; the fault is undone
    all the same.
    """

    RUNNING = "Running"
    PASSED = "Passed"
    FAILED = "Failed"
    INTERRUPTED = "Interrupted"


class DrillSpec(Model):
    """What was to fail. ``number`` counts the plane's drills; ``struck`` says what was struck, in sentences; ``hold``:
    for how many seconds at most.
    """

    plane: PlaneName
    number: Annotated[int, Field(ge=0)]
    fail: Fail
    struck: tuple[str, ...] = ()
    hold: float
    dangerous: bool = False
    scheduled: bool = False
    requested_by: str = ""


class DrillStatus(Model):
    """What came of it. Times are seconds from the failure on; None: it did not come to that. ``detected``: a look found
    that the plane is not as it was, or, of a slow disk, that its manager tells of it. ``served_again``: clients were
    answered for good (0: they always were). ``last_failure``: the last request that failed had done so;
    ``last_failed_sent``: it was sent, of those that were not under way when it began; ``failures``: the first of them,
    in words. ``undone``: the failure was taken back (None: it is over by itself). ``redundant``: the plane was as
    before, and survived all that it did. ``message``: why it is not passed, or not to its end; ``left`` what is left of
    it, in sentences.
    """

    phase: DrillPhase = DrillPhase.RUNNING
    started_at: AwareDatetime | None = None
    finished_at: AwareDatetime | None = None
    detected: float | None = None
    served_again: float | None = None
    last_failure: float | None = None
    last_failed_sent: float | None = None
    undone: float | None = None
    redundant: float | None = None
    requests: int = 0
    failed: int = 0
    failures: tuple[str, ...] = ()
    longest_stall_milliseconds: float = 0.0
    acknowledged: int = 0
    lost: int = 0
    missed: int = 0
    message: str = ""
    left: tuple[str, ...] = ()


class Drill(Resource):
    """A drill."""

    kind: Literal["Drill"] = "Drill"
    spec: DrillSpec
    status: DrillStatus = DrillStatus()
