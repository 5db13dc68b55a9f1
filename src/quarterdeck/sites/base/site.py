"""A site as all drivers have it: machines and storage classes by name, and the fence of whoever asks."""

from __future__ import annotations

import asyncio
import copy
from abc import abstractmethod
from collections import defaultdict
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Generic, Self, TypeVar

from typing_extensions import override

from quarterdeck.errors import NotFound, PreconditionFailed
from quarterdeck.model.programs import Program
from quarterdeck.model.units import Fence
from quarterdeck.sites.port import Site

M = TypeVar("M")
C = TypeVar("C")


class BaseSite(Site, Generic[M, C]):
    """A site with machines of type ``M`` and storage classes of type ``C``, each by its name; the first storage class
    is the default. Views for fences (``fenced``) share all but the fence.
    """

    def __init__(self, name: str, machines: Mapping[str, M], storage_classes: Mapping[str, C]) -> None:
        self._name = name
        self._machines = machines
        self._classes = storage_classes
        self._fence: Fence | None = None
        self._unit_locks: defaultdict[tuple[str, str], asyncio.Lock] = defaultdict(asyncio.Lock)

    @property
    @override
    def name(self) -> str:
        return self._name

    @override
    def fenced(self, fence: Fence) -> Self:
        view = copy.copy(self)
        view._fence = fence  # noqa: SLF001 - of its own class
        return view

    @override
    async def storage_classes(self) -> tuple[str, ...]:
        return tuple(self._classes)

    def storage_class(self, doing: str, name: str) -> C:
        """A storage class of the site. No IO. Raises NotFound."""
        try:
            return self._classes[name]
        except KeyError:
            offered = ", ".join(self._classes)
            raise NotFound(doing, f"there is no storage class {name}", f"choose of: {offered}") from None

    def _machine(self, name: str) -> M:
        """A machine of the site. No IO. Raises NotFound."""
        try:
            return self._machines[name]
        except KeyError:
            offered = ", ".join(self._machines)
            doing, seen = f"using machine {name}", f"site {self.name} has no such machine"
            raise NotFound(doing, seen, f"there are: {offered}") from None

    @abstractmethod
    async def _reached(self, name: str) -> M:
        """A machine that answers, as far as the driver can tell before it asks something. Raises NotFound,
        Unavailable.
        """

    @abstractmethod
    async def _admitted(self, name: str) -> M:
        """``_reached``, to change something. Raises LeaseLost for an older fence."""

    def _file_of(self, doing: str, program: Program) -> PurePosixPath:
        """The file of a program. Raises PreconditionFailed for one that is only an image."""
        if program.path is None:
            raise PreconditionFailed(doing, f"site {self.name} runs files, not images", "name a file")
        return program.path
