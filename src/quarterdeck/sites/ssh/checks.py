"""The problems of hosts for planes, judged from the hosts' facts. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from quarterdeck.components.ports import balancer_status_port, beside_balancers, load_balancer_port, ports_of
from quarterdeck.components.traffic.keepalived import not_usable
from quarterdeck.model.findings import Finding, HostFinding, Verdict
from quarterdeck.model.seats import PortName
from quarterdeck.model.units import MachineRole
from quarterdeck.sites.ssh.facts import ClassFacts, HostFacts, Reachability
from quarterdeck.sites.ssh.hosts import SshHost, SshSettings
from quarterdeck.sites.ssh.wire import PROTOCOL, script_digest

#: Older ones lack the hardening of units, and features that the script uses.
LEAST_SYSTEMD, LEAST_BASH = 245, 5
#: Seconds: etcd's own recommendation for its disk, and the limit beyond which elections begin.
SLOW_SYNC, MOST_SYNC = 0.010, 0.500
#: Bytes: for programs and a small database; for some time.
LEAST_DISK, ENOUGH_DISK = 2**30, 5 * 2**30
#: Bytes: the memory of a replica's programs with an empty database.
REPLICA_MEMORY = 700 * 2**20
#: Seconds that clocks may differ: without any effect, and within the tolerance of certificates and leases.
CLOCK_NOTICED, CLOCK_MOST = 2.0, 30.0
#: Seconds between hosts of one site: where etcd's heartbeats should be adjusted, and where they fail.
FAR, TOO_FAR = 0.020, 0.180
DNS_PORT = 53
#: Seconds from which on a login, or sudo, is slow.
SLOW_LOGIN = 3.0

_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Here:
    """This host, which drives all planes: its architecture, and the id by which hosts know its home."""

    architecture: str
    owner: str
    name: str = "this host"


def ports_of_host(settings: SshSettings, host: SshHost) -> tuple[int, ...]:
    """The TCP ports on which the first plane of a site listens on a host."""
    found: list[int] = []
    if MachineRole.CONTROL in host.roles:
        found += _of_replica(settings).values()
        if settings.promoted_addresses:  # clients of a plane with one connect to its apiserver itself
            found.append(load_balancer_port(0))
    if MachineRole.EDGE in host.roles:
        found += (load_balancer_port(0), balancer_status_port(0))
    if MachineRole.DNS in host.roles:
        found.append(DNS_PORT)
    return tuple(sorted(found))


def ports_between(settings: SshSettings, source: SshHost, target: SshHost) -> tuple[int, ...]:
    """Those of a host's ports that programs on another one connect to."""
    found: list[int] = []
    if MachineRole.CONTROL in target.roles:
        wanted = _of_replica(settings)
        if MachineRole.CONTROL in source.roles:
            found += (wanted[PortName.ETCD_PEER], wanted[PortName.EVENTS_PEER])
        if MachineRole.EDGE in source.roles:
            found.append(wanted[PortName.APISERVER])
    return tuple(sorted(found))


def _of_replica(settings: SshSettings) -> dict[str, int]:
    """The ports of a replica of a site's first plane, by their use."""
    return beside_balancers(ports_of(0)) if settings.balanced else ports_of(0)


def judge_host(host: SshHost, facts: HostFacts, here: Here) -> Iterator[HostFinding]:
    """The problems of a host by itself."""
    found = (
        *_rights(host, facts),
        *_system(facts, here),
        *_room(host, facts),
        *_clock(facts),
    )
    return (HostFinding(host.name, each) for each in found)


def _rights(host: SshHost, facts: HostFacts) -> Iterator[Finding]:
    bootstrap = f"'quarterdeck site bootstrap {host.login.host}'"
    if facts.rights == "no-sudo":
        yield _refuse("sudo", "sudo is not installed, and the user is not root", bootstrap)
    elif facts.rights == "none":
        output = f": its output: {facts.refused}" if facts.refused else ""
        seen = f"the user is not root, and sudo does not run what is needed without a password{output}"
        yield _refuse("sudo", seen, bootstrap)
    elif facts.rights == "script" and facts.script not in ("", _answer_of_ours()):
        seen = (
            f"the installed script is of another quarterdeck, and the user may not replace it (output: {facts.script})"
        )
        yield _refuse("script", seen, f"run {bootstrap} again")
    if facts.sudo_took > SLOW_LOGIN:
        seen = f"sudo takes {facts.sudo_took:.0f} s, which delays each connection"
        yield _warn("sudo", seen, "make sure that the host can resolve its own name ('getent hosts $(hostname)')")
    if facts.login_took > SLOW_LOGIN:
        yield _warn("ssh", f"logging in takes {facts.login_took:.0f} s", "see UseDNS of its sshd, and its PAM modules")


def _answer_of_ours() -> str:
    """The answer of this quarterdeck's script to another digest (host/9-session.sh)."""
    return f"other {PROTOCOL} {script_digest()}"


def _system(facts: HostFacts, here: Here) -> Iterator[Finding]:
    if _major(facts.bash) < LEAST_BASH:
        yield _refuse("bash", f"it has {facts.bash or 'none'}", f"install bash {LEAST_BASH} or newer")
    if not facts.runs_systemd:
        yield _refuse("systemd", "it is not the init system of this host", "use a host with systemd")
    elif _major(facts.systemd) < LEAST_SYSTEMD:
        yield _refuse("systemd", f"it has {facts.systemd}", f"use one with systemd {LEAST_SYSTEMD} or newer")
    if facts.missing:
        yield _refuse("programs", f"not installed: {', '.join(facts.missing)}", "install them from its distribution")
    if facts.architecture != here.architecture:
        seen = (
            f"it is {facts.architecture or 'unknown'}, and programs come from this host, which is {here.architecture}"
        )
        yield _refuse("architecture", seen, "drive it from a host of its own architecture")
    if facts.cgroups and facts.cgroups != "cgroup2fs":
        yield _warn(
            "cgroups", "version 1: memory and processes may not be limited", "boot it with cgroups of version 2"
        )
    if facts.owner and facts.owner != here.owner:
        seen = f"it belongs to another home of quarterdeck ({facts.owner})"
        yield _refuse("owner", seen, "remove the site there, or see docs/how-to/ssh.md")


def _room(host: SshHost, facts: HostFacts) -> Iterator[Finding]:
    if MachineRole.CONTROL not in host.roles:
        return
    for name, each in facts.classes.items():
        yield from _disk(name, each)
    if not facts.units and facts.free_memory < REPLICA_MEMORY:
        seen = (
            f"{_mib(facts.free_memory)} of {_mib(facts.memory)} are free; a replica takes about {_mib(REPLICA_MEMORY)}"
        )
        least = 2 * facts.free_memory < REPLICA_MEMORY
        yield (_refuse if least else _warn)("memory", seen, "make room, or use a larger host")


def _disk(name: str, seen: ClassFacts) -> Iterator[Finding]:
    where = f"storage class {name} ({seen.folder})"
    if not seen.there:
        yield _refuse("disk", f"{where}: the folder does not exist", "mount its disk, or create the folder")
        return
    if seen.unwritable:
        step = f"see 'findmnt -T {seen.folder}' on the host, and make the folder writable"
        yield _refuse("disk", f"{where}: no file can be written there: {seen.unwritable}", step)
        return
    if seen.free < ENOUGH_DISK:
        words = f"{where}: {_mib(seen.free)} are free"
        yield (_refuse if seen.free < LEAST_DISK else _warn)("disk", words, "make room, or choose another folder")
    if not seen.syncs:
        why = f"{where}: not measured, since this user may not write there"
        yield _warn("fsync", why, "check it once as a user who may run any program by sudo")
        return
    slow = percentile(seen.syncs, 0.99)
    words = f"{where}: 99 of 100 small writes take up to {1000 * slow:.1f} ms to be on the disk"
    if slow > MOST_SYNC:
        yield _refuse("fsync", f"{words}: etcd would lose its leader again and again", "use a faster disk")
    elif slow > SLOW_SYNC:
        yield _warn("fsync", f"{words}; etcd wants them within {1000 * SLOW_SYNC:.0f} ms", "use a faster disk")


def percentile(values: Sequence[float], part: float) -> float:
    """The value that so large a part of all does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


def _clock(facts: HostFacts) -> Iterator[Finding]:
    off = abs(facts.clock)
    if off > CLOCK_NOTICED:
        words = f"its clock is off by {facts.clock:+.1f} s from this host's"
        yield (_refuse if off > CLOCK_MOST else _warn)("clock", words, "set it, and run NTP there")


def judge_ports(settings: SshSettings, host: SshHost, facts: HostFacts) -> Iterator[HostFinding]:
    """Ports of planes that other programs use. On a host with planes, their own ports are not distinguished."""
    for name, pid in facts.processes:
        seen = f"{name} runs there (process {pid}), and is not quarterdeck's"
        yield HostFinding(host.name, _warn("foreign", seen, "planes get other ports; check that it belongs there"))
    if facts.units:
        return
    taken = facts.listening(host.address)
    wanted = ports_of_host(settings, host)
    dns = {DNS_PORT} & ({*wanted} & (taken | facts.listening(host.address, "udp")))
    if dns:
        seen = f"something listens at port {DNS_PORT} of {host.address}"
        yield HostFinding(host.name, _refuse("ports", seen, "stop it, or give another host the role dns"))
    used = sorted(({*wanted} & taken) - {DNS_PORT})
    if not used:
        return
    words = f"taken at {host.address}: {', '.join(map(str, used))}"
    if {load_balancer_port(0), balancer_status_port(0)} & {*used} and MachineRole.EDGE in host.roles:
        yield HostFinding(
            host.name, _refuse("ports", f"{words}; load balancers listen there", "stop what listens there")
        )
    else:
        yield HostFinding(
            host.name, _warn("ports", f"{words}; replicas get other ones", "check that its firewall lets them in")
        )


def judge_floating(settings: SshSettings, host: SshHost, facts: HostFacts) -> Iterator[HostFinding]:
    """Whether a host can have addresses that move to another one, where its site has such addresses for it."""
    floats = settings.floating_addresses and MachineRole.EDGE in host.roles
    serves = not {MachineRole.EDGE, MachineRole.CONTROL}.isdisjoint(host.roles)
    if not floats and not (settings.promoted_addresses and serves):
        return
    if seen := not_usable(facts.keepalived):
        yield HostFinding(
            host.name, _refuse("keepalived", seen, "install it from its distribution; no configuration is needed")
        )
    if not facts.ip:
        seen = "iproute2 is not installed: addresses that move need it"
        yield HostFinding(host.name, _refuse("programs", seen, "install it from its distribution"))


def judge_listening(
    settings: SshSettings, host: SshHost, listening: Iterable[int], refused: Mapping[int, str]
) -> Iterator[HostFinding]:
    """Ports at which programs could not listen (``refused``: the host's own errors, by port), and those that were not
    tried, so that their reachability is unknown.
    """
    for port, words in sorted(refused.items()):
        seen = f"nothing can listen at port {port} of {host.address}: {words or 'no reason was given'}"
        step = "stop what has the port there: see 'ss -tanp', and 'ss -tanpB' for what is bound and does not listen"
        yield HostFinding(host.name, _refuse("ports", seen, step))
    unknown = sorted({*ports_of_host(settings, host)} - {*listening, *refused})
    if unknown:
        words = f"nothing could listen there to be connected to: port {', '.join(map(str, unknown))}"
        yield HostFinding(host.name, _warn("network", words, "check that the firewalls let these through"))


def judge_way(source: str, target: str, wanted: Iterable[int], way: Reachability | None) -> Iterator[HostFinding]:
    """The problems of the connection from a host (or this one) to another."""
    pair, wanted = f"{source} -> {target}", tuple(wanted)
    seen = way.ports if way is not None else {}
    closed: dict[str, list[int]] = {}
    for port in wanted:
        how = seen.get(port, "unknown")
        if how != "open":
            closed.setdefault(how, []).append(port)
    for how, ports in closed.items():
        words = {
            "silent": "nothing comes back from port",
            "refused": "a connection is refused at port",
            "unknown": "not tried: port",
        }[how]
        step = "make the firewall between them let it through" if how != "unknown" else "make both hosts answer first"
        yield HostFinding(pair, _refuse("firewall", f"{words} {', '.join(map(str, ports))}", step))
    if way is None:
        return
    if way.bulk is False and "open" in seen.values():
        step = "check that the MTU is the same all the way, and that ICMP is let through"
        yield HostFinding(pair, _refuse("mtu", "small packets arrive, and 64 KiB do not", step))
    if way.round_trip is not None and way.round_trip > FAR:
        words = f"{1000 * way.round_trip:.1f} ms for a round trip"
        if way.round_trip > TOO_FAR:
            step = "the hosts of a site must be near each other: make two sites of them"
            yield HostFinding(pair, _refuse("distance", words, step))
        else:
            yield HostFinding(pair, _warn("distance", words, "create planes with a matching etcd.electionMilliseconds"))


def summary(hosts: int, ways: Mapping[tuple[str, str], Reachability], findings: Sequence[HostFinding]) -> str:
    """All in one line."""
    verdicts = [each.finding.verdict for each in findings]
    trips = [each.round_trip for each in ways.values() if each.round_trip is not None]
    far = f", at most {1000 * max(trips):.1f} ms apart" if trips else ""
    bad, odd = verdicts.count(Verdict.REFUSE), verdicts.count(Verdict.WARN)
    return f"{hosts} host{'s' if hosts != 1 else ''}{far}: {bad} blocking, {odd} to check"


def _refuse(check: str, seen: str, next_step: str) -> Finding:
    return Finding(check, Verdict.REFUSE, seen, next_step)


def _warn(check: str, seen: str, next_step: str) -> Finding:
    return Finding(check, Verdict.WARN, seen, next_step)


def _major(version: str) -> int:
    found = _NUMBER.search(version)
    return int(found.group()) if found else 0


def _mib(size: int) -> str:
    return f"{size / 2**20:,.0f} MiB"
