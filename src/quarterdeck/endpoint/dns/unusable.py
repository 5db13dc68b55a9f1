"""The DNS port of an endpoint whose driver cannot be had, such as one whose key is gone: the name is not known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from quarterdeck.errors import QuarterdeckError, Unavailable
from quarterdeck.model.endpoints import Claim, PersonMust, Record, Sighting


@dataclass(frozen=True, slots=True)
class UnusableDns:
    """Says ``error`` to everything: to a look that nothing is known, so that what runs can be seen and waits."""

    error: QuarterdeckError

    async def check(self, name: str) -> None:
        """See ``Dns.check``."""
        raise self.error

    async def set(
        self, name: str, addresses: tuple[str, ...], ttl: int, claim: Claim | None = None
    ) -> PersonMust | None:
        """See ``Dns.set``."""
        self._refuse()

    async def observe(self, name: str) -> Record | None:
        """See ``Dns.observe``."""
        self._refuse()

    async def look(self, name: str) -> Sighting:
        """See ``Dns.look``."""
        self._refuse()

    async def remove(self, name: str, claim: Claim | None = None) -> PersonMust | None:
        """See ``Dns.remove``."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise Unavailable(self.error.doing, self.error.seen, self.error.next_step) from self.error
