"""A census of what etcd stores: how long it takes, and how much memory, by how the values are stored.

    python bench/census.py [--gigabytes 1] [--runs 3]

One etcd at a time serves a database of that size, with values of 1 to 10 kB: all in protobuf, all custom resources in
JSON, or all Secrets that are encrypted; or a mixture of these, 8 to 1 to 1. Each census has a process of its own; the
memory is the most that it had beyond what it had before.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from backups import PATIENCE, Folder, programs
from lab import Noise, markdown, spread, this_machine
from support.databases import put
from support.secretbox import seal
from support.stored_values import protobuf

from quarterdeck.backup.records import RevisionChange
from quarterdeck.backup.scratch_etcd import scratch_etcd
from quarterdeck.census.census import census
from quarterdeck.components.credentials import EncryptionKey
from quarterdeck.etcd.real import RealEtcd

KEY = EncryptionKey("key1", b"k" * 32)
#: Bytes of a value.
SMALLEST, LARGEST = 1_000, 10_000
#: Bytes of the object of a Secret that are encrypted for a benchmark.
_BEGINNING = 60

#: The name of a key, and the value, with this content.
Stored = Callable[[bytes], tuple[str, bytes]]


def config_map(content: bytes) -> tuple[str, bytes]:
    """In protobuf."""
    return "configmaps/default", protobuf("v1", "ConfigMap", content)


def widget(content: bytes) -> tuple[str, bytes]:
    """A custom resource."""
    value = {"apiVersion": "example.com/v1", "kind": "Widget", "spec": {"content": content.hex()[: len(content)]}}
    return "example.com/widgets/default", json.dumps(value).encode()


def secret(content: bytes) -> tuple[str, bytes]:
    """Encrypted. What is behind its beginning is not looked at beyond its hash."""
    beginning = protobuf("v1", "Secret", bytes(_BEGINNING))
    return "secrets/default", b"k8s:enc:secretbox:v1:key1:" + seal(KEY.secret, bytes(24), beginning, content)


MIXTURES: Mapping[str, tuple[Stored, ...]] = {
    "protobuf": (config_map,),
    "JSON": (widget,),
    "encrypted": (secret,),
    "mixture": (*(config_map,) * 8, widget, secret),
}


def changes(size: int, kinds: tuple[Stored, ...]) -> Iterator[RevisionChange]:
    """Revisions that write one key each, with ``size`` bytes of values in all."""
    lots = random.Random(1)
    noise = lots.randbytes(2 * LARGEST)
    for revision, kind in enumerate(itertools.cycle(kinds), 2):
        if size <= 0:
            return
        at = lots.randint(0, LARGEST)
        name, value = kind(noise[at : at + lots.randint(SMALLEST, LARGEST)])
        size -= len(value)
        yield RevisionChange(revision, 0, (put(f"/registry/{name}/fill-{revision:09}", value, revision),))


async def measure(folder: Folder) -> dict[str, float]:
    """A census, and what it took."""
    etcd, url = RealEtcd(folder.tls()), folder.url.read_text()
    try:
        await etcd.revision((url,))  # the connection is there
        before, since, used = _peak(), time.monotonic(), time.process_time()
        found = await census(etcd, (url,), (KEY,))
    finally:
        await etcd.close()
    assert not found.unreadable, found.unreadable
    seconds, cpu = time.monotonic() - since, time.process_time() - used
    return {"values": found.number, "seconds": seconds, "cpu": cpu, "memory": _peak() - before}


def _peak() -> float:
    """MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


async def rows(size: int, runs: int) -> list[list[str]]:
    """A row for each mixture."""
    table = []
    for name, kinds in MIXTURES.items():
        with tempfile.TemporaryDirectory(prefix="qdb.") as path:
            folder = Folder(Path(path))
            clients = folder.prepare(changes(size, kinds))
            async with scratch_etcd(folder.database, await programs(), deadline=PATIENCE, others=clients):
                found = [await asyncio.to_thread(measured, folder) for _ in range(runs)]
        print(f"{name}: {found}", file=sys.stderr, flush=True)
        cells = (spread([each[what] for each in found]) for what in ("seconds", "cpu", "memory"))
        table.append([name, f"{found[0]['values']:,.0f}", *cells])
    return table


def measured(folder: Folder) -> dict[str, float]:
    """What a process of its own measures."""
    argv = (sys.executable, __file__, "--folder", str(folder.path))
    return dict(json.loads(subprocess.run(argv, check=True, stdout=subprocess.PIPE, text=True).stdout))


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=1.0)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    wanted = parser.parse_args()
    if wanted.folder:
        print(json.dumps(asyncio.run(measure(Folder(wanted.folder)))))
        return
    noise = Noise()
    table = asyncio.run(rows(int(wanted.gigabytes * 1e9), wanted.runs))
    print(f"\n{this_machine()}; {wanted.runs} runs, {wanted.gigabytes:g} GB\n")
    print(markdown(("values", "number", "seconds", "of one core: s", "memory: MiB"), table))
    print(markdown(("stolen s", "pace ms"), [noise.cells()]))


if __name__ == "__main__":
    main()
