"""Real machines for tests: each a Debian with its own systemd and sshd, on networks that can be cut and delayed.

    lab      ``HostsLab``: all of it, as a context manager
    machine  one machine: its disk, its power, programs run inside it; ``power.sh`` is what runs while it is on
    network  a bridge for each zone, on the lab of isolation netns; who may not hear whom
    image    the root folder that all machines share, built once; ``base.sh`` sets it up
    cgroups  a group of its own for each machine, by which nothing of it is left
    keys     how people log in
    guard    a process that takes all of it down when the one that asked for it is gone

It needs root. The host's own network is not touched, and all mounts are in namespaces of the machines.
"""

from support.hosts_lab.lab import HostsLab, why_not
from support.hosts_lab.machine import LabHost

__all__ = ["HostsLab", "LabHost", "why_not"]
