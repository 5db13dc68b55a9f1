"""ReplicaRevision: the template of a replica's units. Made by quarterdeck, immutable, kept while needed."""

from __future__ import annotations

import hashlib
import json
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import AfterValidator

from quarterdeck.api.base import Metadata, Model, Resource, named_within, owner_reference
from quarterdeck.api.controlplane import ControlPlane, Encryption, ExtraArgs
from quarterdeck.api.names import PLANE_NAME_MAX
from quarterdeck.api.plane.apiserver import Admission, Tracing
from quarterdeck.api.plane.authentication import Authentication
from quarterdeck.api.plane.authorization import Authorization
from quarterdeck.api.plane.certificates import Certificates
from quarterdeck.api.plane.controllers import CloudControllerManager, ControllerSetSpec
from quarterdeck.api.plane.keys import FIRST_KEY, KeyPurpose, KeyUse
from quarterdeck.api.plane.scheduler import Scheduler
from quarterdeck.api.plane.upgrade import UpgradeWindow
from quarterdeck.api.values import EtcdVersion, KubernetesVersion, StorageClassName

#: Hexadecimal digits of the content's hash in a name.
_DIGITS = 10


class EventsTemplate(Model):
    """A member of the events' etcd."""

    quota_bytes: int
    storage_class: StorageClassName


class EtcdTemplate(Model):
    """A member of etcd, with all defaults filled in. No ``events``: the events are in the same etcd."""

    version: EtcdVersion
    quota_bytes: int
    heartbeat_milliseconds: int
    election_milliseconds: int
    storage_class: StorageClassName
    events: EventsTemplate | None = None
    #: How many entries of raft's log members keep for one that was cut off; None: etcd's default.
    snapshot_catchup_entries: int | None = None


class AuditTemplate(Model):
    """The audit log, with the policy itself (YAML): its file is no longer needed."""

    policy: str
    max_age_days: int
    max_backups: int
    max_size_megabytes: int


class Guard(StrEnum):
    """The lock under which controllers of a set run."""

    SET = "set"  # the set's own
    MANAGER = "manager"  # the main lock of its owner
    NONE = "none"  # they do not run: no manager has them for now


class ControllerSetTemplate(ControllerSetSpec):
    """A set on replicas of a revision: its owner runs it under that lock, and the other manager does not run it."""

    guard: Guard


class ReplicaTemplate(Model):
    """Everything that is equal on all replicas of a revision. It is complete: rendering needs nothing else.

    ``endpoint_name`` is the plane's DNS name ("": it has none). ``node_bootstrap``: whether nodes join with tokens;
    never False, so that a template without it keeps its name. A field that is added later is None where it is not set,
    and then not part of the content: stored revisions keep their names.
    """

    kubernetes_version: KubernetesVersion
    etcd: EtcdTemplate
    service_cidr: str
    #: None: Services have addresses of one family.
    secondary_service_cidr: str | None = None
    endpoint_name: str
    encryption: Encryption
    audit: AuditTemplate
    extra_args: ExtraArgs
    authentication: Authentication | None = None
    #: None: the usual one, which is the only one.
    service_account_issuers: tuple[str, ...] | None = None
    authorization: Authorization | None = None
    admission: Admission | None = None
    tracing: Tracing | None = None
    scheduler: Scheduler | None = None
    #: None: the usual one, in which the programs behave as their own version.
    upgrade_window: UpgradeWindow | None = None
    cloud_controller_manager: CloudControllerManager | None = None
    controller_sets: tuple[ControllerSetTemplate, ...] | None = None
    node_bootstrap: Literal[True] | None = None
    certificates: Certificates
    #: None: the first one.
    encryption_key: KeyUse | None = None
    #: None: the first one.
    service_account_key: KeyUse | None = None

    def key_use(self, purpose: KeyPurpose) -> KeyUse:
        """How the keys of one purpose are used."""
        match purpose:
            case KeyPurpose.ENCRYPTION:
                return self.encryption_key or FIRST_KEY
            case KeyPurpose.SERVICE_ACCOUNT:
                return self.service_account_key or FIRST_KEY

    @property
    def digest(self) -> str:
        """A hash of the content: equal content, equal hash, in all processes and versions."""
        content = self.model_dump(mode="json", by_alias=True, exclude_none=True)
        text = json.dumps(content, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


class ReplicaRevision(Resource):
    """A revision of the plane that owns it. Its spec never changes: other content is another revision."""

    kind: Literal["ReplicaRevision"] = "ReplicaRevision"
    metadata: Annotated[Metadata, AfterValidator(named_within(PLANE_NAME_MAX + 1 + _DIGITS))]
    spec: ReplicaTemplate


def revision_of(plane: ControlPlane, template: ReplicaTemplate) -> ReplicaRevision:
    """The revision of a stored plane with that content."""
    name = f"{plane.name}-{template.digest[:_DIGITS]}"
    return ReplicaRevision(metadata=Metadata(name=name, owner_references=(owner_reference(plane),)), spec=template)
