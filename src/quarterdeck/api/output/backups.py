"""Backups of planes, and restores."""

from __future__ import annotations

from typing_extensions import override

from quarterdeck.api.output.base import Instant, NamedOutput, OutputModel


class BackupVerification(OutputModel):
    """A backup from which a database was built and checked by a real etcd."""

    #: The plane's name.
    plane: str
    #: The etcd revision.
    revision: int
    #: When it was verified.
    verified_at: Instant
    #: The number of its keys.
    keys: int
    #: The size of the database.
    database_bytes: int
    #: The number of hashes that members had, and the restored database has too.
    hashes_compared: int
    #: Whether one of them is that of a member which served at the time of the verification, at this revision.
    live_hash_compared: bool
    #: How long that took.
    duration_seconds: float


class BackupRow(NamedOutput):
    """A stretch of etcd revisions, each of which can be restored."""

    #: The cluster, its epoch and the first revision.
    name: str
    #: The plane's name.
    plane: str
    #: `main` or `events`.
    cluster: str
    #: The epoch of the cluster.
    epoch: int
    #: The first revision that can be restored.
    first_revision: int
    #: The last revision that can be restored.
    last_revision: int
    #: When the first one was backed up.
    first_at: Instant
    #: When the last one was backed up.
    last_at: Instant
    #: The number of full backups in it.
    fulls: int
    #: The size of its objects in the backup store.
    size_bytes: int
    #: Whether the whole plane can come back from it with its keys, and not only its data.
    whole_plane: bool
    #: The newest verification of one of its revisions; null where none was verified.
    verification: BackupVerification | None

    @property
    @override
    def full_name(self) -> str:
        return f"backup/{self.name}"


class BackupResult(NamedOutput):
    """A moment that can be restored: everything that was acknowledged before the command began."""

    #: The cluster, its epoch and the revision.
    name: str
    #: The plane's name.
    plane: str
    #: The URL of the backup store.
    store: str
    #: The etcd revision.
    revision: int
    #: The revision of the full backup that it needs.
    full_revision: int
    #: etcd's hash of all keys at the revision of the full backup, hexadecimal; null where it has none.
    full_hash: str | None
    #: The size of all objects that are read to restore it.
    size_bytes: int
    #: Whether the whole plane can come back from it with its keys, and not only its data.
    whole_plane: bool

    @property
    @override
    def full_name(self) -> str:
        return f"backup/{self.name}"


class BackupKeyResult(OutputModel):
    """The key that opens the backups of a home."""

    #: The file with the private key.
    file: str
    #: The public key of age for which backups are encrypted.
    public_key: str


class RestoreResult(NamedOutput):
    """A plane whose etcd was restored from a backup."""

    #: The plane's name.
    name: str
    #: The epoch of its etcd that began.
    epoch: int
    #: The etcd revision that was restored.
    revision: int
    #: When that revision, or a later one, was backed up.
    backed_up_at: Instant
    #: The number of later revisions that were observed, and are lost; null for a moment of an earlier epoch.
    lost_revisions: int | None
    #: The URL of the backup store.
    store: str

    @property
    @override
    def full_name(self) -> str:
        return f"plane/{self.name}"
