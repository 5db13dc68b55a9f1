"""inotify instances that programs of planes open: hosts have few of them.

Seen with Kubernetes 1.36: an apiserver opens 7, one for each file that it watches, a controller manager and a scheduler
2 each; a controller manager that leads opens 5 besides, one for each signer and one for volume plugins.
"""

from __future__ import annotations

PER_REPLICA = 11
PER_LEADER = 5
PER_BALANCER = 3
#: Of the leader, a load balancer, a DNS server and a door.
PER_PLANE = PER_LEADER + PER_BALANCER + 2
