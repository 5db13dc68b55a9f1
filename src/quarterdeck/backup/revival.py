"""What a database needs before a new cluster serves Kubernetes from it.

A restored database has what the dead cluster knew of itself: addresses of its apiservers, alarms, a downgrade, leases
that had little time left. And its clients have seen revisions that it no longer has.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from quarterdeck.backup.bolt.file import BoltFile
from quarterdeck.backup.database import ALARMS, KEYS, LEASES, lease_of, lease_value, newest_of
from quarterdeck.backup.records import RevisionChange, is_deletion, name_of, removed
from quarterdeck.components.stored_keys import PREFIX

#: Below the prefix: the addresses of apiservers that the endpoints of the service ``kubernetes`` are made from
#: (kubernetes: pkg/controlplane/instance.go), and those at which they proxy to each other (.../apiserver/peer.go).
_ADDRESSES: Final = ("/masterleases/", "/peerserverleases/")
#: The Lease that an apiserver renews to show that it lives (k8s.io/apiserver: pkg/server/config.go): a SHA-256's first
#: 16 bytes in base 32.
_IDENTITY: Final = r"/leases/kube-system/apiserver-[a-z2-7]{26}"
_CLUSTER, _DOWNGRADE = b"cluster", b"downgrade"


@dataclass(frozen=True, slots=True)
class Revival:
    """What was done to a database. ``revision``: its newest one now, one more if keys were removed."""

    revision: int
    removed: tuple[bytes, ...]
    alarms: int
    downgrade: bool
    leases: int


def revive(path: Path, *, prefix: str = PREFIX) -> Revival:
    """Make a database, in place, one that a new cluster can serve Kubernetes from. Again it does nothing more.

    In one further revision, the addresses and identities of the old apiservers are removed. Alarms and a downgrade that
    was enabled are cleared. Leases keep their ids, and get all of their time again. ``prefix``: kube-apiserver's
    ``--etcd-prefix``. A crash leaves it as it was. Raises Corrupt, and OSError.
    """
    with BoltFile(path) as file:
        keys = tuple(sorted(_stale(file, prefix)))
        newest = newest_of(file)
        if keys:
            newest += 1
            file.append(KEYS, RevisionChange(newest, 0, tuple(map(removed, keys))).rows())
        alarms = sum(1 for _ in file.rows(ALARMS))
        if alarms:
            file.replace(ALARMS, ())
        cluster = [*file.rows(_CLUSTER)]
        kept = [(name, value) for name, value in cluster if name != _DOWNGRADE]
        if kept != cluster:
            file.replace(_CLUSTER, kept)
        # A lease without a remaining time gets the whole one when a leader takes over (etcd: server/lease/lease.go,
        # getRemainingTTL; lessor.go, Promote).
        leases = [(row, lease_value(replace(lease_of(value), left=0))) for row, value in file.rows(LEASES)]
        if leases:
            file.replace(LEASES, leases)
        file.commit()
        return Revival(newest, keys, alarms, kept != cluster, len(leases))


def _stale(file: BoltFile, prefix: str) -> Iterator[bytes]:
    """The keys of apiservers that are in the database."""
    starts = tuple(f"{prefix}{each}".encode() for each in _ADDRESSES)
    identity = re.compile(f"{re.escape(prefix)}{_IDENTITY}".encode())
    found: dict[bytes, bool] = {}
    for row, stored in file.rows(KEYS):
        name = name_of(stored)
        if name.startswith(starts) or identity.fullmatch(name):
            found[name] = not is_deletion(row)
    return (name for name, lives in found.items() if lives)
