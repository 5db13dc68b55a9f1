"""Backups of planes, and restores."""

from __future__ import annotations

from pydantic import ConfigDict, JsonValue
from pydantic.alias_generators import to_camel
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


class ChangedObject(NamedOutput):
    """An object that two moments of a backup do not have alike."""

    #: The object's name.
    name: str
    #: `added`, `removed` or `changed`: what happened to it from the earlier moment to the later one.
    change: str
    #: Whether a changed object is another one than before: it was deleted and created again.
    recreated: bool
    #: The resource, such as `configmaps`.
    resource: str
    #: The API group, where etcd's key has one: that of custom resources; null for most upstream kinds.
    group: str | None
    #: The object's namespace; null for one without.
    namespace: str | None

    @property
    @override
    def full_name(self) -> str:
        kind = f"{self.resource}.{self.group}" if self.group else self.resource
        return "/".join(filter(None, ("object", kind, self.namespace, self.name)))


class ComparedPoint(OutputModel):
    """A moment of a backup that was compared."""

    #: The epoch of the cluster.
    epoch: int
    #: The etcd revision.
    revision: int
    #: When that revision, or a later one, was backed up.
    backed_up_at: Instant


class BackupDifference(OutputModel):
    """How the objects of a plane differ between two moments of its backup."""

    #: The plane's name.
    plane: str
    #: The moment of `--at`.
    before: ComparedPoint
    #: The moment of `--and`.
    after: ComparedPoint
    #: The objects that differ, in the order of their keys.
    objects: tuple[ChangedObject, ...]
    #: The number of those that are left out without `--all`: events, leases and other records of programs.
    left_out: int


class KubernetesObject(OutputModel):
    """An object of Kubernetes, with all its fields."""

    model_config = ConfigDict(extra="allow", alias_generator=to_camel)

    #: The API group and version.
    api_version: str
    #: The kind.
    kind: str
    #: The metadata.
    metadata: dict[str, JsonValue]


class ObjectBroughtBack(NamedOutput):
    """An object that was brought back from a backup."""

    #: The object's name.
    name: str
    #: The plane's name.
    plane: str
    #: `created`, `changed`, or `unchanged` where the plane had all of it.
    action: str
    #: The resource, such as `configmaps`.
    resource: str
    #: The API group; "" for the core group.
    group: str
    #: The object's namespace; null for one without.
    namespace: str | None
    #: The etcd revision as of which it is.
    revision: int
    #: The paths of fields that changed.
    changed_fields: tuple[str, ...]
    #: The paths of fields that were not as they are now, and stay so: they were added since.
    left_fields: tuple[str, ...]
    #: Owners (KIND/NAME) that no longer exist: it does not name them any more.
    dropped_owners: tuple[str, ...]

    @property
    @override
    def full_name(self) -> str:
        kind = f"{self.resource}.{self.group}" if self.group else self.resource
        return "/".join(filter(None, ("object", kind, self.namespace, self.name)))


class RestoreLosses(OutputModel):
    """The differences between the newest moment of a backup and the restored one."""

    #: The newest moment of the backup.
    newest: ComparedPoint
    #: What happened to objects since the restored moment, and is undone: without events, leases and other records of
    #: programs.
    objects: tuple[ChangedObject, ...]
    #: Pods (NAMESPACE/NAME) that were created since. They go on running on their nodes, and the restored plane does not
    #: know them.
    pods_created_later: tuple[str, ...]


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
    #: What is lost, in objects; null where it could not be determined.
    losses: RestoreLosses | None
    #: The URL of the backup store.
    store: str
    #: The etcd revision that was restored of the events' etcd; null where there is none, or it begins empty.
    events_revision: int | None
    #: The plane that was backed up, if another one begins with its data; null for a restore in place.
    copy_of: str | None

    @property
    @override
    def full_name(self) -> str:
        return f"plane/{self.name}"
