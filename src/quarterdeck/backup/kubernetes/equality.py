"""Whether two apiservers have the same objects at one revision of etcd, each of them with the same content."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from pydantic import JsonValue

from quarterdeck.addons.objects import Manifest, items, mapping, text_of
from quarterdeck.backup.kubernetes.kinds import CRDS, ServedKinds, served_kinds
from quarterdeck.errors import Unavailable
from quarterdeck.kube.port import Address, ApiResource, Objects

#: How many objects one answer has: they are held in memory.
_PAGE: Final = 500
_HASH_BYTES: Final = 16


@dataclass(frozen=True, slots=True)
class ObjectServer:
    """An apiserver that can be asked for objects."""

    objects: Objects
    address: Address


@dataclass(frozen=True, slots=True)
class ObjectComparison:
    """How many objects two apiservers have alike, and the names of those that they do not, such as ``pods a/b``."""

    equal: int
    different: tuple[str, ...]


async def compare_objects(first: ObjectServer, second: ObjectServer, revision: int) -> ObjectComparison:
    """Compare all objects of all kinds that the first one serves, as of a revision of etcd. Nothing but a hash of each
    object is kept. Raises Unavailable, also where a server no longer has that revision.
    """
    exactly = f"resourceVersion={revision}&resourceVersionMatch=Exact"
    kinds = await served_kinds(first.objects, first.address, f"{CRDS.path()}?{exactly}")
    equal, different = 0, list[str]()
    for kind in _ordered(kinds):
        async with aclosing(_digests(first, kind, exactly)) as its:
            known = {name: digest async for name, digest in its}
        async with aclosing(_digests(second, kind, exactly)) as others:
            async for name, digest in others:
                if known.pop(name, b"") == digest:
                    equal += 1
                else:
                    different.append(f"{kind.plural} {name}")
        different += (f"{kind.plural} {name}" for name in known)
    return ObjectComparison(equal, tuple(different))


def _ordered(kinds: ServedKinds) -> list[ApiResource]:
    return sorted(kinds.each_once, key=lambda each: (each.group, each.plural))


async def _digests(server: ObjectServer, kind: ApiResource, exactly: str) -> AsyncGenerator[tuple[str, bytes], None]:
    """The name and the hash of each object of a kind."""
    query = f"limit={_PAGE}&{exactly}"
    while True:
        path = f"{kind.path()}?{query}"
        page = mapping(await server.objects.read(server.address, path))
        if not page:
            seen = f"it does not serve {kind.plural} ({kind.group or kind.version})"
            raise Unavailable(f"comparing objects at {server.address}", seen, "try again later")
        for each in items(page.get("items")):
            yield _name(each), _digest(each)
        more = text_of(mapping(page.get("metadata")).get("continue"))
        if not more:
            return
        query = f"limit={_PAGE}&continue={quote(more)}"


def _name(document: Manifest) -> str:
    metadata = mapping(document.get("metadata"))
    return "/".join(filter(None, (text_of(metadata.get("namespace")), text_of(metadata.get("name")))))


def _digest(document: Mapping[str, JsonValue]) -> bytes:
    text = json.dumps(document, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=_HASH_BYTES).digest()
