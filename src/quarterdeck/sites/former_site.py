"""A site that a plane still names and whose declaration was deleted: its machines are known, and nothing answers."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Any, NoReturn, Self, TypeVar, cast

from quarterdeck.errors import Unavailable
from quarterdeck.model.capabilities import Capability
from quarterdeck.model.site_facts import MachineFacts, SiteFacts
from quarterdeck.model.units import Fence, Machine
from quarterdeck.sites.port import Holds, SitePort

T = TypeVar("T", bound=type)


def _refusing(*ports: type) -> Callable[[T], T]:
    """Make a class refuse each call of these ports that it does not answer by itself."""

    def filled(cls: T) -> T:
        for port in ports:
            for name, call in vars(port).items():
                if inspect.iscoroutinefunction(call) and name not in vars(cls):
                    setattr(cls, name, _refuse)
        return cls

    return filled


async def _refuse(site: _FormerSite, *given: Any, **named: Any) -> NoReturn:
    del named
    known = [each.name for each in site.known]
    machine = given[0] if given and given[0] in known else ", ".join(known)
    raise Unavailable(
        f"using machine {machine}", f"site {site.name} is no longer declared", "declare it again unchanged"
    )


@_refusing(SitePort, Holds)
class _FormerSite:
    def __init__(self, name: str, known: tuple[Machine, ...]) -> None:
        self.name = name
        self.known = known
        self.capabilities = frozenset[Capability]()

    def fenced(self, fence: Fence) -> Self:
        del fence
        return self

    async def machines(self) -> tuple[Machine, ...]:
        return self.known

    async def facts(self, below: str = "") -> SiteFacts:
        del below
        machines = tuple(MachineFacts(machine=each) for each in self.known)
        return SiteFacts(name=self.name, machines=machines, storage_classes=())

    async def storage_classes(self) -> tuple[str, ...]:
        return ()

    def folder(self, machine: str, unit: str) -> PurePosixPath:
        return PurePosixPath("/nowhere", machine, unit)


def former_site(name: str, known: tuple[Machine, ...]) -> SitePort:
    """Implements the ports Site and Holds. ``known`` are a plane's machines there, none of which can be reached."""
    return cast("SitePort", _FormerSite(name, known))
