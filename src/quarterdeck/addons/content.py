"""The content of add-ons: its stored form, and its validation."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from quarterdeck.addons.applyset import IMMORTAL, PART_OF
from quarterdeck.addons.objects import DesiredObject, GroupKind, Manifest, Ref, defined, mapping, wanted_of
from quarterdeck.errors import InvalidInput

#: Bytes of an object as JSON: etcd accepts no larger requests (its --max-request-bytes).
OBJECT_MAX = 1_500_000
#: Bytes of all add-ons of a plane: they are read whole.
TOTAL_MAX = 16 * 2**20
#: How many items a message names.
_TOLD = 3


@dataclass(frozen=True, slots=True)
class Content:
    """The objects of one add-on, by their references."""

    addon: str
    objects: tuple[DesiredObject, ...]

    @property
    def refs(self) -> frozenset[Ref]:
        """The references of its objects."""
        return frozenset(each.ref for each in self.objects)

    def encoded(self) -> str:
        """Its stored form. Equal content has equal text."""
        rows = [{"namespace": each.ref.namespace, "manifest": each.manifest} for each in self.objects]
        return json.dumps(rows, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def digest_of(text: str) -> str:
    """The digest of an encoded content."""
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def decoded(addon: str, text: str) -> Content:
    """The content from its stored form."""
    rows = json.loads(text)
    scopes = _scopes(row["manifest"] for row in rows)
    objects = (_kept(row["manifest"], row["namespace"], scopes) for row in rows)
    return Content(addon, tuple(objects))


def _kept(manifest: Manifest, namespace: str, scopes: Mapping[GroupKind, bool]) -> DesiredObject:
    """One of them, in the namespace that was decided on when it was read."""
    found = wanted_of(manifest, namespace, scopes)
    return DesiredObject(Ref(found.ref.kind, namespace, found.ref.name), found.version, manifest)


def contents(read: Sequence[tuple[str, str, Sequence[Manifest]]], plane: str) -> tuple[Content, ...]:
    """What add-ons have: for each its name, the namespace of objects that name none, and its manifests.

    Raises InvalidInput for one without objects, an object that is there twice or is larger than etcd takes, a label
    that names its owner, and for too much in total.
    """
    scopes = _scopes(manifest for _, _, manifests in read for manifest in manifests)
    found = []
    owners: dict[Ref, str] = {}
    for addon, namespace, manifests in read:
        doing = f"reading add-on {addon} of plane {plane}"
        if not manifests:
            raise InvalidInput(doing, "it has no objects", "remove the add-on, or add objects")
        objects = tuple(sorted((wanted_of(each, namespace, scopes) for each in manifests), key=lambda each: each.ref))
        for each in objects:
            _require_possible(each, doing)
            other = owners.setdefault(each.ref, addon)
            if other != addon or sum(one.ref == each.ref for one in objects) > 1:
                seen = f"{each.ref} is in add-on {other} as well" if other != addon else f"{each.ref} is in it twice"
                raise InvalidInput(doing, seen, "only one add-on may have it, once")
        found.append(Content(addon, objects))
    total = sum(len(each.encoded()) for each in found)
    if total > TOTAL_MAX:
        seen = f"they have {total / 2**20:.1f} MiB; at most {TOTAL_MAX // 2**20} MiB are allowed"
        raise InvalidInput(f"reading the add-ons of plane {plane}", seen, "install such large objects by other means")
    return tuple(found)


def _scopes(manifests: Iterable[Manifest]) -> dict[GroupKind, bool]:
    return dict(each for each in map(defined, manifests) if each is not None)


def _require_possible(wanted: DesiredObject, doing: str) -> None:
    size = len(json.dumps(wanted.manifest, separators=(",", ":"), ensure_ascii=False).encode(errors="surrogatepass"))
    if size > OBJECT_MAX:
        raise InvalidInput(doing, f"{wanted.ref} has {size:,} bytes, and etcd accepts no object over {OBJECT_MAX:,}")
    labels = mapping(mapping(wanted.manifest.get("metadata")).get("labels"))
    if PART_OF in labels:
        raise InvalidInput(doing, f"{wanted.ref} has the label {PART_OF}, which marks its owner", "remove the label")


def gone_with_a_namespace(before: Iterable[Ref], wanted: Iterable[Content]) -> tuple[str, ...]:
    """What would be lost with namespaces that are no longer wanted though objects in them still are, in words."""
    wanted = tuple(wanted)
    kept = {ref for each in wanted for ref in each.refs}
    gone = {ref.name for ref in before if ref.kind == GroupKind("", "Namespace") and ref not in kept} - IMMORTAL
    lost = sorted(ref for ref in kept if ref.namespace in gone)
    words = [f"{ref} is wanted in namespace {ref.namespace}, which would be deleted" for ref in lost]
    return tuple(words[:_TOLD])


# What a change of add-ons changes, object by object; never what the objects say.


@dataclass(frozen=True, slots=True, kw_only=True)
class AddonChange:
    """The changes of one add-on: its added, changed and removed objects."""

    addon: str
    added: Sequence[Ref] = ()
    changed: Sequence[Ref] = ()
    removed: Sequence[Ref] = ()

    @property
    def words(self) -> str:
        """Such as ``3 added, 1 removed``."""
        counts = (("added", self.added), ("changed", self.changed), ("removed", self.removed))
        return ", ".join(f"{len(refs)} {word}" for word, refs in counts if refs)


def changes(before: Iterable[Content], after: Iterable[Content]) -> tuple[AddonChange, ...]:
    """All add-ons with changes, by name."""
    old, new = ({each.addon: each for each in contents} for contents in (before, after))
    found = (_change(name, old.get(name), new.get(name)) for name in sorted(old.keys() | new.keys()))
    return tuple(each for each in found if each.words)


def _change(addon: str, before: Content | None, after: Content | None) -> AddonChange:
    old = {each.ref: each for each in before.objects} if before is not None else {}
    new = {each.ref: each for each in after.objects} if after is not None else {}
    changed = (ref for ref in old.keys() & new.keys() if old[ref] != new[ref])
    return AddonChange(
        addon=addon,
        added=sorted(new.keys() - old.keys()),
        changed=sorted(changed),
        removed=sorted(old.keys() - new.keys()),
    )
