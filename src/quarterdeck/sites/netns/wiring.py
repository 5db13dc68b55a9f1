"""The network that the keeper builds: the router with a bridge per site, a namespace per machine, and the ways between
sites.

Everything is created inside the keeper's user namespace and disappears with the last process in it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from socket import AF_INET

from pyroute2 import IPRoute  # type: ignore[import-untyped]

from quarterdeck.linux import calls
from quarterdeck.sites.netns.layout import (
    FORWARDER_SIDE,
    GATEWAY,
    ROUTER_SIDE,
    floating_network,
    seats_network,
    seats_of_machine,
    subnet,
)

_WAN_TABLE = 100
_CUT_PRIORITY, _DELAY_PRIORITY = 100, 200
_DEAF_PRIORITY, _LOCAL_PRIORITY = 5, 10
_LOCAL_TABLE = 255  # RT_TABLE_LOCAL: a machine's own addresses
_BLACKHOLE = 6  # FR_ACT_BLACKHOLE: the router drops the packet silently
_TO_TABLE = 1  # FR_ACT_TO_TBL


class Wiring:
    """The router, which the current process moves into, and its interfaces. One per process.

    Errors of the kernel come as OSError or pyroute2's NetlinkError.
    """

    def __init__(self) -> None:
        calls.unshare(calls.CLONE_NEWNET)
        self._router = calls.open_namespace("self", "net")
        self._netlink = IPRoute()
        self._hosts: dict[tuple[int, int], int] = {}
        self._rules: set[tuple[int, int, int]] = set()
        for name in ("all", "default"):
            # The packets of the forwarder come from a network behind another interface.
            _sysctl(f"conf/{name}/rp_filter", "0")
        _sysctl("ip_forward", "1")
        self._netlink.link("set", index=1, state="up")

    def add_site(self, site: int) -> None:
        """Create a site's bridge."""
        # A bridge without an address of its own changes it with its ports, and its machines lose their gateway.
        name = _bridge(site)
        self._netlink.link("add", ifname=name, kind="bridge", address=_hardware_address(site, 0))
        index = self._index(name)
        self._netlink.link("set", index=index, state="up")
        self._netlink.addr("add", index=index, address=GATEWAY, prefixlen=32)
        self._netlink.route("add", dst=f"{subnet(site)}/24", oif=index, prefsrc=GATEWAY, scope="link")
        for network in _shared_networks(site):
            self._netlink.route("add", dst=network, oif=index, prefsrc=GATEWAY, scope="link")

    def remove_site(self, site: int) -> None:
        """Remove a site's bridge, after its machines."""
        self._netlink.link("del", index=self._index(_bridge(site)))

    def add_host(self, site: int, host: int) -> None:
        """Create a namespace with the address 10.89.SITE.HOST, and those of its seats, on the site's bridge."""
        with self._new_namespace() as (namespace, netlink):
            port = _port(site, host)
            peer = {"ifname": "eth0", "net_ns_fd": namespace, "address": _hardware_address(site, host)}
            self._netlink.link("add", ifname=port, kind="veth", peer=peer)
            self._netlink.link("set", index=self._index(port), master=self._index(_bridge(site)), state="up")
            index = _index(netlink, "eth0")
            netlink.link("set", index=1, state="up")
            netlink.link("set", index=index, state="up")
            address = subnet(site).removesuffix("0") + str(host)
            netlink.addr("add", index=index, address=address, prefixlen=24)
            netlink.route("add", dst="default", gateway=GATEWAY, oif=index, flags=["onlink"])
            # The kernel's own rule for local addresses is the very first: no other rule could drop such packets.
            netlink.rule("add", priority=_LOCAL_PRIORITY, table=_LOCAL_TABLE, family=AF_INET)
            netlink.rule("del", priority=0, table=_LOCAL_TABLE, family=AF_INET)
            for network in _shared_networks(site):
                netlink.route("add", dst=network, oif=index, prefsrc=address, scope="link")
            if site:
                # All of them are local, without one being added to an interface (ip-route(8), type local).
                own = {"type": "local", "table": _LOCAL_TABLE, "scope": "host"}
                netlink.route("add", dst=f"{seats_of_machine(site, host)}/26", oif=1, **own)
            self._hosts[site, host] = namespace

    def remove_host(self, site: int, host: int) -> None:
        """Release a namespace. What still runs in it has no network any more."""
        self._netlink.link("del", index=self._index(_port(site, host)))
        os.close(self._hosts.pop((site, host)))

    def plug(self, site: int, host: int, *, plugged: bool) -> None:
        """Plug a host in, or out: its peers then hear nothing any more."""
        self._netlink.link("set", index=self._index(_port(site, host)), state="up" if plugged else "down")

    def deafen(self, site: int, host: int, *, deaf: bool) -> None:
        """Drop all packets to a host, or accept them again. Its own packets pass, and so do answers to its ARP."""
        with self._inside(site, host) as netlink:
            netlink.rule(
                "add" if deaf else "del", priority=_DEAF_PRIORITY, iifname="eth0", action=_BLACKHOLE, family=AF_INET
            )

    def namespace(self, site: int, host: int) -> int:
        """The descriptor of a host's namespace, which stays open."""
        return self._hosts[site, host]

    def set_way(self, source: int, target: int, *, cut: bool, delayed: bool) -> None:
        """Let the packets from one site to another through, drop them, or send them through the forwarder."""
        for priority, wanted in ((_CUT_PRIORITY, cut), (_DELAY_PRIORITY, delayed)):
            rule = (priority, source, target)
            if wanted and rule not in self._rules:
                self._change_rule("add", *rule)
                self._rules.add(rule)
            elif not wanted and rule in self._rules:
                self._change_rule("del", *rule)
                self._rules.remove(rule)

    def add_delay_line(self) -> None:
        """Create the pair of interfaces for the forwarder, if it does not exist.

        Without ARP a packet leaves with the interface's own address as its target: the far side's kernel ignores it,
        and the frame can be returned unchanged. Without a forwarder it is lost.
        """
        if self._netlink.link_lookup(ifname=ROUTER_SIDE):
            return
        self._netlink.link("add", ifname=ROUTER_SIDE, kind="veth", peer={"ifname": FORWARDER_SIDE})
        index = self._index(ROUTER_SIDE)
        self._netlink.link("set", index=self._index(FORWARDER_SIDE), arp=False, state="up")
        self._netlink.link("set", index=index, arp=False, state="up")
        self._netlink.route("add", family=AF_INET, table=_WAN_TABLE, dst="default", oif=index, scope="link")

    def _change_rule(self, command: str, priority: int, source: int, target: int) -> None:
        action = {"action": _BLACKHOLE}
        if priority == _DELAY_PRIORITY:
            action = {"action": _TO_TABLE, "table": _WAN_TABLE}
        for each in (f"{subnet(target)}/24", *_shared_networks(target)):
            network, _, length = each.partition("/")
            self._netlink.rule(
                command, priority=priority, iifname=_bridge(source), dst=network, dst_len=int(length), **action
            )

    def _index(self, name: str) -> int:
        return _index(self._netlink, name)

    @contextlib.contextmanager
    def _inside(self, site: int, host: int) -> Iterator[IPRoute]:
        """A netlink socket in a host's namespace."""
        calls.setns(self._hosts[site, host], calls.CLONE_NEWNET)
        try:
            netlink = IPRoute()
        finally:
            calls.setns(self._router, calls.CLONE_NEWNET)
        with netlink:
            yield netlink

    @contextlib.contextmanager
    def _new_namespace(self) -> Iterator[tuple[int, IPRoute]]:
        """A new network namespace and a netlink socket in it; closed again if the block fails."""
        calls.unshare(calls.CLONE_NEWNET)
        try:
            namespace = calls.open_namespace("self", "net")
            _widen_windows()
            netlink = IPRoute()
        finally:
            calls.setns(self._router, calls.CLONE_NEWNET)
        try:
            with netlink:
                yield namespace, netlink
        except BaseException:
            os.close(namespace)
            raise


def _index(netlink: IPRoute, name: str) -> int:
    index: int = next(iter(netlink.link_lookup(ifname=name)))
    return index


def _widen_windows() -> None:
    """Let one TCP connection fill a link with a long delay (4 MiB, the usual bound, is 25 MB/s at 160 ms)."""
    with contextlib.suppress(PermissionError):  # only speed is lost where the kernel keeps them global
        _sysctl("tcp_wmem", "4096 16384 33554432")
        _sysctl("tcp_rmem", "4096 131072 33554432")


def _sysctl(name: str, value: str) -> None:
    (Path("/proc/sys/net/ipv4") / name).write_text(value)


def _shared_networks(site: int) -> tuple[str, ...]:
    """The networks of a site besides its machines' own addresses; the machine is found by ARP."""
    return (f"{seats_network(site)}/18", f"{floating_network(site)}/23") if site else ()


def _bridge(site: int) -> str:
    return f"br{site}"


def _port(site: int, host: int) -> str:
    return f"v{site}-{host}"


def _hardware_address(site: int, host: int) -> str:
    return f"02:59:00:00:{site:02x}:{host:02x}"
