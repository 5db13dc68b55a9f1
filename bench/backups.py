"""Full backups to a folder, and restores from it, beside etcd's own tools: how long they take, and how much memory.

    python bench/backups.py [--gigabytes 1] [--runs 3]

One etcd serves a database of that size; half of each value is random. In each run ``etcdctl snapshot save`` and a full
backup take turns, and so do ``etcdutl snapshot restore`` and a restore. *build* makes the database out of the backup,
*prove* has etcd check each page and serve from it, *revive* changes what a new cluster must not have. The memory is
the most that quarterdeck's process had; etcd's programs beside it are not counted.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

from lab import Noise, markdown, spread, this_machine
from pyrage import x25519
from support.databases import database, put
from support.endpoint_lab import free_port

from quarterdeck.backup.build import build
from quarterdeck.backup.chain import BackupMoment, FullBackup
from quarterdeck.backup.deposit import Deposit
from quarterdeck.backup.objects.stores import open_store
from quarterdeck.backup.proof import prove
from quarterdeck.backup.recording.collector import Subject
from quarterdeck.backup.recording.fulls import SnapshotTaker
from quarterdeck.backup.recording.policy import FullReason, RecordingPace
from quarterdeck.backup.records import RevisionChange
from quarterdeck.backup.revival import revive
from quarterdeck.backup.scratch_etcd import EtcdPrograms, LoopbackClients, scratch_etcd
from quarterdeck.backup.sealing import Identities, Recipients
from quarterdeck.components.credentials import KeyPair
from quarterdeck.etcd.calls import ClientTls
from quarterdeck.etcd.maintenance import ROOT
from quarterdeck.etcd.real import RealEtcd
from quarterdeck.files import write_secret
from quarterdeck.model.seats import HostPort
from quarterdeck.pki.authority import create_authority, issue
from quarterdeck.pki.certificate import CertificateRequest, Usage
from quarterdeck.upstream.catalog import UpstreamProgram, Versions
from quarterdeck.upstream.upstream import Upstream

#: Bytes of a value.
VALUE = 10_000
#: Seconds for one step of a proof.
PATIENCE = 3600.0
SAVE, FULL, RESTORE, BUILD, WHOLE = "etcdctl save", "full backup", "etcdutl restore", "build", "build, prove, revive"


def changes(size: int) -> Iterator[RevisionChange]:
    """Revisions that write one key each, with ``size`` bytes of values in all."""
    lots = random.Random(1)
    for revision in range(2, 2 + size // VALUE):
        value = lots.randbytes(VALUE // 2) + b"quarterdeck" * (VALUE // 22)
        yield RevisionChange(revision, 0, (put(f"/registry/configmaps/default/fill-{revision:09}", value, revision),))


class Folder:
    """What the measured processes find."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.database, self.snapshot, self.full = path / "source.db", path / "snapshot.db", path / "full.json"
        self.ca, self.certificate, self.private_key = path / "ca.crt", path / "client.crt", path / "client.key"
        self.key, self.url = path / "backup.key", path / "url"

    def tls(self) -> ClientTls:
        pair = KeyPair(self.certificate.read_bytes(), self.private_key.read_bytes())
        return ClientTls(self.ca.read_bytes(), pair)

    def prepare(self, contents: Iterable[RevisionChange]) -> LoopbackClients:
        """The database, keys, and for whom etcd listens."""
        database(self.database, contents)
        (self.path / "store").mkdir()
        write_secret(self.key, str(x25519.Identity.generate()).encode())
        now, day = datetime.now(UTC), timedelta(days=1)
        authority = create_authority("bench", now, lifetime=day)
        client = issue(authority, CertificateRequest(common_name=ROOT, usage=Usage.CLIENT, lifetime=day), now)
        for path, content in (
            (self.ca, authority.certificate),
            (self.certificate, client.certificate),
            (self.private_key, client.key),
        ):
            write_secret(path, content)
        at = HostPort("127.0.0.1", free_port("127.0.0.1"))
        self.url.write_text(at.url())
        return LoopbackClients(at, authority)


async def take_full(folder: Folder) -> dict[str, float]:
    """A full backup to a folder; what it took."""
    since, etcd = time.monotonic(), RealEtcd(folder.tls())
    url = folder.url.read_text()
    recipients = Recipients((str(x25519.Identity.from_str(folder.key.read_text()).to_public()),))
    try:
        subject = Subject(plane="bench", cluster="main", epoch=0, etcd=etcd, urls=lambda: (url,))
        taker = SnapshotTaker(
            subject=subject, folder=folder.path / "scratch", now=lambda: datetime.now(UTC), pace=RecordingPace()
        )
        taken = await taker.take(FullReason.FIRST)
        deposit = Deposit(store=open_store(f"file://{folder.path / 'store'}"), prefix="bench", recipients=recipients)
        full = taken.full(subject, await deposit.put(taken.parts()))
    finally:
        await etcd.close()
    folder.full.write_text(full.model_dump_json())
    return {FULL: time.monotonic() - since}


async def restore(folder: Folder) -> dict[str, float]:
    """The database out of the newest full backup; what each part of that took."""
    full = FullBackup.model_validate_json(folder.full.read_text())
    store, target = open_store(f"file://{folder.path / 'store'}"), folder.path / "restored.db"
    identities = Identities((folder.key.read_text(),))
    marks = [time.monotonic()]
    await build(store, BackupMoment(full, (), full.revision), identities, target)
    marks.append(time.monotonic())
    await prove(target, full.revision, [full.hash] if full.hash else [], await programs(), deadline=PATIENCE)
    marks.append(time.monotonic())
    revive(target)
    marks.append(time.monotonic())
    steps = [after - before for before, after in pairwise(marks)]
    return dict(zip((BUILD, "prove", "revive"), steps, strict=True)) | {WHOLE: sum(steps)}


async def programs() -> EtcdPrograms:
    """Those of this host's etcd."""
    wanted = (UpstreamProgram.ETCD, UpstreamProgram.ETCDUTL)
    found = await Upstream.from_environment(os.environ).ensure(wanted, Versions())
    return EtcdPrograms(found[UpstreamProgram.ETCD], found[UpstreamProgram.ETCDUTL])


MEASURED = {"full": take_full, "restore": restore}


def measured(folder: Folder, what: str) -> dict[str, float]:
    """What a process of its own measures."""
    argv = (sys.executable, __file__, "--measure", what, "--folder", str(folder.path))
    return dict(json.loads(subprocess.run(argv, check=True, capture_output=True, text=True).stdout))


def timed(*argv: str | Path) -> float:
    """Seconds that a program took."""
    since = time.monotonic()
    subprocess.run(argv, check=True, capture_output=True)
    return time.monotonic() - since


def run(folder: Folder, etcdctl: Path, etcdutl: Path) -> dict[str, float]:
    """One run: each tool of etcd's, and right after it what does the same here."""
    for each in (folder.path / "store" / "bench", folder.path / "restored"):
        shutil.rmtree(each, ignore_errors=True)
    (folder.path / "restored.db").unlink(missing_ok=True)
    client = (f"--cacert={folder.ca}", f"--cert={folder.certificate}", f"--key={folder.private_key}")
    found = {
        SAVE: timed(etcdctl, f"--endpoints={folder.url.read_text()}", *client, "snapshot", "save", folder.snapshot)
    }
    found |= {name.replace("peak", "full, peak"): each for name, each in measured(folder, "full").items()}
    found[RESTORE] = timed(etcdutl, "snapshot", "restore", folder.snapshot, "--data-dir", folder.path / "restored")
    return found | {name.replace("peak", "restore, peak"): each for name, each in measured(folder, "restore").items()}


async def compare(folder: Folder, gigabytes: float, runs: int) -> list[dict[str, float]]:
    """All runs."""
    clients = folder.prepare(changes(int(gigabytes * 1e9)))
    wanted = UpstreamProgram.ETCDCTL
    etcdctl = (await Upstream.from_environment(os.environ).ensure((wanted,), Versions()))[wanted]
    its = await programs()
    async with scratch_etcd(folder.database, its, deadline=PATIENCE, others=clients):
        found = []
        for number in range(runs):
            found.append(await asyncio.to_thread(run, folder, etcdctl, its.etcdutl))
            print(f"{number + 1}: {found[-1]}", file=sys.stderr, flush=True)
        return found


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=1.0)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--measure", choices=[*MEASURED], help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    wanted = parser.parse_args()
    if wanted.measure:
        found = asyncio.run(MEASURED[wanted.measure](Folder(wanted.folder)))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(json.dumps(found | {"peak MiB": peak}))
        return
    noise = Noise()
    with tempfile.TemporaryDirectory(prefix="qdb.") as path:
        found = asyncio.run(compare(Folder(Path(path)), wanted.gigabytes, wanted.runs))
    print(f"\n{this_machine()}; {wanted.runs} runs, {wanted.gigabytes:g} GB\n")
    names = [*found[0]]
    rows = [[name, spread([each[name] for each in found])] for name in names]
    for ours, its in ((FULL, SAVE), (BUILD, RESTORE), (WHOLE, RESTORE)):
        rows.append([f"{ours} / {its}", spread([each[ours] / each[its] for each in found])])
    print(markdown(("", "seconds, MiB or ratio: median (least - most)"), rows))
    print(markdown(("stolen s", "pace ms"), [noise.cells()]))


if __name__ == "__main__":
    main()
