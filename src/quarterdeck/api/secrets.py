"""PlaneSecrets: a plane's keys. Users neither declare nor list them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, SecretStr, SerializationInfo, field_serializer

from quarterdeck.api.base import Metadata, Resource, named_within
from quarterdeck.api.names import PLANE_NAME_MAX

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
