"""Objects of a fake apiserver: server-side apply with owners of fields, where a list is one field."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

from pydantic import JsonValue

from quarterdeck.kube.port import Address, ApiResource, Discovered, Meta, Refusal, Refused

Path = tuple[str, ...]
#: What names an object, and is nobody's.
_NAMES = {("apiVersion",), ("kind",), ("metadata", "name"), ("metadata", "namespace")}
_APPROVAL = "/approval"
_SHORT_NAMES = {"ConfigMap": ("cm",), "Namespace": ("ns",), "Deployment": ("deploy",)}
_RBAC, _ADMISSION = "rbac.authorization.k8s.io", "admissionregistration.k8s.io"


def _upstream() -> list[ApiResource]:
    rows = (
        ("", "v1", "Namespace", False),
        ("", "v1", "Node", False),
        ("", "v1", "ConfigMap", True),
        ("", "v1", "Secret", True),
        ("", "v1", "Service", True),
        ("", "v1", "ServiceAccount", True),
        ("", "v1", "Endpoints", True),
        ("apps", "v1", "Deployment", True),
        ("apps", "v1", "DaemonSet", True),
        (_RBAC, "v1", "ClusterRole", False),
        (_RBAC, "v1", "ClusterRoleBinding", False),
        (_RBAC, "v1", "Role", True),
        (_RBAC, "v1", "RoleBinding", True),
        ("certificates.k8s.io", "v1", "CertificateSigningRequest", False),
        (_ADMISSION, "v1", "ValidatingWebhookConfiguration", False),
        ("apiextensions.k8s.io", "v1", "CustomResourceDefinition", False),
        ("apiregistration.k8s.io", "v1", "APIService", False),
        ("discovery.k8s.io", "v1", "EndpointSlice", True),
    )
    return [
        ApiResource(
            group,
            version,
            kind,
            f"{kind.lower().removesuffix('s')}s",
            within,
            singular=kind.lower(),
            short_names=_SHORT_NAMES.get(kind, ()),
        )
        for group, version, kind, within in rows
    ]


@dataclass
class Stored:
    """An object, with the fields that each manager owns. ``held``: something keeps it from going."""

    uid: str
    fields: dict[Path, JsonValue]
    owners: dict[str, set[Path]] = field(default_factory=dict)
    held: bool = False
    deleting: bool = False


@dataclass
class FakeObjects:
    """What one plane's apiservers keep, by path. ``refuses`` maps names of objects to what applying them raises;
    ``established``: whether definitions of kinds count as soon as they are there.
    """

    reach: Callable[[Address], object]
    resources: list[ApiResource] = field(default_factory=_upstream)
    silent: frozenset[tuple[str, str]] = frozenset()
    objects: dict[str, Stored] = field(default_factory=dict)
    refuses: dict[str, Exception] = field(default_factory=dict)
    established: bool = True
    calls: list[str] = field(default_factory=list)
    _uids: int = 0

    def __post_init__(self) -> None:
        for name in ("default", "kube-system", "kube-public"):
            self.put(f"/api/v1/namespaces/{name}", {"metadata": {"name": name}})

    def put(self, path: str, manifest: Mapping[str, JsonValue], manager: str = "somebody") -> Stored:
        """An object that somebody else makes."""
        fields = dict(_leaves(manifest))
        self._uids += 1
        self.objects[path] = Stored(f"uid-{self._uids}", fields, {manager: fields.keys() - _NAMES})
        return self.objects[path]

    def edit(self, path: str, where: Path, value: JsonValue, manager: str = "kubectl-edit") -> None:
        """Have somebody else change a field; None takes it away."""
        stored = self.objects[path]
        for owned in stored.owners.values():
            owned.discard(where)
        if value is None:
            stored.fields.pop(where, None)
        else:
            stored.fields[where] = value
            stored.owners.setdefault(manager, set()).add(where)

    def establish(self) -> None:
        """Have all definitions of kinds count."""
        self.established = True
        for path, stored in self.objects.items():
            if "/customresourcedefinitions/" in path:
                self._define(_tree(stored.fields))

    async def discover(self, apiserver: Address) -> Discovered:
        """See the port."""
        self.reach(apiserver)
        return Discovered(tuple(self.resources), self.silent)

    async def read(self, apiserver: Address, path: str) -> JsonValue:
        """See the port."""
        self.reach(apiserver)
        if "?" in path:
            base, _, query = path.partition("?")
            found = (each for where, each in self.objects.items() if where.rpartition("/")[0] == base)
            chosen = [each for each in found if _selected(each, dict(parse_qsl(query)))]
            return {"items": [_with_uid(each) for each in chosen]}
        stored = self.objects.get(path)
        if stored is None:
            return None
        seen = _with_uid(stored)
        if "/customresourcedefinitions/" in path and self.established:
            seen["status"] = {"conditions": [{"type": "Established", "status": "True"}]}
        return seen

    async def metadata(self, apiserver: Address, resource: ApiResource, selector: str) -> tuple[Meta, ...]:
        """See the port."""
        self.reach(apiserver)
        key, _, value = selector.partition("=")
        found = []
        for path, stored in sorted(self.objects.items()):
            label = stored.fields.get(("metadata", "labels", key))
            if self._resource(path) == resource and label is not None and value in ("", label):
                found.append(_meta(stored))
        return tuple(found)

    async def apply(
        self, apiserver: Address, path: str, manifest: Mapping[str, JsonValue], *, manager: str, force: bool = False
    ) -> Meta:
        """See the port."""
        self.reach(apiserver)
        self.calls.append(f"apply {path}")
        path = path.removesuffix(_APPROVAL)
        self._require_possible(path)
        wanted = dict(_leaves(manifest))
        stored = self.objects.get(path)
        if stored is None:
            self._uids += 1
            stored = Stored(f"uid-{self._uids}", {})
        self._require_unowned(path, stored, wanted, manager, force=force)
        others: set[Path] = set().union(*(owned for name, owned in stored.owners.items() if name != manager))
        for gone in stored.owners.get(manager, set()) - wanted.keys() - others:
            stored.fields.pop(gone, None)
        stored.fields |= wanted
        stored.owners[manager] = wanted.keys() - _NAMES
        self.objects[path] = stored
        if self.established:
            self._define(manifest)
        return _meta(stored)

    async def preview(
        self, apiserver: Address, path: str, manifest: Mapping[str, JsonValue], *, manager: str
    ) -> JsonValue:
        """See the port."""
        before, calls = deepcopy(self.objects), [*self.calls]
        try:
            await self.apply(apiserver, path, manifest, manager=manager, force=True)
            return _with_uid(self.objects[path])
        finally:
            self.objects, self.calls = before, calls

    async def rewrite(self, apiserver: Address, path: str) -> bool:
        """See the port."""
        self.reach(apiserver)
        self.calls.append(f"rewrite {path}")
        return path in self.objects

    async def delete(self, apiserver: Address, path: str, *, uid: str) -> bool:
        """See the port."""
        self.reach(apiserver)
        self.calls.append(f"delete {path}")
        stored = self.objects.get(path)
        if stored is None or stored.uid != uid:
            return False
        if stored.held:
            stored.deleting = True
            return True
        within = (
            path.removeprefix("/api/v1") if path.startswith("/api/v1/namespaces/") and path.count("/") == 4 else None
        )
        for each in list(self.objects):
            if each == path or (within is not None and f"{within}/" in each):
                del self.objects[each]  # with a namespace all that is in it goes, of whatever group
        return True

    def _require_possible(self, path: str) -> None:
        name = path.rpartition("/")[2]
        if name in self.refuses:
            raise self.refuses[name]
        if self._resource(path) is None:
            raise Refused(f"applying {path}", "NotFound (404): the server could not find it", Refusal.LATER)
        parts = path.split("/")
        if "namespaces" in parts[:-2] and f"/api/v1/namespaces/{parts[parts.index('namespaces') + 1]}" not in (
            self.objects
        ):
            where = parts[parts.index("namespaces") + 1]
            raise Refused(f"applying {path}", f'NotFound (404): namespaces "{where}" not found', Refusal.LATER)

    @staticmethod
    def _require_unowned(
        path: str, stored: Stored, wanted: Mapping[Path, JsonValue], manager: str, *, force: bool
    ) -> None:
        taken = {
            name: {each for each in owned if each in wanted and stored.fields.get(each) != wanted[each]}
            for name, owned in stored.owners.items()
            if name != manager
        }
        taken = {name: fields for name, fields in taken.items() if fields}
        if taken and not force:
            fields = sorted("".join(f".{part}" for part in each) for owned in taken.values() for each in owned)
            owners = ", ".join(f'"{name}"' for name in sorted(taken))
            seen = f"{owners} owns {', '.join(fields)}"
            raise Refused(f"applying {path}", seen, Refusal.OWNED, fields=fields, owners=owners)
        for name, lost in taken.items():
            stored.owners[name] -= lost

    def _resource(self, path: str) -> ApiResource | None:
        """The kind of which an object is."""
        for each in self.resources:
            root = f"/apis/{each.group}/{each.version}/" if each.group else f"/api/{each.version}/"
            rest = path.removeprefix(root).split("/")
            parts = rest[2:] if each.namespaced and rest[0] == "namespaces" else rest
            if path.startswith(root) and len(parts) == 2 and parts[0] == each.plural:
                return each
        return None

    def _define(self, manifest: Mapping[str, Any]) -> None:
        if manifest.get("kind") != "CustomResourceDefinition":
            return
        spec = manifest["spec"]
        for version in spec["versions"]:
            names = spec["names"]
            made = ApiResource(
                spec["group"], version["name"], names["kind"], names["plural"], spec["scope"] == "Namespaced"
            )
            if made not in self.resources:
                self.resources.append(made)


def _leaves(value: JsonValue | Mapping[str, JsonValue], path: Path = ()) -> Iterator[tuple[Path, JsonValue]]:
    if isinstance(value, Mapping) and (value or not path):
        for key, each in value.items():
            yield from _leaves(each, (*path, key))
    else:
        yield path, deepcopy(value)  # type: ignore[misc]


def _tree(fields: Mapping[Path, JsonValue]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for path, value in fields.items():
        at = made
        for part in path[:-1]:
            at = at.setdefault(part, {})
        at[path[-1]] = deepcopy(value)
    return made


def _selected(stored: Stored, query: Mapping[str, str]) -> bool:
    """Whether a list has an object, by a label or a field that is to have a value."""
    label, _, value = query.get("labelSelector", "").partition("=")
    if label and stored.fields.get(("metadata", "labels", label)) != value:
        return False
    where, _, value = query.get("fieldSelector", "").partition("=")
    return not where or stored.fields.get(tuple(where.split("."))) == value


def _with_uid(stored: Stored) -> dict[str, Any]:
    tree = _tree(stored.fields)
    deleting = {"deletionTimestamp": "2030-01-01T00:00:00Z"} if stored.deleting else {}
    return {**tree, "metadata": {**tree.get("metadata", {}), "uid": stored.uid, **deleting}}


def _meta(stored: Stored) -> Meta:
    metadata = _tree(stored.fields).get("metadata", {})
    managed: list[JsonValue] = [
        {"manager": name, "operation": "Apply" if name == "quarterdeck" else "Update", "fieldsV1": _names(owned)}
        for name, owned in sorted(stored.owners.items())
        if owned
    ]
    return Meta(
        namespace=metadata.get("namespace", ""),
        name=metadata.get("name", ""),
        uid=stored.uid,
        labels=metadata.get("labels", {}),
        annotations=metadata.get("annotations", {}),
        managed=managed,
        deleting=stored.deleting,
    )


def _names(owned: set[Path]) -> dict[str, JsonValue]:
    return {"f:" + "/".join(path): {} for path in sorted(owned)}
