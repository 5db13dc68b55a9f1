"""The identity of a host's machine: two hosts that are one machine fail together, and do not form a quorum. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from quarterdeck.model.findings import Finding, HostFinding, Verdict
from quarterdeck.sites.ssh.hosts import SshHost
from quarterdeck.sites.ssh.wire import parsing


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """The identity of a machine; missing facts are empty."""

    #: machine-id(5).
    machine_id: str = ""
    #: That of its running kernel, which containers of one host share.
    boot_id: str = ""
    #: The public keys of its sshd, in base64.
    host_keys: frozenset[str] = frozenset()
    #: The IP addresses of its interfaces.
    addresses: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Identified:
    """A host with its identity. ``site``: "" for the site that is checked."""

    host: SshHost
    identity: Identity
    site: str = ""

    @property
    def name(self) -> str:
        """The host, for people."""
        return f"host {self.host.name}{f' of site {self.site}' if self.site else ''}"


def read_identity(doing: str, output: str, shown_key: str = "") -> Identity:
    """The output of a host (check/identity.sh). ``shown_key``: the host key that it presented, in base64. Raises
    Corrupt.
    """
    lines = [line.partition("\t") for line in output.splitlines()]

    def of(key: str) -> list[str]:
        return [word for name, _, word in lines if name == key and word]

    listed = of("address")
    with parsing(doing, " ".join(listed).encode()):
        addresses = frozenset(map(_address, listed))
    return Identity(
        machine_id=next(iter(of("machine-id")), ""),
        boot_id=next(iter(of("boot-id")), ""),
        host_keys=frozenset((*of("host-key"), *filter(None, (shown_key,)))),
        addresses=addresses,
    )


def judge_address(host: SshHost, identity: Identity) -> Iterator[HostFinding]:
    """Programs bind to the address of a host: it must be on one of its interfaces."""
    if not identity.addresses or host.address in identity.addresses or _is_loopback(host.address):
        return
    usable = sorted(each for each in identity.addresses if not _is_local(each))
    seen = f"{host.address} is on none of its interfaces, and programs cannot listen there"
    step = f"use an address that it has: {', '.join(usable)}" if usable else "configure the address on the host"
    yield HostFinding(host.name, Finding("address", Verdict.REFUSE, seen, step))


def judge_machines(own: Sequence[Identified], others: Sequence[Identified] = ()) -> Iterator[HostFinding]:
    """Hosts of a site (``own``) that are one machine with each other, or with a host of another site (``others``)."""
    for one, other in combinations(own, 2):
        if finding := _judge_pair(one, other):
            yield HostFinding(f"{one.host.name} -> {other.host.name}", finding)
    for one in own:
        for other in others:
            if finding := _judge_pair(one, other):
                yield HostFinding(one.host.name, finding)


def _judge_pair(one: Identified, other: Identified) -> Finding | None:
    first, second = one.identity, other.identity
    shared_id = first.machine_id if first.machine_id == second.machine_id else ""
    shared_keys = bool(first.host_keys & second.host_keys)
    pair = f"{one.name} and {other.name}"
    if _are_one(one, other):
        why = f"machine id {shared_id}, one boot id" if shared_id else "one boot id, and addresses of each other"
        seen = f"{pair} are the same machine ({why}): they would fail together"
        step = (
            "give each host its own machine; for containers that are copies of one image: give each its own "
            "machine id ('rm /etc/machine-id; systemd-machine-id-setup') and host keys ('rm /etc/ssh/ssh_host_*; "
            "ssh-keygen -A')"
        )
        return Finding("machine", Verdict.REFUSE, seen, step)
    if shared_id:
        seen = f"{pair} have the same machine id {shared_id}: one is a copy of the other"
        step = "on the copy run 'rm /etc/machine-id; systemd-machine-id-setup', and reboot it"
        return Finding("machine", Verdict.WARN, seen, step)
    if shared_keys:
        seen = f"{pair} have the same ssh host key: one is a copy of the other, and each can pose as the other"
        step = "on the copy run 'rm /etc/ssh/ssh_host_*; ssh-keygen -A', restart its sshd, and correct known_hosts"
        return Finding("machine", Verdict.WARN, seen, step)
    return None


def _are_one(one: Identified, other: Identified) -> bool:
    """A boot id is made at each boot: machines with different ones are two, whatever was copied. Containers share that
    of their host; they differ in network, and in machine id or host keys unless these were copied.
    """
    first, second = one.identity, other.identity
    if _differ(first.boot_id, second.boot_id):
        return False
    copied = first.machine_id == second.machine_id and bool(first.host_keys & second.host_keys)
    return copied or _shares_addresses(one, other) or _shares_addresses(other, one)


def _shares_addresses(one: Identified, other: Identified) -> bool:
    """Whether the address of a host is on an interface of another one."""
    return bool(one.identity.boot_id) and other.host.address in one.identity.addresses


def _differ(one: str, other: str) -> bool:
    """Whether both are known, and differ."""
    return bool(one) and bool(other) and one != other


def _is_loopback(address: str) -> bool:
    return ipaddress.ip_address(address).is_loopback


def _is_local(address: str) -> bool:
    """Whether others cannot connect to an address: of the loopback interface, or of one link alone."""
    known = ipaddress.ip_address(address)
    return known.is_loopback or known.is_link_local


def _address(word: str) -> str:
    """An address as the kernel lists it: 32 digits for one of IPv6 (/proc/net/if_inet6)."""
    if len(word) == 32 and ":" not in word:
        return str(ipaddress.IPv6Address(bytes.fromhex(word)))
    return str(ipaddress.ip_address(word))
