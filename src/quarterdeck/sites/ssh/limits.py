"""The limits of a host's kernel for programs of planes, as tested there.

Units have their own user namespaces, which systemd creates as root: their resources count for root in the namespace of
the host. So root tests it (host/5-limits.sh).
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator

from quarterdeck.errors import PreconditionFailed, Unavailable
from quarterdeck.model.findings import Finding, HostFinding, Verdict
from quarterdeck.model.units import MachineRole
from quarterdeck.sites.kernel import PER_BALANCER, PER_LEADER, PER_REPLICA
from quarterdeck.sites.ssh.facts import HostFacts
from quarterdeck.sites.ssh.host_queries import SshHosts
from quarterdeck.sites.ssh.hosts import SshHost, SshSettings
from quarterdeck.sites.ssh.wire import parsing

#: Open files for some thousand clients: Envoy has two for each connection.
ENOUGH_FILES = 16_384
MORE_INSTANCES = "raise the limit there: 'sysctl -w fs.inotify.max_user_instances=1024', and a file in /etc/sysctl.d"


def instances_needed(host: SshHost, replicas: int = 1) -> int:
    """The inotify instances that a plane needs on a host with that many of its replicas, the leader's among them."""
    control = PER_REPLICA * replicas + PER_LEADER if MachineRole.CONTROL in host.roles else 0
    return control + (PER_BALANCER if MachineRole.EDGE in host.roles else 0)


def judge_limits(host: SshHost, facts: HostFacts) -> Iterator[HostFinding]:
    """Limits that programs would reach. What was not tested, since only root may, is not judged."""
    needed = instances_needed(host)
    if facts.instances is not None and facts.instances < needed:
        seen = f"{facts.instances} more inotify instances could be opened, about {needed} are needed"
        yield HostFinding(host.name, Finding("limits", Verdict.REFUSE, seen, MORE_INSTANCES))
    if facts.open_files is not None and facts.open_files < ENOUGH_FILES:
        seen = f"systemd gives a service {facts.open_files} open files at most; large planes take more"
        step = "raise 'sysctl fs.nr_open', or the limit of the container that this host is"
        yield HostFinding(host.name, Finding("limits", Verdict.WARN, seen, step))


async def require_instances(site: SshHosts, settings: SshSettings, doing: str, replicas: int) -> str:
    """The remaining limits of each host, as text, if they are enough for its part of that many replicas. Raises
    PreconditionFailed.
    """
    control = sum(MachineRole.CONTROL in each.roles for each in settings.hosts)
    part = math.ceil(replicas / max(control, 1))
    needed = {each: count for each in settings.hosts if (count := instances_needed(each, part))}

    async def opened(host: SshHost, count: int) -> int | None:
        try:
            answer = await site.ask(host.machine(host.roles[0]), "instances", str(count), doing=doing)
        except (Unavailable, PreconditionFailed):  # nothing is placed on a host that does not answer
            return None
        with parsing(doing, answer) as text:
            return int(text)

    silent: list[str] = []
    for host, had in zip(needed, await asyncio.gather(*(opened(*each) for each in needed.items())), strict=True):
        if had is None:
            silent.append(host.name)
        elif had < needed[host]:
            seen = f"{had} more inotify instances could be opened on host {host.name}, about {needed[host]} are needed"
            raise PreconditionFailed(doing, seen, MORE_INSTANCES)
    unknown = f"; unknown for {', '.join(silent)}" if silent else ""
    return f"{len(needed) - len(silent)} hosts can open as many inotify instances as programs need{unknown}"
