"""Every change of the Leases in kube-system, over HTTPS: a list, and from there one watch after another."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, field, replace

from pydantic import ValidationError

from quarterdeck.errors import TimedOut, Unavailable
from quarterdeck.http import NoAnswer
from quarterdeck.kube.documents import LeaseDocument, LeaseListDocument, StatusDocument, WatchEvent
from quarterdeck.kube.port import SeenLease

#: Seconds for which one watch is open. An apiserver ends it then, so that one that does not is known to be silent.
WATCHED = 5
_EXPIRED = 410


class _Expired(Exception):
    """What is watched from is too old for the apiserver."""


@dataclass(kw_only=True)
class LeaseWatch:
    """Of one apiserver, ``where`` in words. ``listed`` asks for all of them, ``lines`` for those of a watch from a
    resource version on for so many seconds; ``deadline`` (s) is how much later than that a line may come.
    """

    where: str
    listed: Callable[[], Awaitable[LeaseListDocument]]
    lines: Callable[[str, int], AsyncGenerator[bytes, None]]
    deadline: float
    _known: dict[str, SeenLease] = field(default_factory=dict)

    async def changes(self) -> AsyncGenerator[SeenLease, None]:
        """See ``Kube.lease_changes``."""
        version = ""
        while True:
            if not version:
                found = await self.listed()
                version = found.metadata.resource_version
                for each in self._as_listed(found):
                    yield each
            before = version
            try:
                async with aclosing(self._lines(version)) as lines:
                    async for line in lines:
                        seen = self._event(line)
                        version = seen.resource_version
                        yield seen
            except _Expired:
                version = ""
            if version == before:
                version = ""  # a watch is served by an apiserver without its etcd as well, a list is not

    def _as_listed(self, found: LeaseListDocument) -> list[SeenLease]:
        there = {each.metadata.name: each.lease() for each in found.items}
        gone = [replace(each, deleted=True) for name, each in self._known.items() if name not in there]
        self._known = there
        return [*gone, *there.values()]

    async def _lines(self, version: str) -> AsyncGenerator[bytes, None]:
        """The lines of one watch; nothing is read ahead of who asks for them."""
        lines = self.lines(version, WATCHED)
        try:
            while True:
                try:
                    async with asyncio.timeout(WATCHED + self.deadline):
                        line = await anext(lines, None)
                except TimeoutError:
                    raise TimedOut(self._doing, f"nothing for {WATCHED + self.deadline:g} s") from None
                except NoAnswer as error:
                    raise Unavailable(self._doing, "connection refused" if error.refused else str(error)) from error
                if line is None:
                    return
                yield line
        finally:
            await lines.aclose()

    def _event(self, line: bytes) -> SeenLease:
        """What an event tells. Raises _Expired, Unavailable."""
        try:
            event = WatchEvent.model_validate_json(line)
            if event.type == "ERROR":
                status = StatusDocument.model_validate(event.object)
                if status.code == _EXPIRED:
                    raise _Expired
                raise Unavailable(self._doing, f"it answered {status.code}: {status.message}")
            seen = LeaseDocument.model_validate(event.object).lease(deleted=event.type == "DELETED")
        except ValidationError as error:
            raise Unavailable(self._doing, str(error).replace("\n", " ")) from error
        if seen.deleted:
            self._known.pop(seen.name, None)
        else:
            self._known[seen.name] = seen
        return seen

    @property
    def _doing(self) -> str:
        return f"watching the leases that {self.where} has"
