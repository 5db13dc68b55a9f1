"""CloudControllerManager: the program that knows the cloud which a plane's nodes are in."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from quarterdeck.api.base import Model
from quarterdeck.api.flags import Flags
from quarterdeck.api.names import shortened
from quarterdeck.api.problems import refuse, refuse_if_any
from quarterdeck.api.schema import InSchema
from quarterdeck.api.values import AbsolutePath

_PROVIDER = "[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
#: Characters of an image's name; what is in it is its registry's matter.
_IMAGE_MAX = 512
#: What providers read at a start, in characters.
_CONFIG_MAX = 2**16


def _provider(text: str) -> str:
    if re.fullmatch(_PROVIDER, text) is None:
        raise ValueError(f"{shortened(text)} is not the name of a cloud provider, such as aws or openstack")
    return text


def _image(text: str) -> str:
    if not text or len(text) > _IMAGE_MAX or any(each.isspace() for each in text):
        raise ValueError(f"{shortened(text)} is not the name of an image, such as registry.example/ccm:v1.36.0")
    return text


class CloudControllerManager(Model):
    """A program that keeps the usual flags of ``k8s.io/cloud-provider``: a file at ``program`` on the host that
    quarterdeck runs on, or an ``image`` where sites run images. It is known by that path or name: another version has
    another one. ``provider`` is its ``--cloud-provider`` (None: as it decides itself), ``config`` the content of the
    file that ``--cloud-config`` names (None: it has none), ``flags`` all others.
    """

    program: AbsolutePath | None = None
    image: Annotated[str, AfterValidator(_image), InSchema({"pattern": r"^\S+$", "maxLength": _IMAGE_MAX})] | None = (
        None
    )
    provider: (
        Annotated[str, AfterValidator(_provider), InSchema({"pattern": f"^{_PROVIDER}$", "maxLength": 63})] | None
    ) = None
    config: Annotated[str, Field(min_length=1, max_length=_CONFIG_MAX)] | None = None
    flags: Flags = Field(default_factory=dict)

    @model_validator(mode="after")
    def _is_said_once(self) -> CloudControllerManager:
        if (self.program is None) == (self.image is None):
            refuse(("program", "give either this, or image"))
        twice = (("cloud-provider", "provider", self.provider), ("cloud-config", "config", self.config))
        refuse_if_any(
            [
                (f"flags.{flag}", f"is given, and {name} is, too")
                for flag, name, value in twice
                if flag in self.flags and value
            ]
        )
        return self
