"""Which apiservers a load balancer sends to, seen by who connects through it: each shows a certificate of its own."""

from __future__ import annotations

import asyncio
import hashlib
import math
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto

from quarterdeck.model.endpoints import BackendAddress

#: Of how many looks one may take a backend for none that is one.
_WRONG = 1e-6
#: Connections that are made in each look at least, and so many at once.
_EACH_LOOK, _AT_ONCE = 8, 8
_DEADLINE = 3.0


class Nobody(Enum):
    """What became of a connection that led to no apiserver of the plane."""

    REFUSED = auto()  # or cut, or led to somebody else
    SILENT = auto()


def enough(backends: int) -> int:
    """Connections after which it is sure that one of so many backends, to which none of them has led, is none: where
    each is led to at random, and so the more where they take turns.
    """
    return 1 if backends < 2 else math.ceil(math.log(_WRONG) / math.log(1 - 1 / backends))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """What the last connections led to, the newest last; ``newest`` of them were made in this look."""

    led: tuple[str | Nobody, ...]
    newest: int

    @property
    def names(self) -> frozenset[str]:
        """The replicas that they led to."""
        return frozenset(each for each in self.led if isinstance(each, str))

    @property
    def leads(self) -> bool:
        """Whether any that was just made led to one."""
        return any(isinstance(each, str) for each in self.led[-self.newest :])

    @property
    def silent(self) -> bool:
        """Whether nothing at all answered just now."""
        return all(each is Nobody.SILENT for each in self.led[-self.newest :])

    def describe(self) -> str:
        """In words."""
        failed = sum(not isinstance(each, str) for each in self.led)
        seen = ", ".join(sorted(self.names)) or "no apiserver"
        return f"{len(self.led)} connections led to {seen}" + (f"; {failed} of them to nobody" if failed else "")


def unsure(sample: Sample, replicas: Sequence[str], wanted: frozenset[str] | None) -> frozenset[str]:
    """The replicas of which ``sample`` does not say whether the load balancer sends to them. One that always sends the
    same client to the same backend shows that one alone; who wants no other need not know of this.
    """
    others = frozenset(replicas) - sample.names
    if len(sample.led) < enough(len(replicas)):
        return others
    return others if len(sample.names) == 1 and sample.names != wanted else frozenset()


@dataclass(slots=True, kw_only=True)
class Outside:
    """Looks at the load balancer at ``address``. ``trust`` believes the plane's authority, and shows nothing;
    ``server_name`` is in the certificate of every apiserver.
    """

    address: BackendAddress
    trust: ssl.SSLContext = field(repr=False)
    server_name: str
    _led: list[str | Nobody] = field(default_factory=list)
    _shown: dict[str, str] = field(default_factory=dict)

    async def sample(self, replicas: Mapping[str, BackendAddress]) -> Sample:
        """Connect so often that what is seen is sure of these replicas."""
        most = max(enough(len(replicas)), _EACH_LOOK)
        count = max(_EACH_LOOK, most - len(self._led))
        seen: list[str | Nobody] = []
        while len(seen) < count:
            seen += await asyncio.gather(*(self._shows(self.address) for _ in range(min(_AT_ONCE, count - len(seen)))))
            if all(each is Nobody.SILENT for each in seen):
                break  # each would be waited for as long again
        self._shown = {shown: name for shown, name in self._shown.items() if name in replicas}
        if any(isinstance(each, str) and each not in self._shown for each in seen):
            await self._learn(replicas)
        new = [each if isinstance(each, Nobody) else self._shown.get(each, Nobody.REFUSED) for each in seen]
        self._led = [*self._led, *new][-most:]
        return Sample(led=tuple(self._led), newest=len(new))

    async def _learn(self, replicas: Mapping[str, BackendAddress]) -> None:
        """Which certificate each shows: asked without the load balancer."""
        shown = await asyncio.gather(*(self._shows(each) for each in replicas.values()))
        self._shown |= {each: name for name, each in zip(replicas, shown, strict=True) if isinstance(each, str)}

    async def _shows(self, at: BackendAddress) -> str | Nobody:
        """The digest of the certificate that is shown there."""
        try:
            async with asyncio.timeout(_DEADLINE):
                _, writer = await asyncio.open_connection(
                    at.ip, at.port, ssl=self.trust, server_hostname=self.server_name
                )
        except TimeoutError:
            return Nobody.SILENT
        except OSError:
            return Nobody.REFUSED
        certificate = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        writer.transport.abort()
        return hashlib.sha256(certificate).hexdigest()
