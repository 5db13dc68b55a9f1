"""One add-on in a plane: applied, pruned, checked and removed, through one apiserver and under the plane's lease."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pydantic import JsonValue

from quarterdeck.actions.addresses import apiserver_address
from quarterdeck.actions.plane import Plane
from quarterdeck.addons.applyset import (
    ID,
    IMMORTAL,
    MANAGER,
    NAMESPACE,
    PART_OF,
    ApplySetParent,
    as_member,
    fields_digest,
    ours,
    owned_fields,
    parent_of,
)
from quarterdeck.addons.content import Content
from quarterdeck.addons.objects import CRD, DesiredObject, GroupKind, Manifest, Ref, defined
from quarterdeck.addons.order import established, for_removal, has_ready, in_order, rank, services, unestablished
from quarterdeck.addons.rbac import for_locks
from quarterdeck.api.names import few
from quarterdeck.components.controller.sets import locks
from quarterdeck.errors import QuarterdeckError
from quarterdeck.kube.port import Address, ApiResource, Discovered, Meta, Refusal, Refused
from quarterdeck.model.components import Component
from quarterdeck.model.memory import Replica

_CONFIG_MAP = ApiResource("", "v1", "ConfigMap", "configmaps", namespaced=True)
_SLICES = ApiResource("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices", namespaced=True)
_NAMESPACE = GroupKind("", "Namespace")
#: How many items a message names.
_TOLD = 3


class Waits(QuarterdeckError):
    """A dependency of an add-on is not there yet: a later turn may find it."""


class NeedsAPerson(QuarterdeckError):
    """An add-on cannot be up to date unless a person changes something."""


@dataclass(frozen=True, slots=True)
class AppliedAddon:
    """An add-on as a whole: how many objects, and a digest of what quarterdeck owns of them."""

    objects: int
    fields: str


@dataclass(kw_only=True)
class Addons:
    """The add-ons of a plane, through one apiserver. ``parents``: the existing sets, by add-on. ``wanted``: all objects
    of all add-ons, none of which is ever removed: an object that moves to another add-on stays.
    """

    plane: Plane
    apiserver: Address
    served: Discovered
    wanted: Sequence[DesiredObject] = ()
    parents: dict[str, ApplySetParent] = field(default_factory=dict)

    @classmethod
    async def seen(cls, plane: Plane, apiserver: Address, wanted: Sequence[DesiredObject]) -> Addons:
        """The present state. Raises Unavailable."""
        served = await plane.kube.discover(apiserver)
        found = await plane.kube.metadata(apiserver, _CONFIG_MAP, ID)
        parents = (parent_of(each.labels, each.annotations) for each in found if each.namespace == NAMESPACE)
        return cls(
            plane=plane,
            apiserver=apiserver,
            served=served,
            wanted=wanted,
            parents={each.addon: each for each in parents if each},
        )

    async def apply(self, content: Content, before: Content | None) -> AppliedAddon:
        """Apply all objects of an add-on, and delete those that it no longer wants. ``before`` is what was last applied
        as a whole: its fields are taken back from other managers, no other fields are.

        Raises Waits, NeedsAPerson, Unavailable.
        """
        parent = self.parents.get(content.addon, ApplySetParent(content.addon))
        widened = parent.widened(content.refs)
        await self._write_parent(widened)
        earlier = {each.ref: each.manifest for each in before.objects} if before is not None else {}
        owned = await self._apply_all(content, widened, earlier)
        await self._prune(widened)
        exact = ApplySetParent(content.addon).widened(owned)
        await self._write_parent(exact)
        return AppliedAddon(len(content.objects), fields_digest(owned))

    async def remove(self, addon: str) -> None:
        """Delete all objects of an add-on, dependents first, and its set last. Raises Waits, Unavailable."""
        parent = self.parents[addon]
        await self._prune(parent)
        found = await self.plane.kube.metadata(self.apiserver, _CONFIG_MAP, f"{ID}={parent.id}")
        for each in found:
            await self._delete(Ref(GroupKind("", "ConfigMap"), each.namespace, each.name), each, _CONFIG_MAP)
        del self.parents[addon]

    async def untouched(self, content: Content, fields: str) -> bool:
        """Whether all objects of an add-on exist, and quarterdeck still owns its fields: known from metadata alone, in
        one call for each kind.
        """
        parent = self.parents.get(content.addon)
        if parent is None:
            return False
        members = await self._members(parent, {each.ref.kind for each in content.objects})
        refs = {self._placed(each).ref for each in content.objects}
        owned = {ref: owned_fields(meta.managed) for ref, (meta, _) in members.items() if ref in refs}
        return owned.keys() == refs and fields_digest(owned) == fields

    # applying

    async def _apply_all(
        self, content: Content, parent: ApplySetParent, before: Mapping[Ref, Manifest]
    ) -> dict[Ref, JsonValue]:
        owned: dict[Ref, JsonValue] = {}
        waiting: list[str] = []
        groups = in_order(content.objects)
        for group in groups:
            if waiting and rank(group[0].ref) == _last_rank():
                break  # APIServices, which can block all requests, come when all else is there
            for wanted in group:
                words = await self._reason_to_wait(wanted, before)
                if not words:
                    words = await self._apply_one(self._placed(wanted), parent, before.get(wanted.ref), owned)
                waiting += [words] if words else []
            waiting += await self._unestablished(group)
        if waiting:
            raise Waits(f"applying add-on {content.addon}", few(waiting, _TOLD, "; "))
        return owned

    async def _reason_to_wait(self, wanted: DesiredObject, before: Mapping[Ref, Manifest]) -> str:
        """Why an object is not applied yet: its kind is not served, or a webhook of it would refuse all requests."""
        if self._resource(wanted) is None:
            kind = wanted.ref.kind
            if (kind.group, wanted.version) in self.served.silent:
                return (
                    f"the apiserver of {wanted.api_version}, which has {kind.kind} {wanted.ref.name}, does not answer"
                )
            return f"kind {kind.kind} of {wanted.api_version} is not served (for {wanted.ref})"
        if wanted.ref in before:
            return ""
        for namespace, name in services(wanted.manifest):
            path = f"{_SLICES.path(namespace)}?labelSelector=kubernetes.io/service-name%3D{name}"
            if not has_ready(await self.plane.kube.read(self.apiserver, path)):
                return f"{wanted.ref} calls service {namespace}/{name}, which has no endpoint that is ready"
        return ""

    async def _apply_one(
        self, wanted: DesiredObject, parent: ApplySetParent, before: Manifest | None, owned: dict[Ref, JsonValue]
    ) -> str:
        """Apply one object. Returns what is waited for; "" once it is applied. Raises NeedsAPerson."""
        resource = self._resource(wanted)
        assert resource is not None
        path = resource.path(wanted.ref.namespace, wanted.ref.name)
        manifest = as_member(wanted, parent)
        try:
            owned[wanted.ref] = owned_fields((await self._send(path, manifest, force=False)).managed)
        except Refused as error:
            if error.why is Refusal.OWNED and ours(error.fields, before):
                return await self._take_back(wanted, path, manifest, owned)
            return _awaited(wanted, error)
        return ""

    async def _take_back(
        self, wanted: DesiredObject, path: str, manifest: Manifest, owned: dict[Ref, JsonValue]
    ) -> str:
        try:
            owned[wanted.ref] = owned_fields((await self._send(path, manifest, force=True)).managed)
        except Refused as error:
            return _awaited(wanted, error)
        return ""

    async def _send(self, path: str, manifest: Manifest, *, force: bool) -> Meta:
        await self.plane.check()
        return await self.plane.kube.apply(self.apiserver, path, manifest, manager=MANAGER, force=force)

    async def _unestablished(self, group: Iterable[DesiredObject]) -> list[str]:
        """The definitions of kinds among these that are not established yet, in words. Discovery is run again."""
        definitions = [each for each in group if each.ref.kind.kind == CRD and defined(each.manifest)]
        words = []
        for each in definitions:
            resource = self._resource(each)
            if resource is not None:
                seen = await self.plane.kube.read(self.apiserver, resource.path("", each.ref.name))
                words += [] if established(seen) else [f"{each.ref} is not established{unestablished(seen)}"]
        if definitions:
            self.served = await self.plane.kube.discover(self.apiserver)
        return words

    def _resource(self, wanted: DesiredObject) -> ApiResource | None:
        return self._served(wanted.ref.kind, wanted.version)

    def _served(self, kind: GroupKind, version: str = "") -> ApiResource | None:
        """The served resource of a kind, in that version or in the one that its group prefers."""
        for each in self.served.resources:
            if (each.group, each.kind) == (kind.group, kind.kind) and version in ("", each.version):
                return each
        return None

    def _placed(self, wanted: DesiredObject) -> DesiredObject:
        """An object at its real place: only the apiserver knows which custom kinds have no namespace."""
        resource = self._resource(wanted)
        if resource is None or resource.namespaced or not wanted.ref.namespace:
            return wanted
        return replace(wanted, ref=replace(wanted.ref, namespace=""))

    async def _write_parent(self, parent: ApplySetParent) -> None:
        if self.parents.get(parent.addon) != parent:
            await self._send(_CONFIG_MAP.path(NAMESPACE, parent.name), parent.manifest(), force=True)
            self.parents[parent.addon] = parent

    # pruning

    async def _members(self, parent: ApplySetParent, kinds: Iterable[GroupKind]) -> dict[Ref, tuple[Meta, ApiResource]]:
        """The objects of these kinds that quarterdeck applied for a set. (Controllers copy labels to what they create:
        the label alone is not enough.) A kind that is not served has no objects, unless its apiserver does not answer:
        raises Waits.
        """
        found: dict[Ref, tuple[Meta, ApiResource]] = {}
        for kind in sorted(kinds):
            resource = self._served(kind)
            if resource is None:
                if kind.group in {group for group, _ in self.served.silent}:
                    raise Waits(f"looking for {kind} of add-on {parent.addon}", "their apiserver does not answer")
                continue
            for meta in await self.plane.kube.metadata(self.apiserver, resource, f"{PART_OF}={parent.id}"):
                if owned_fields(meta.managed) is not None:
                    found[Ref(kind, meta.namespace, meta.name)] = meta, resource
        return found

    async def _prune(self, parent: ApplySetParent) -> None:
        """Delete the members that are not wanted: dependents first, the others once those are gone."""
        wanted = {self._placed(each).ref for each in self.wanted}
        while gone := {
            ref: seen for ref, seen in (await self._members(parent, parent.kinds)).items() if ref not in wanted
        }:
            ordered = for_removal(gone)
            first = [ref for ref in ordered if rank(ref) == rank(ordered[0])]
            if going := [str(ref) for ref in first if gone[ref][0].deleting]:
                raise Waits(f"removing objects of add-on {parent.addon}", f"{few(going, _TOLD, '; ')} is being deleted")
            for ref in first:
                await self._delete(ref, *gone[ref])

    async def _delete(self, ref: Ref, meta: Meta, resource: ApiResource) -> None:
        path = resource.path(ref.namespace, ref.name)
        await self.plane.check()
        try:
            if ref.kind == _NAMESPACE and ref.name in IMMORTAL:
                await self.plane.kube.apply(self.apiserver, path, _bare(ref), manager=MANAGER)  # gives up its fields
            else:
                await self.plane.kube.delete(self.apiserver, path, uid=meta.uid)
        except Refused as error:
            raise Waits(f"removing {ref}", error.seen) from error


def _awaited(wanted: DesiredObject, error: Refused) -> str:
    """What is waited for after a refusal. Raises NeedsAPerson for a permanent one."""
    if error.why is Refusal.LATER:
        return f"{wanted.ref}: {error.seen}"
    hint = "remove these fields from the manifest, or make their owner give them up"
    raise NeedsAPerson(f"applying {wanted.ref}", error.seen, hint if error.why is Refusal.OWNED else "fix the manifest")


def _bare(ref: Ref) -> Manifest:
    return {"apiVersion": "v1", "kind": ref.kind.kind, "metadata": {"name": ref.name}}


def _last_rank() -> int:
    return rank(Ref(GroupKind("apiregistration.k8s.io", "APIService"), "", ""))


# The permission to hold the locks of controller sets.


def kept_for_locks(plane: Plane) -> Content | None:
    """The add-on of quarterdeck's own with the permissions that kube-controller-managers of all present and wanted
    revisions need for the locks of controller sets; None where there are no such locks.
    """
    every = plane.revisions.templates.values()
    wanted = sorted({lock for each in every for lock in locks(each, Component.CONTROLLER_MANAGER)})
    return for_locks(tuple(wanted)) if wanted else None


async def allow_locks(plane: Plane, record: Replica, component: Component) -> None:
    """Permit a kube-controller-manager to hold the locks of its sets before it starts: without the permission it would
    retry, and no manager would run the set until then. Raises Unavailable, and what ``Addons.apply`` raises.
    """
    kept = kept_for_locks(plane)
    if component != Component.CONTROLLER_MANAGER or kept is None or not locks(plane.template_of(record), component):
        return
    apiserver = apiserver_address(record)
    if not await _are_there(plane, apiserver, kept):
        await (await Addons.seen(plane, apiserver, kept.objects)).apply(kept, kept)


async def _are_there(plane: Plane, apiserver: Address, kept: Content) -> bool:
    """Whether a role and its binding are up to date already, so that they need not be written again."""
    for each in kept.objects:
        where = f"namespaces/{each.ref.namespace}/{each.ref.kind.kind.lower()}s/{each.ref.name}"
        there = await plane.kube.read(apiserver, f"/apis/{each.api_version}/{where}")
        parts = there if isinstance(there, dict) else {}
        if any(parts.get(part) != each.manifest.get(part) for part in ("rules", "subjects")):
            return False
    return True
