"""The DNS port for an endpoint that is an address: there is no name, and nothing ever changes."""

from __future__ import annotations

from dataclasses import dataclass

from quarterdeck.endpoint.dns.records import record_of
from quarterdeck.errors import PreconditionFailed
from quarterdeck.model.endpoints import Claim, PersonMust, Record, Sighting


@dataclass(frozen=True, slots=True)
class FixedAddress:
    """Clients hold ``address`` for good, so the load balancer there (the plane's front) stays for good.

    A migration moves the backends behind the front, never the address: the front's backends are the replicas
    that serve, at whichever site, and it is not taken down before the plane is. Who wants to be rid of the
    front's site needs a name, or must carry the address elsewhere by means of their own network.
    """

    address: str

    async def check(self, name: str) -> None:
        """See ``Dns.check``: the address must be one."""
        record_of((self.address,), 0)

    async def set(
        self, name: str, addresses: tuple[str, ...], ttl: int, claim: Claim | None = None
    ) -> PersonMust | None:
        """Nothing, if clients are to be led to the address itself; raises PreconditionFailed for any other."""
        if record_of(addresses, 0) != await self.observe(name):
            raise PreconditionFailed(
                f"leading clients of {self.address} to {' '.join(addresses)}",
                "the endpoint is a fixed address, which cannot lead elsewhere",
                "keep the load balancer at that address in front, or give the endpoint a name",
            )
        return None

    async def observe(self, name: str) -> Record | None:
        """The address; clients never ask again, and never need to (time to live 0)."""
        return record_of((self.address,), 0)

    async def look(self, name: str) -> Sighting:
        """See ``Dns.look``: it is the plane's whatever a driver does, and clients ask nobody."""
        return Sighting(record=await self.observe(name), by_hand=True, servers=0)

    async def remove(self, name: str, claim: Claim | None = None) -> PersonMust | None:
        """Nothing: there is no record."""
        return None
