"""What the face says of the backups of a plane, for tests of what is printed."""

from __future__ import annotations

from quarterdeck.app.backup.backups import BackupRange
from quarterdeck.app.backup.objects import BackedUpObject, BringBack
from quarterdeck.app.backup.restores import RestorePlan
from quarterdeck.backup.chain import FullBackup, KeyHash, ObjectReference
from quarterdeck.backup.contents import DifferenceKind
from quarterdeck.backup.kubernetes.bring_back import FieldChange, Owner
from quarterdeck.backup.kubernetes.object_changes import ComparedMoment, MomentDifference, ObjectChange
from quarterdeck.backup.proof import Proof
from quarterdeck.backup.verifications import VerifiedMoment
from quarterdeck.components.stored_keys import resource_path
from quarterdeck.kube.port import ApiResource
from support.databases import AT

_HASHES = tuple(KeyHash(value=each, revision=1000 + each, compact_revision=-1) for each in (1, 2))
PROOF = Proof(at=AT, revision=1040, keys=1200, size_bytes=5 << 20, compared=_HASHES, incomparable=0, seconds=1.25)
VERIFIED = VerifiedMoment(
    cluster="main",
    epoch=0,
    revision=1040,
    at=AT,
    keys=1200,
    database_bytes=5 << 20,
    hashes=2,
    live=True,
    duration_seconds=1.25,
)
BEFORE, AFTER = ComparedMoment(0, 1040, AT), ComparedMoment(0, 1052, AT)


def _change(kind: DifferenceKind, path: str, *, recreated: bool = False) -> ObjectChange:
    found = resource_path(f"/registry/{path}".encode())
    assert found is not None, path
    return ObjectChange(kind, found, recreated)


LOSSES = MomentDifference(
    BEFORE,
    AFTER,
    (
        *(_change(DifferenceKind.ADDED, f"configmaps/default/later-{number}") for number in range(5)),
        _change(DifferenceKind.CHANGED, "apps.example/widgets/default/one"),
        _change(DifferenceKind.REMOVED, "clusterroles/reader"),
        _change(DifferenceKind.CHANGED, "leases/kube-node-lease/node-1"),
        _change(DifferenceKind.ADDED, "events/default/one.17"),
        _change(DifferenceKind.ADDED, "pods/default/web-1"),
        _change(DifferenceKind.CHANGED, "pods/default/web-0", recreated=True),
        _change(DifferenceKind.CHANGED, "pods/default/web-2"),
    ),
)
NOTHING_LOST = MomentDifference(AFTER, AFTER, ())
FOUND = BackedUpObject(
    plane="alpha",
    moment=BEFORE,
    resource=ApiResource("", "v1", "ConfigMap", "configmaps", namespaced=True),
    namespace="default",
    name="settings",
    document={
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "settings", "namespace": "default", "uid": "u1"},
        "data": {"text": "a value", "lines": "one\ntwo\n"},
    },
)
CREATES = BringBack(object=FOUND, uid="", manifest={}, dropped=(Owner("apps/v1", "Deployment", "web", "uid-of-web"),))
CHANGES = BringBack(
    object=FOUND,
    uid="u2",
    manifest={},
    changes=(
        FieldChange("data.lines", None, "x" * 100),
        FieldChange("data.text", "another [bold]value", "a value"),
        FieldChange("data.password", None, None, hidden=True),
    ),
    left=(FieldChange("data.later", "x", None),),
)
PLAN = RestorePlan(
    plane="alpha",
    store="s3://planes",
    folder="alpha/1",
    epoch=1,
    from_epoch=0,
    revision=1040,
    seen=1052,
    at=AT,
    proof=PROOF,
    losses=LOSSES,
)
FULL = FullBackup(
    cluster="main",
    epoch=0,
    revision=1000,
    at=AT,
    etcd_version="3.6.16",
    hash=KeyHash(value=0xBEEF, revision=1000, compact_revision=-1),
    stored=ObjectReference(name="data/1", sha256="", size_bytes=7),
)
RANGE = BackupRange(
    cluster="main",
    epoch=0,
    first=900,
    last=1040,
    first_at=AT,
    last_at=AT,
    fulls=2,
    size_bytes=3 << 20,
    whole_plane=True,
    verification=None,
)
