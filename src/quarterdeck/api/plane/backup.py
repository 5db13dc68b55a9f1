"""The backups of a plane."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, AwareDatetime, Field

from quarterdeck.api.base import Model
from quarterdeck.api.names import shortened
from quarterdeck.api.schema import ONCE, InSchema
from quarterdeck.api.values import AbsolutePath, Seconds

_STORES = ("file:///", "s3://", "gs://", "az://")
#: Seconds: a verification reads all of a backup.
_OFTEN_S = 60.0
_RECIPIENT = r"^age1[02-9ac-hj-np-z]{58}$"


def _store(url: str) -> str:
    if not url.startswith(_STORES) or url in _STORES:
        raise ValueError(
            f"{shortened(url)} is not the URL of a backup store, such as file:///mnt/backups or s3://bucket"
        )
    return url.rstrip("/")


BackupStoreUrl = Annotated[str, AfterValidator(_store), InSchema({"pattern": "^(file:///|s3://|gs://|az://)."})]
Recipient = Annotated[str, Field(pattern=_RECIPIENT)]


class BackupRetention(Model):
    """How many full backups are kept. What is needed to restore a kept moment is never deleted."""

    #: The newest ones.
    last: Annotated[int, Field(ge=1, le=1000)] = 3
    #: The newest of each of so many hours.
    hourly: Annotated[int, Field(ge=0, le=1000)] = 0
    #: The newest of each of so many days.
    daily: Annotated[int, Field(ge=0, le=1000)] = 7
    #: The newest of each of so many weeks.
    weekly: Annotated[int, Field(ge=0, le=1000)] = 4
    #: The time for which any moment can be restored.
    continuous: Annotated[Seconds, Field(ge=0)] = 86_400.0


class BackupSettings(Model):
    """Continuous backups of the plane, which the manager takes."""

    #: Whether the manager takes backups. A backup store gets up to two objects a second while a plane is written to.
    enabled: bool = True
    #: The backup store: `file:///FOLDER`, `s3://BUCKET/PREFIX`, `gs://BUCKET/PREFIX` or `az://CONTAINER/PREFIX`;
    #: without it, the folder `backups` of the home.
    store: BackupStoreUrl | None = None
    #: A file on this host with options of the store as lines `NAME=VALUE`, such as `region`, `endpoint`,
    #: `access_key_id` and `secret_access_key`. Options that are missing come from the environment of the manager.
    options_file: AbsolutePath | None = None
    #: Public keys of age that can decrypt the backups besides the key of the home.
    recipients: Annotated[tuple[Recipient, ...], ONCE] = ()
    #: How many backups are kept.
    retention: BackupRetention = BackupRetention()
    #: Whether the events' etcd is backed up too, where there is one.
    events: bool = False
    #: The time from one verification to the next: the newest backup is restored in a scratch etcd and compared with the
    #: members. `null`: only `quarterdeck backup verify` does so.
    verify_every: Annotated[Seconds, Field(ge=_OFTEN_S)] | None = 86_400.0


class BackupStatus(Model):
    """The backups of the plane, as they were within the last minute."""

    #: The newest etcd revision that can be restored.
    revision: int
    #: A time at which there was no newer revision.
    restorable_at: AwareDatetime
    #: The number of full backups.
    fulls: int
    #: The size of all objects in the backup store.
    size_bytes: int
    #: The etcd revision that was verified last; absent before the first verification.
    verified_revision: int | None = None
    #: When it was verified.
    verified_at: AwareDatetime | None = None
