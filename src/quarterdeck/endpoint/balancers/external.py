"""The load balancer port for the user's own load balancer: a person, or a command of theirs, configures its
backends.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto

from typing_extensions import override

from quarterdeck.components.endings import last_reason
from quarterdeck.endpoint.port import SeenFromOutside
from quarterdeck.errors import TimedOut, Unavailable
from quarterdeck.model.endpoints import BackendAddress, BackendsMust, BalancerStatus
from quarterdeck.model.site_facts import SiteFacts
from quarterdeck.runner import run

# The backends of a load balancer, found by connecting through it: each apiserver shows a certificate of its own.

#: One of that many observations may wrongly miss a backend.
_WRONG = 1e-6
#: The fewest connections of each observation, and the most at once.
_EACH_LOOK, _AT_ONCE = 8, 8
_DEADLINE = 3.0


class Nobody(Enum):
    """The result of a connection that led to no apiserver of the plane."""

    REFUSED = auto()  # or cut, or led to another server
    SILENT = auto()


def enough(backends: int) -> int:
    """The number of connections after which it is certain that a backend which none of them reached is not one of this
    many: with a random choice, and all the more with round robin.
    """
    return 1 if backends < 2 else math.ceil(math.log(_WRONG) / math.log(1 - 1 / backends))


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionSample:
    """The targets of the last connections, the newest last; ``newest`` of them were made in this observation."""

    led: tuple[str | Nobody, ...]
    newest: int

    @property
    def names(self) -> frozenset[str]:
        """The replicas that they reached."""
        return frozenset(each for each in self.led if isinstance(each, str))

    @property
    def leads(self) -> bool:
        """Whether any of the newest reached one."""
        return any(isinstance(each, str) for each in self.led[-self.newest :])

    @property
    def silent(self) -> bool:
        """Whether nothing at all answered now."""
        return all(each is Nobody.SILENT for each in self.led[-self.newest :])

    def describe(self) -> str:
        """The result as text."""
        failed = sum(not isinstance(each, str) for each in self.led)
        seen = ", ".join(sorted(self.names)) or "no apiserver"
        return f"{len(self.led)} connections led to {seen}" + (f"; {failed} of them failed" if failed else "")


def unsure(sample: ConnectionSample, replicas: Sequence[str], wanted: frozenset[str] | None) -> frozenset[str]:
    """The replicas of which ``sample`` does not show whether they are backends. A load balancer that always sends the
    same client to the same backend shows only that one; if no other is expected, nothing else needs to be known.
    """
    others = frozenset(replicas) - sample.names
    if len(sample.led) < enough(len(replicas)):
        return others
    return others if len(sample.names) == 1 and sample.names != wanted else frozenset()


@dataclass(slots=True, kw_only=True)
class Outside:
    """Observes the load balancer at ``address``. ``trust`` trusts the plane's authority, and presents no certificate;
    ``server_name`` is in the certificate of every apiserver.
    """

    address: BackendAddress
    trust: ssl.SSLContext = field(repr=False)
    server_name: str
    _led: list[str | Nobody] = field(default_factory=list)
    _shown: dict[str, str] = field(default_factory=dict)

    async def sample(self, replicas: Mapping[str, BackendAddress]) -> ConnectionSample:
        """Connect until the result is certain for these replicas."""
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
        return ConnectionSample(led=tuple(self._led), newest=len(new))

    async def _learn(self, replicas: Mapping[str, BackendAddress]) -> None:
        """The certificate of each, read without the load balancer."""
        shown = await asyncio.gather(*(self._shows(each) for each in replicas.values()))
        self._shown |= {each: name for name, each in zip(replicas, shown, strict=True) if isinstance(each, str)}

    async def _shows(self, at: BackendAddress) -> str | Nobody:
        """The digest of the certificate that is served there."""
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


#: The health check that such a load balancer should use, and its limits; seconds. It must tolerate elections of etcd.
_PATH, _EVERY, _TIMEOUT, _FAILURES = "/readyz", 2, 2, 3
_CHECK = (
    f"health check of each: HTTPS GET {_PATH} every {_EVERY} s, {_TIMEOUT} s for an answer, removed after "
    f"{_FAILURES} failures; TCP passed through, round robin, without idle timeout; connections to a removed "
    "backend stay open"
)
_COMMAND_DEADLINE = 60.0
_BETWEEN = 0.5


@dataclass(slots=True, kw_only=True)
class BalancerCommand:
    """A command of the user's, which receives the desired backends as JSON on its standard input: once, for whichever
    of the load balancer's addresses.
    """

    words: tuple[str, ...]
    sent: bytes | None = None
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def tell(self, wanted: bytes) -> None:
        """Raises Unavailable when it cannot be run, or fails, TimedOut when it does not end."""
        async with self._lock:
            if self.sent != wanted:
                await self._run(wanted)
                self.sent = wanted

    async def _run(self, wanted: bytes) -> None:
        doing = f"running {self.words[0]}, which configures the load balancer"
        try:
            ended = await run(self.words, doing=doing, deadline=_COMMAND_DEADLINE, given=wanted)
        except OSError as error:
            seen = error.strerror or str(error)
            raise Unavailable(doing, seen, "see spec.edge.external.command of the site") from error
        if ended.code != 0:
            raise Unavailable(doing, f"it {ended.how}: {last_reason(ended.errors) or 'without a message'}")


@dataclass(slots=True, kw_only=True)
class ExternalBalancer(SeenFromOutside):
    """The load balancer of plane ``name`` at ``outside``'s address, one of its addresses (``at``).

    ``command`` configures it; None: a person does. ``patience``: how long (seconds) a change may take to be visible.

    It cannot be paused, and its backends are known only by connecting through it: so it must send one client to all of
    its backends, in turns or at random.
    """

    name: str
    outside: Outside
    at: tuple[BackendAddress, ...]
    command: BalancerCommand | None = None
    patience: float = 60.0
    _replicas: Mapping[str, BackendAddress] = field(default_factory=dict)
    _wanted: Mapping[str, BackendAddress] | None = None

    @property
    def address(self) -> BackendAddress:
        """The address that clients connect to."""
        return self.outside.address

    @property
    def floats(self) -> bool:
        """See ``LoadBalancer.floats``: its owner takes care of that."""
        return False

    @property
    def can_hold(self) -> bool:
        """See ``LoadBalancer.can_hold``."""
        return False

    async def apply(self, backends: Mapping[str, BackendAddress]) -> BackendsMust | None:
        """See ``LoadBalancer.apply``. Raises Unavailable when the command fails."""
        self._wanted = dict(backends)
        self._replicas = {**self._replicas, **backends}
        if self.command is not None:
            await self.command.tell(_as_json(self.name, self.at, backends))
        return await self._reached(backends)

    async def _reached(self, backends: Mapping[str, BackendAddress]) -> BackendsMust | None:
        loop = asyncio.get_running_loop()
        until = loop.time() + (self.patience if self.command is not None else 0.0)
        while True:
            sample = await self.outside.sample(self._replicas)
            if sample.names == frozenset(backends) and not unsure(sample, tuple(self._replicas), frozenset(backends)):
                return None
            if loop.time() >= until:
                break
            await asyncio.sleep(_BETWEEN)
        if self.command is not None:
            self.command.sent = None  # it is run again with the next try
            doing = (
                f"configuring the load balancer at {self.address.ip}:{self.address.port} to send to {_names(backends)}"
            )
            raise TimedOut(doing, _seen(sample, self._replicas), f"check what {self.command.words[0]} has done")
        wanted = tuple(sorted(backends.items()))
        seen = _seen(sample, self._replicas)
        return BackendsMust(name=self.name, at=self.at, wanted=wanted, check=_CHECK, seen=seen)

    @override
    async def look(self, replicas: Mapping[str, BackendAddress]) -> BalancerStatus:
        self._replicas = dict(replicas)
        return await self.observe()

    async def observe(self, site: SiteFacts | None = None) -> BalancerStatus:
        """See ``LoadBalancer.observe``: it runs if it leads to any apiserver."""
        sample = await self.outside.sample(self._replicas)
        if sample.silent:
            raise Unavailable(f"observing the load balancer at {self.address.ip}:{self.address.port}", "no answer")
        if not sample.names:
            return BalancerStatus(running=False)
        wanted = frozenset(self._wanted) if self._wanted is not None else None
        return BalancerStatus(
            running=True,
            backends=sample.names,
            healthy=sample.names if sample.leads else frozenset(),
            unsure=unsure(sample, tuple(self._replicas), wanted),
        )

    async def hold(self, seconds: float) -> None:
        """See ``LoadBalancer.hold``: it cannot be paused."""

    async def let_go(self) -> None:
        """See ``LoadBalancer.let_go``."""

    async def remove(self) -> BackendsMust | None:
        """See ``LoadBalancer.remove``: it must lead to none of the plane's."""
        return await self.apply({})


def external_balancer(
    name: str, addresses: tuple[str, ...], port: int, trust: ssl.SSLContext, command: tuple[str, ...] | None
) -> Mapping[str, ExternalBalancer]:
    """One for each address, by address."""
    at = tuple(BackendAddress(each, port) for each in addresses)
    runner = BalancerCommand(words=command) if command is not None else None
    return {
        each.ip: ExternalBalancer(
            name=name,
            outside=Outside(address=each, trust=trust, server_name="kubernetes.default.svc"),
            at=at,
            command=runner,
        )
        for each in at
    }


def _names(backends: Mapping[str, BackendAddress]) -> str:
    return " ".join(sorted(backends)) or "nobody"


def _seen(sample: ConnectionSample, replicas: Mapping[str, BackendAddress]) -> str:
    words = sample.describe()
    if len(sample.names) == 1 and len(replicas) > 1:
        words += " (it must send one client to all of its backends, in turns: else its backends cannot be observed)"
    return words


def _as_json(name: str, at: tuple[BackendAddress, ...], backends: Mapping[str, BackendAddress]) -> bytes:
    content = {
        "plane": name,
        "listen": [{"address": each.ip, "port": each.port} for each in at],
        "backends": [{"name": each, "address": at.ip, "port": at.port} for each, at in sorted(backends.items())],
        "healthCheck": {
            "protocol": "https",
            "path": _PATH,
            "intervalSeconds": _EVERY,
            "timeoutSeconds": _TIMEOUT,
            "failures": _FAILURES,
        },
        "protocol": "tcp",
        "balance": "round-robin",
        "idleTimeoutSeconds": None,
        "connectionsOfRemovedBackends": "keep",
    }
    return json.dumps(content).encode()
