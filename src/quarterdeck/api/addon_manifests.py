"""AddonManifests: the objects of a plane's add-ons, as they were read when they were asked for."""

from __future__ import annotations

import hashlib
from typing import Annotated, Literal

from pydantic import AfterValidator, SecretStr, SerializationInfo, field_serializer

from quarterdeck.api.base import Metadata, Model, Resource, named_within, owner_reference
from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.names import PLANE_NAME_MAX

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
