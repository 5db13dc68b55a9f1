"""The load balancer port by one of the user's own: a person, or a command of theirs, has it send where it should."""

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

# Which apiservers a load balancer sends to, seen by who connects through it: each shows a certificate of its own.

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
class ConnectionSample:
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


def unsure(sample: ConnectionSample, replicas: Sequence[str], wanted: frozenset[str] | None) -> frozenset[str]:
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

    async def sample(self, replicas: Mapping[str, BackendAddress]) -> ConnectionSample:
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
        return ConnectionSample(led=tuple(self._led), newest=len(new))

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


#: What such a load balancer is to ask each backend, and when it is out; seconds. Elections of etcd must pass within.
_PATH, _EVERY, _TIMEOUT, _FAILURES = "/readyz", 2, 2, 3
_CHECK = (
    f"health check of each: HTTPS GET {_PATH} every {_EVERY} s, {_TIMEOUT} s for an answer, out after {_FAILURES} that"
    " fail; TCP passed through, in turns, without idle timeout; connections to one that is taken out live on"
)
_COMMAND_DEADLINE = 60.0
_BETWEEN = 0.5


@dataclass(slots=True, kw_only=True)
class Command:
    """A command of the user's, which is told what is wanted as JSON on its standard input: once, whichever of the load
    balancer's addresses it is wanted at.
    """

    words: tuple[str, ...]
    told: bytes | None = None
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def tell(self, wanted: bytes) -> None:
        """Raises Unavailable when it cannot be run, or says that it failed, TimedOut when it does not end."""
        async with self._lock:
            if self.told != wanted:
                await self._run(wanted)
                self.told = wanted

    async def _run(self, wanted: bytes) -> None:
        doing = f"running {self.words[0]}, which sets the load balancer"
        try:
            ended = await run(self.words, doing=doing, deadline=_COMMAND_DEADLINE, given=wanted)
        except OSError as error:
            seen = error.strerror or str(error)
            raise Unavailable(doing, seen, "see spec.edge.external.command of the site") from error
        if ended.code != 0:
            raise Unavailable(doing, f"it {ended.how}: {last_reason(ended.errors) or 'without a word'}")


@dataclass(slots=True, kw_only=True)
class ExternalBalancer(SeenFromOutside):
    """The load balancer of plane ``name`` at ``outside``'s address, of all that it has (``at``).

    ``command``: what sets it; None: a person does. ``patience``: how long (seconds) what that did may take to be seen.

    It cannot be held, and what it is told is known by connecting through it alone: so it must lead one client to all
    of its backends, in turns or at random.
    """

    name: str
    outside: Outside
    at: tuple[BackendAddress, ...]
    command: Command | None = None
    patience: float = 60.0
    _replicas: Mapping[str, BackendAddress] = field(default_factory=dict)
    _wanted: Mapping[str, BackendAddress] | None = None

    @property
    def address(self) -> BackendAddress:
        """Where clients connect to."""
        return self.outside.address

    @property
    def floats(self) -> bool:
        """See ``LoadBalancer.floats``: whoever has it sees to that."""
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
            self.command.told = None  # it is run again with the next try
            doing = f"having the load balancer at {self.address.ip}:{self.address.port} send to {_names(backends)}"
            raise TimedOut(doing, _seen(sample, self._replicas), f"see what {self.command.words[0]} has done")
        wanted = tuple(sorted(backends.items()))
        seen = _seen(sample, self._replicas)
        return BackendsMust(name=self.name, at=self.at, wanted=wanted, check=_CHECK, seen=seen)

    @override
    async def look(self, replicas: Mapping[str, BackendAddress]) -> BalancerStatus:
        self._replicas = dict(replicas)
        return await self.observe()

    async def observe(self, site: SiteFacts | None = None) -> BalancerStatus:
        """See ``LoadBalancer.observe``: it runs if it leads to anybody."""
        sample = await self.outside.sample(self._replicas)
        if sample.silent:
            raise Unavailable(f"looking at the load balancer at {self.address.ip}:{self.address.port}", "no answer")
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
        """See ``LoadBalancer.hold``: it cannot be."""

    async def let_go(self) -> None:
        """See ``LoadBalancer.let_go``."""

    async def remove(self) -> BackendsMust | None:
        """See ``LoadBalancer.remove``: it is to lead to none of the plane's."""
        return await self.apply({})


def external_balancer(
    name: str, addresses: tuple[str, ...], port: int, trust: ssl.SSLContext, command: tuple[str, ...] | None
) -> Mapping[str, ExternalBalancer]:
    """One for each address, by that."""
    at = tuple(BackendAddress(each, port) for each in addresses)
    told = Command(words=command) if command is not None else None
    return {
        each.ip: ExternalBalancer(
            name=name,
            outside=Outside(address=each, trust=trust, server_name="kubernetes.default.svc"),
            at=at,
            command=told,
        )
        for each in at
    }


def _names(backends: Mapping[str, BackendAddress]) -> str:
    return " ".join(sorted(backends)) or "nobody"


def _seen(sample: ConnectionSample, replicas: Mapping[str, BackendAddress]) -> str:
    words = sample.describe()
    if len(sample.names) == 1 and len(replicas) > 1:
        words += " (it must lead one client to all of its backends, in turns: else it cannot be seen through)"
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
