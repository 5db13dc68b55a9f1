"""The standby, and the user's consent to a new epoch of the main etcd cluster."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from quarterdeck.api.base import Model
from quarterdeck.api.values import SiteName

#: A move adds a learner for each replica, beside the standby: etcd takes no more than ``etcd.MAX_LEARNERS``.
MOST_WITH_STANDBY = 5


class RestoreEvents(Model):
    """A moment of the events' etcd cluster in the same backups."""

    #: The epoch of the events' etcd cluster that the moment belongs to.
    epoch: Annotated[int, Field(ge=0)]
    #: The etcd revision that is restored.
    revision: Annotated[int, Field(ge=1)]


class RestoreFrom(Model):
    """A moment of the backups of the plane."""

    #: The URL of the backup store.
    store: str
    #: The folder of the plane's backups in the store.
    folder: str
    #: The epoch of the main etcd cluster that the moment belongs to.
    epoch: Annotated[int, Field(ge=0)]
    #: The etcd revision that is restored.
    revision: Annotated[int, Field(ge=1)]
    #: The moment of the events' etcd cluster; without it, that begins empty, if there is one.
    events: RestoreEvents | None = None


class StandbyPlacement(Model):
    """Where the standby is: a member of etcd that never votes, and only copies the data. A plane that has lost its site
    continues from it with `quarterdeck failover`.
    """

    #: The site of the standby, which is another one than that of the replicas.
    site: SiteName


class NewEpoch(Model):
    """Consent to start the main etcd cluster again, from the data of one survivor, from a backup or from the standby.
    `quarterdeck recover`, `quarterdeck restore` and `quarterdeck failover` write it. It ends when that epoch has begun.
    A consent to recover or to fail over also ends when a quorum answers without a new epoch.
    """

    #: The number of the epoch that may begin.
    epoch: Annotated[int, Field(ge=1)]
    #: Whether it may begin although members that do not answer may still serve clients.
    even_if_others_live: bool = False
    #: The moment that is restored; without it, the epoch begins from a survivor.
    restore: RestoreFrom | None = None
    #: Whether the epoch begins from the standby.
    standby: bool = False
