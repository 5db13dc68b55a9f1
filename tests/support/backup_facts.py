"""What the face says of the backups of a plane, for tests of what is printed."""

from __future__ import annotations

from quarterdeck.app.backup.backups import BackupRange
from quarterdeck.app.backup.restores import RestorePlan
from quarterdeck.backup.chain import FullBackup, KeyHash, ObjectReference
from quarterdeck.backup.proof import Proof
from quarterdeck.backup.verifications import VerifiedMoment
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
