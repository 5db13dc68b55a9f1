"""The hosts of an ssh site: requests to them, and their observation."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial

from typing_extensions import override

from quarterdeck.components.traffic.keepalived import RouterSettings, Routing, own_address, router_settings
from quarterdeck.errors import Corrupt, InvalidInput, PreconditionFailed, QuarterdeckError, Unavailable
from quarterdeck.model.capabilities import Capability
from quarterdeck.model.endpoints import ExternalLoadBalancer
from quarterdeck.model.site_facts import MachineFacts, SiteFacts
from quarterdeck.model.units import Machine, MachineRole, MachineState
from quarterdeck.sites.base.faults import FaultySite
from quarterdeck.sites.base.seats import SeatingSite
from quarterdeck.sites.base.site import Shared
from quarterdeck.sites.port import Floats, Leads, LedFromOutside
from quarterdeck.sites.ssh.connections import INSTALLED, HostConnection, HostConnections
from quarterdeck.sites.ssh.hosts import SshHost, SshSettings, SshStorageClass, machine_of
from quarterdeck.sites.ssh.looks import HostLook, read_look
from quarterdeck.sites.ssh.programs import Sender

#: Seconds for an observation: as long as that of members and apiservers; and for a host that was silent in the previous
#: one.
_LOOK = 3.0
_AGAIN = 1.0
QUICK = 15.0
#: Recorded for a host that refused to allow a folder.
_REFUSED = "refused to allow"


#: A host, and the role in which it is a machine.
HostMachine = tuple[SshHost, MachineRole]


class SshHosts(SeatingSite[HostMachine, SshStorageClass], FaultySite[HostMachine, SshStorageClass, None]):
    """The hosts of one site, over connections that a process shares."""

    def __init__(self, settings: SshSettings, hosts: HostConnections, sender: Sender) -> None:
        super().__init__(settings.name, settings.stands(), {each.name: each for each in settings.storage_classes})
        self._settings = settings
        self._hosts = hosts
        self._sender = sender
        self._looks: dict[str, Shared[Mapping[str, HostLook | None]]] = {}
        self._why: dict[str, str] = {}
        #: By host and volume: the last observation, for when that host does not answer.
        self._seen_classes: dict[tuple[str, str], str] = {}

    @property
    @override
    def capabilities(self) -> frozenset[Capability]:
        always = {Capability.HOLDS, Capability.ONE_ADDRESS, Capability.FAULTS}
        always |= {Capability.FLOATS} if self._settings.floating_addresses else set()
        return frozenset(always | {Capability.LEADS} if self._settings.promoted_addresses else always)

    @property
    def reattachable(self) -> frozenset[str]:
        """The storage classes whose volumes can be attached to other hosts. No IO."""
        return frozenset(name for name, each in self._classes.items() if each.commands is not None)

    @override
    async def machines(self) -> tuple[Machine, ...]:
        return tuple(each.machine for each in (await self.facts()).machines)

    @override
    async def facts(self, below: str = "") -> SiteFacts:
        if below not in self._looks:
            self._looks[below] = Shared(partial(self._look, below))
        seen = await self._looks[below]()
        return SiteFacts(
            name=self.name,
            machines=tuple(self._facts_of(machine, seen[host.name]) for machine, (host, _) in self._machines.items()),
            storage_classes=tuple(self._classes),
            reattachable=self.reattachable,
        )

    async def _look(self, below: str) -> Mapping[str, HostLook | None]:
        """All hosts at once, each by its name; None for one that does not answer."""
        hosts = self._settings.hosts
        seen = await asyncio.gather(*(self._look_at(each, below) for each in hosts))
        looks = {host.name: look for host, look in zip(hosts, seen, strict=True)}
        for host, look in looks.items():
            for volume in look.volumes if look is not None else ():
                self._seen_classes[host, volume.name] = volume.storage_class
        return await self._without_old_claims(looks) if self.reattachable else looks

    async def _without_old_claims(self, looks: Mapping[str, HostLook | None]) -> Mapping[str, HostLook | None]:
        """A volume that was taken from a host which did not answer no longer belongs to it, whatever it reports when it
        is back. It is informed.
        """
        seen = [each for each in looks.values() if each is not None]
        has: dict[str, int] = {}
        for look in seen:
            for volume in look.volumes:
                if volume.name in look.claims and not volume.arriving:
                    has[volume.name] = max(has.get(volume.name, 0), look.claims[volume.name])
        current = dict(looks)
        for host in self._settings.hosts:
            if (known := looks[host.name]) is None:
                continue
            claims = known.claims
            old = [each for each in known.volumes if each.name in claims and claims[each.name] < has.get(each.name, 0)]
            if not old:
                continue
            current[host.name] = replace(known, volumes=tuple(each for each in known.volumes if each not in old))
            for each in old:
                words = ("drop", root_of(self._classes[each.storage_class]), each.name, str(claims[each.name]))
                with suppress(QuarterdeckError):  # it is informed at the next observation
                    await self._ask(host, *words, doing=f"releasing former volumes of host {host.name}", deadline=QUICK)
        return current

    async def _look_at(self, host: SshHost, below: str) -> HostLook | None:
        doing, quick = f"observing host {host.name}", self._hosts.at(host.login).silent
        try:
            words = ("look", below or "-", *self._roots(host))
            await self._try_to_allow(host, doing)
            answer = await self._asked(host, *words, doing=doing, deadline=_AGAIN if quick else _LOOK)
            look = read_look(doing, answer)
        except (Unavailable, PreconditionFailed, Corrupt) as error:
            self._why[host.name] = error.seen
            return None
        self._why.pop(host.name, None)
        return look

    def _facts_of(self, machine: str, look: HostLook | None) -> MachineFacts:
        if look is None or look.state is not MachineState.UP:
            state = look.state if look is not None else MachineState.UNREACHABLE
            why = self._why.get(self.host(machine).name, "") if look is None else ""
            return MachineFacts(machine=machine_of(self._settings, machine, state, why))
        own = self._machines[machine][1] is MachineRole.CONTROL
        slow = self._hosts.at(self.host(machine).login).slowness
        return MachineFacts(
            machine=machine_of(self._settings, machine, MachineState.UP, slow),
            units=look.units_of(machine),
            volumes=look.volumes if own else (),
            away=look.away if own else (),
        )

    async def ask(self, machine: str, *words: str, doing: str, deadline: float = QUICK, body: bytes = b"") -> bytes:
        """The answer of a machine's host to a request (host/*.sh). Raises as wire.py says, and Unavailable."""
        return await self._ask(self.host(machine), *words, doing=doing, deadline=deadline, body=body)

    async def _ask(
        self, host: SshHost, *words: str, doing: str, deadline: float, body: bytes = b"", cancels: bool = False
    ) -> bytes:
        await self._allow(host, self._hosts.at(host.login), doing)
        return await self._asked(host, *words, doing=doing, deadline=deadline, body=body, cancels=cancels)

    async def _asked(
        self, host: SshHost, *words: str, doing: str, deadline: float, body: bytes = b"", cancels: bool = False
    ) -> bytes:
        at = self._hosts.at(host.login)
        if at.silent:  # it gets less time than one that may be busy
            deadline = min(deadline, _LOOK)
        try:
            return await at.ask(*words, doing=doing, deadline=deadline, fence=self._fence, body=body, cancels=cancels)
        except QuarterdeckError as error:
            if words[0] != "look" and isinstance(error, Unavailable | PreconditionFailed | InvalidInput):
                at.known.clear()  # a person may have changed the host: it is tried again
            if isinstance(error, Corrupt) or host.name in str(error):
                raise
            raise type(error)(error.doing, f"host {host.name}: {error.seen}", error.next_step) from None

    async def _try_to_allow(self, host: SshHost, doing: str) -> None:
        """Once for each connection: a host on which a folder cannot be allowed is alive, and is observed."""
        at = self._hosts.at(host.login)
        if _REFUSED not in at.known:
            try:
                await self._allow(host, at, doing)
            except PreconditionFailed:
                at.known.add(_REFUSED)

    async def _allow(self, host: SshHost, at: HostConnection, doing: str) -> None:
        """Allow volumes in the folders of storage classes, and its addresses, once."""
        words = tuple(each.path for each in self._classes.values() if each.path)
        if not {MachineRole.EDGE, MachineRole.CONTROL}.isdisjoint(host.roles):
            words += self._settings.promoted_addresses
        if MachineRole.EDGE in host.roles:
            words += self._settings.floating_addresses
        key = f"allowed {' '.join(words)}"
        if words and key not in at.known:
            await at.allow(doing, words)
            at.known.add(key)

    @override
    async def _reached(self, name: str) -> HostMachine:
        """Its host reports with every answer that it is off, or does not answer."""
        return self._machine(name)

    @override
    async def _admitted(self, name: str) -> HostMachine:
        """Its host compares the fences at every request."""
        return self._machine(name)

    @override
    def _address(self, machine: str) -> str:
        return self.host(machine).address

    def host(self, machine: str) -> SshHost:
        """The host that a machine is. No IO. Raises NotFound."""
        return self._machine(machine)[0]

    def _roots(self, host: SshHost) -> tuple[str, ...]:
        """The folders of each class's volumes: on hosts that run replicas."""
        if MachineRole.CONTROL not in host.roles:
            return ()
        return tuple(map(root_of, self._classes.values()))

    def _local_roots(self, host: SshHost) -> tuple[str, ...]:
        if MachineRole.CONTROL not in host.roles:
            return ()
        return tuple(root_of(each) for each in self._classes.values() if each.commands is None)


def root_of(storage_class: SshStorageClass) -> str:
    """The description of a storage class for a host."""
    mark = "@" if storage_class.commands is not None else ""
    return f"{storage_class.name}={mark}{storage_class.path}"


# What leads clients to an ssh site: addresses that move between its hosts, or the user's own load balancer.


class SshAddresses(SshHosts, Floats, Leads, LedFromOutside):
    """The ports Floats, Leads and LedFromOutside of a site of hosts."""

    @override
    def floating(self, machine: str) -> str | None:
        edges, addresses = self._settings.edges(), self._settings.floating_addresses
        return own_address(machine, edges, addresses) if addresses and machine in edges else None

    @property
    @override
    def external(self) -> ExternalLoadBalancer | None:
        return self._settings.external

    @override
    def router(self, machine: str) -> RouterSettings:
        return router_settings(machine, self._settings.edges(), self._settings.floating_addresses)

    @property
    @override
    def led_addresses(self) -> tuple[str, ...]:
        return self._settings.promoted_addresses

    @property
    @override
    def cannot_route(self) -> str:
        """A check of the site reports it for each host."""
        return ""

    @override
    def routing(self, machine: str, unit: str) -> Routing:
        """By the host's script, which accepts no other program for the unit."""
        self.host(machine)
        return Routing(argv=(INSTALLED, "vrrp", unit))
