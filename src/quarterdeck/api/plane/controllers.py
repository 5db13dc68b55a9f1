"""Controllers: the manager that runs each of them where there are two, and the cloud controller manager."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from quarterdeck.api.base import Model
from quarterdeck.api.flags import Flags
from quarterdeck.api.names import DNS_LABEL_MAX, DNS_NAME_MAX, dns_label, dns_name, shortened
from quarterdeck.api.schema import NAME, ONCE, SOME_ONCE, InSchema, label, refuse, refuse_if_any
from quarterdeck.api.values import AbsolutePath
from quarterdeck.model.components import Component

#: Locks that programs of a replica use themselves.
_TAKEN = frozenset({"kube-controller-manager", "kube-scheduler", "cloud-controller-manager"})


class ControllerProgram(StrEnum):
    """A program that runs controllers."""

    KUBE = "kube-controller-manager"
    CLOUD = "cloud-controller-manager"

    @property
    def component(self) -> Component:
        """The program of a replica."""
        return Component.CONTROLLER_MANAGER if self is ControllerProgram.KUBE else Component.CLOUD_CONTROLLER_MANAGER

    @property
    def other(self) -> ControllerProgram:
        """The program that a set can move to."""
        return ControllerProgram.CLOUD if self is ControllerProgram.KUBE else ControllerProgram.KUBE


def _lock(name: str) -> str:
    if name in _TAKEN:
        raise ValueError(f"{name!r} is the lock of all controllers in that program")
    return dns_name(name)


class ControllerSetSpec(Model):
    """Controllers that move from one manager to another together. The members of a set cannot change."""

    #: The name of the set.
    name: Annotated[str, AfterValidator(dns_label), label(DNS_LABEL_MAX)]
    #: The Lease in kube-system that both managers use while controllers move (the *migration lock*).
    lock: Annotated[str, AfterValidator(_lock), NAME, Field(max_length=DNS_NAME_MAX)]
    #: The canonical names of the controllers.
    controllers: Annotated[tuple[str, ...], Field(min_length=1), SOME_ONCE]
    #: The manager that runs the controllers.
    owner: ControllerProgram


def _apart(sets: tuple[ControllerSetSpec, ...]) -> tuple[ControllerSetSpec, ...]:
    """Raises ValueError where two sets could not be distinguished."""
    for what, each in (
        ("two sets have the name", (one.name for one in sets)),
        ("two sets have the lock", (one.lock for one in sets)),
        ("in two sets, or twice in one, is", (name for one in sets for name in one.controllers)),
    ):
        if twice := _twice(each):
            raise ValueError(f"{what} {twice}")
    return sets


def _twice(names: Iterable[str]) -> str:
    return ", ".join(name for name, count in Counter(names).items() if count > 1)


ControllerSets = Annotated[tuple[ControllerSetSpec, ...], AfterValidator(_apart), ONCE]


_PROVIDER = "[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
#: Longest name of an image; the registry checks the rest.
_IMAGE_MAX = 512
#: Longest content of a provider's configuration, in characters.
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
    """A cloud controller manager with the usual flags of `k8s.io/cloud-provider`. Give `program` or `image`."""

    #: The program, a file on this host. Another version needs another path.
    program: AbsolutePath | None = None
    #: The image, where the site runs images. Another version needs another name.
    image: Annotated[str, AfterValidator(_image), InSchema({"pattern": r"^\S+$", "maxLength": _IMAGE_MAX})] | None = (
        None
    )
    #: The value of `--cloud-provider`; without it, the program decides.
    provider: (
        Annotated[str, AfterValidator(_provider), InSchema({"pattern": f"^{_PROVIDER}$", "maxLength": 63})] | None
    ) = None
    #: The content of the file for `--cloud-config`; without it, there is none.
    config: Annotated[str, Field(min_length=1, max_length=_CONFIG_MAX)] | None = None
    #: Other flags.
    flags: Flags = Field(default_factory=dict)

    @model_validator(mode="after")
    def _is_unambiguous(self) -> CloudControllerManager:
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
