"""The etcd of a plane, and the optional second one for Kubernetes events."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from quarterdeck.api.base import Model
from quarterdeck.api.plane.upgrade import SHORTEST_SOAK
from quarterdeck.api.schema import refuse
from quarterdeck.api.values import DEFAULT_ETCD_VERSION, Bytes, EtcdVersion, Seconds, StorageClassName

#: etcd's own defaults (server/embed/config.go), in milliseconds.
ETCD_HEARTBEAT = 100
ETCD_ELECTION = 1_000
#: etcd refuses to start above this, and below five heartbeats.
ETCD_ELECTION_MAX = 50_000
#: The quota of a database, in bytes.
QUOTA_MIN = 64 * 2**20
QUOTA_DEFAULT = 8 * 2**30
QUOTA_MAX = 64 * 2**30


class Events(Model):
    """Kubernetes events in a second etcd cluster."""

    #: Whether each replica has a second etcd member for the Kubernetes events, with a volume of its own.
    separate: bool = False
    #: The storage class of these volumes; without it, that of the other etcd volumes. It needs `separate`.
    storage_class: StorageClassName | None = None
    #: The largest size of the events' database. etcd accepts no writes beyond it.
    quota_bytes: Annotated[Bytes, Field(ge=QUOTA_MIN, le=QUOTA_MAX)] = QUOTA_DEFAULT


class EtcdUpgrade(Model):
    """How far a plane goes with its etcd."""

    #: Whether one member stays at the former minor version.
    keep_one: bool = False
    #: The last version, if not `version`.
    to: EtcdVersion | None = None
    #: When the manager upgrades it too (default: never).
    soak: Annotated[Seconds, Field(ge=SHORTEST_SOAK)] | None = None


class Etcd(Model):
    """Settings of etcd. They are equal on all members."""

    #: The version of etcd. A plane keeps its own where a document names none.
    version: EtcdVersion = DEFAULT_ETCD_VERSION
    #: How far it goes.
    upgrade: EtcdUpgrade | None = None
    #: The largest size of the database. etcd accepts no writes beyond it.
    quota_bytes: Annotated[Bytes, Field(ge=QUOTA_MIN, le=QUOTA_MAX)] = QUOTA_DEFAULT
    #: The storage class of etcd's volumes; without it, `placement.storageClass`.
    storage_class: StorageClassName | None = None
    #: The interval of the leader's heartbeats; without it, etcd's default (100).
    heartbeat_milliseconds: Annotated[int, Field(ge=10, le=10_000)] | None = None
    #: The time without a heartbeat before an election, at least five heartbeats; without it, etcd's default (1000).
    election_milliseconds: Annotated[int, Field(ge=100, le=ETCD_ELECTION_MAX)] | None = None
    #: Kubernetes events in a second etcd cluster.
    events: Events = Events()

    @model_validator(mode="after")
    def _an_election_takes_five_heartbeats(self) -> Etcd:
        heartbeat = self.heartbeat_milliseconds or ETCD_HEARTBEAT
        election = self.election_milliseconds or ETCD_ELECTION
        if election < 5 * heartbeat:
            refuse(
                (
                    "electionMilliseconds",
                    f"{election} is less than five heartbeats of {heartbeat}; etcd refuses that",
                )
            )
        return self
