"""Fills a plane with ConfigMaps of a given size. As a program it runs where the plane's machines can be reached:

python bench/fill.py HOME PLANE OBJECTS BYTES
"""

from __future__ import annotations

import asyncio
import secrets
import sys
from pathlib import Path

import httpx2

from quarterdeck.components.credentials import KeyPair
from quarterdeck.engine.workspace import recorded
from quarterdeck.engine.workspace.access import probe_target
from quarterdeck.engine.workspace.home import Home
from quarterdeck.pki.tls import client_context

_AT_ONCE = 16
#: Small writes after the large ones, as in a cluster in use: etcd keeps its last 5,000 to 15,000 log entries in memory
#: (--snapshot-count, --snapshot-catchup-entries), and right after a bulk load these are the load itself.
_SETTLING = 11_000
#: Bytes from which that matters.
_BULK = 100 << 20


async def fill(folder: Path, plane: str, *, objects: int, size: int) -> None:
    """``objects`` ConfigMaps with ``size`` bytes of text each, in the namespace ``default``."""
    home = await Home.open(folder)
    try:
        resource = await recorded.existing(home.store, plane)
        target = await probe_target(home, resource)
        record = resource.status.memory.replicas[0]
        site = home.sites.open(await home.site(record.slot.site))
        address = next(each.address for each in await site.machines() if each.name == record.machine)
    finally:
        await home.close()
    pair = KeyPair(target.client_cert_pem.encode(), target.client_key_pem.encode())
    context = client_context(target.ca_pem.encode(), pair)
    numbers = iter(range(objects))
    async with httpx2.AsyncClient(verify=context, base_url=f"https://{address}:6443", timeout=60.0) as client:
        await asyncio.gather(*(_write(client, numbers, size) for _ in range(_AT_ONCE)))
        if objects * size >= _BULK:
            left = iter(range(_SETTLING))
            await asyncio.gather(*(_touch(client, f"settle-{number:02}", left) for number in range(_AT_ONCE)))


async def _write(client: httpx2.AsyncClient, numbers, size: int) -> None:  # type: ignore[no-untyped-def]
    for number in numbers:
        body = {"metadata": {"name": f"fill-{number:06}"}, "data": {"text": secrets.token_hex(size // 2)}}
        answer = await client.post("/api/v1/namespaces/default/configmaps", json=body)
        answer.raise_for_status()


async def _touch(client: httpx2.AsyncClient, name: str, left) -> None:  # type: ignore[no-untyped-def]
    where = "/api/v1/namespaces/default/configmaps"
    (await client.post(where, json={"metadata": {"name": name}})).raise_for_status()
    for number in left:
        answer = await client.put(f"{where}/{name}", json={"metadata": {"name": name}, "data": {"n": str(number)}})
        answer.raise_for_status()


if __name__ == "__main__":
    home, plane, objects, size = sys.argv[1:]
    asyncio.run(fill(Path(home), plane, objects=int(objects), size=int(size)))
