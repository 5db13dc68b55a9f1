"""Storage classes: kinds of volumes that a site offers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Annotated, TypeAlias

from pydantic import AfterValidator, Field, model_validator

from quarterdeck.api.base import Model
from quarterdeck.api.names import shortened
from quarterdeck.api.schema import SOME, refuse_if_any
from quarterdeck.api.values import AbsolutePath, Bytes, StorageClassName

#: The placeholders in a command that attaches volumes: docs/how-to/storage.md.
PLACEHOLDERS = ("volume", "storageClass", "host", "address", "path", "make", "snapshot")
_BRACES = re.compile(r"\{([A-Za-z]+)\}")


class StorageClass(Model):
    """A kind of volume of a local site."""

    #: The name of the storage class.
    name: StorageClassName
    #: The directory of the volumes; without it, one in quarterdeck's home.
    path: AbsolutePath | None = None
    #: The total size of all volumes.
    limit_bytes: Annotated[Bytes, Field(ge=2**20)] | None = None
    #: Whether a volume outlives its machine and can be attached to another one.
    reattachable: bool = False


def _command(words: tuple[str, ...]) -> tuple[str, ...]:
    if not words or not words[0]:
        raise ValueError("is not a command")
    if any("\0" in word for word in words):
        raise ValueError("contains a zero byte")
    unknown = [name for word in words for name in _BRACES.findall(word) if name not in PLACEHOLDERS]
    if unknown:
        known = ", ".join(f"{{{each}}}" for each in PLACEHOLDERS)
        raise ValueError(f"{shortened('{' + unknown[0] + '}')} is not a placeholder; there are {known}")
    return words


Command = Annotated[tuple[str, ...], AfterValidator(_command), SOME]


class HostStorageClass(Model):
    """A kind of volume on hosts. See docs/how-to/storage.md."""

    #: The name of the storage class.
    name: StorageClassName
    #: The directory of the volumes on each host; without it, quarterdeck's own.
    path: AbsolutePath | None = None
    #: The total size of all volumes on one host.
    limit_bytes: Annotated[Bytes, Field(ge=2**20)] | None = None
    #: The command that attaches a volume to a host; this host runs it. With `attach` and `detach`, volumes outlive
    #: their hosts.
    attach: Command | None = None
    #: The command that detaches a volume from a host.
    detach: Command | None = None
    #: The command that copies a volume.
    snapshot: Command | None = None

    @model_validator(mode="after")
    def _commands_belong_together(self) -> HostStorageClass:
        problems = []
        for given, other in (("attach", "detach"), ("detach", "attach"), ("snapshot", "attach")):
            if getattr(self, given) is not None and getattr(self, other) is None:
                problems.append((other, f"is missing: {given} needs it"))
        refuse_if_any(problems)
        return self

    @property
    def reattachable(self) -> bool:
        """Whether its volumes can be attached to other hosts."""
        return self.attach is not None


#: Of any kind of site.
AnyStorageClass: TypeAlias = StorageClass | HostStorageClass

#: The default of a site that declares none.
STANDARD = (StorageClass(name="standard"),)
HOSTS_STANDARD = (HostStorageClass(name="standard"),)


def class_problems(classes: Sequence[AnyStorageClass]) -> Iterator[tuple[str, str]]:
    """The problems of one site's storage classes, each by its field."""
    if not classes:
        yield "storageClasses", "is empty; a site has at least one storage class"
    if len({each.name for each in classes}) < len(classes):
        yield "storageClasses", "names a storage class twice"


def host_class_problems(classes: Sequence[HostStorageClass]) -> Iterator[tuple[str, str]]:
    """The same for those of hosts. Each host keeps its own volumes in the first one (audit logs), which have the same
    name on all of them.
    """
    yield from class_problems(classes)
    if classes and classes[0].reattachable:
        yield (
            "storageClasses[0].attach",
            "the first storage class is for each host's own volumes: put a local one first",
        )
