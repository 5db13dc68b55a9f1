"""Applying a document: the user's part of a resource replaces that of the stored one; quarterdeck's part stays."""

from __future__ import annotations

from collections.abc import Iterator

from quarterdeck.api.base import Metadata, Model, Resource
from quarterdeck.api.controlplane import ControlPlane, ControlPlaneSpec
from quarterdeck.api.plane.endpoint import EndpointMode
from quarterdeck.api.plane.etcd import Etcd
from quarterdeck.api.site import Site, SiteSpec
from quarterdeck.errors import Conflict, InvalidInput

_SERVICES = "Services that exist have addresses of it, and the certificates of apiservers name its first one"
_SECOND = "Services that exist may have addresses of it, and Kubernetes keeps it in its default ServiceCIDR"
_CLIENTS = "clients have the endpoint in their kubeconfigs"


def applied_plane(current: ControlPlane, wanted: ControlPlane) -> ControlPlane:
    """``current`` with the labels, annotations and spec of ``wanted``. Its revision and manifests are unset: they are
    rendered again, from the current files and charts that the spec names.

    Raises Conflict if ``wanted`` names a resource version and ``current`` has moved on from it, InvalidInput for
    changes that clients or stored objects of an existing plane would not survive.
    """
    doing = f"applying ControlPlane {current.name!r}"
    _check_version(doing, current, wanted)
    before, after = current.spec, _declared(current.spec, wanted.spec)
    problems = [
        f"{path}: cannot be changed once the plane exists (from {_shown(old)} to {_shown(new)}): {why}"
        for path, old, new, why in (
            *_service_ranges(before, after),
            ("spec.endpoint.mode", _asked(before), _asked(after), _CLIENTS),
            ("spec.endpoint.port", before.endpoint.port, after.endpoint.port, _CLIENTS),
            ("spec.endpoint", current.host, wanted.host, _CLIENTS),
        )
        if old != new
    ]
    if (least := before.certificates.generation) > after.certificates.generation:
        problems.append(f"spec.certificates.generation: must not be less than {least}: they were renewed since")
    if problems:
        raise InvalidInput(doing, "; ".join(problems))
    unnamed = current.with_status(revision="", addon_manifests="")
    return unnamed.model_copy(update={"metadata": _merged(current, wanted), "spec": after})


def _service_ranges(before: ControlPlaneSpec, after: ControlPlaneSpec) -> Iterator[tuple[str, object, object, str]]:
    """The ranges of service addresses that must not change. The second one may be added: an apiserver then changes the
    default ServiceCIDR (kubernetes: controlplane/controller/defaultservicecidr, since 1.33), and never changes it back.
    """
    for number, (old, why) in enumerate(zip(before.service_cidrs, (_SERVICES, _SECOND), strict=False)):
        new = after.service_cidrs[number] if number < len(after.service_cidrs) else None
        yield f"spec.serviceCidrs[{number}]", old, new, why


def _asked(spec: ControlPlaneSpec) -> str:
    """The resolvers of the plane's name: the server of the user's own DNS zone may change."""
    mode = spec.endpoint.mode
    return "the user's DNS" if mode in (EndpointMode.RFC2136, EndpointMode.UNMANAGED) else str(mode)


def _declared(before: ControlPlaneSpec, after: ControlPlaneSpec) -> ControlPlaneSpec:
    """The user's declaration. What commands have stored stays where the document does not mention it, and so do
    versions: their defaults change with quarterdeck's own version.
    """
    kept = ["certificates", "keys", "replace_replicas", "new_epoch", "cordoned_replicas", "kubernetes_version"]
    named = after.model_fields_set
    if "kubernetes_version" not in named or before.kubernetes_version == after.kubernetes_version:
        kept.append("upgrade")  # another version begins with the usual window
    changes: dict[str, object] = {name: getattr(before, name) for name in kept if name not in named}
    if "offline_generation" not in after.rollout.model_fields_set:
        agreed = {"offline_generation": before.rollout.offline_generation}
        changes["rollout"] = after.rollout.model_copy(update=agreed)
    return after.model_copy(update={**changes, "etcd": _etcd(before.etcd, after.etcd)})


def _etcd(before: Etcd, after: Etcd) -> Etcd:
    named = after.model_fields_set
    kept = {name: getattr(before, name) for name in ("version", "upgrade") if name not in named}
    if "version" in named and before.version != after.version:
        kept.pop("upgrade", None)  # another version begins without one
    return after.model_copy(update=kept)


def applied_site(current: Site, wanted: Site) -> Site:
    """``current`` with the labels, annotations and spec of ``wanted``. Raises Conflict and InvalidInput."""
    doing = f"applying Site {current.name!r}"
    _check_version(doing, current, wanted)
    for path, before, after in (
        ("spec.driver", current.spec.driver, wanted.spec.driver),
        ("spec.isolation", current.spec.space, wanted.spec.space),
    ):
        if before != after:
            raise InvalidInput(doing, f"{path}: cannot be changed once the site exists", "add another site")
    return current.model_copy(update={"metadata": _merged(current, wanted), "spec": _with_cordons(current, wanted)})


def _with_cordons(current: Site, wanted: Site) -> SiteSpec:
    """The user's declaration. Stored cordons stay where the document does not mention them."""
    if "cordons" in wanted.spec.model_fields_set:
        return wanted.spec
    return wanted.spec.model_copy(update={"cordons": current.spec.cordons})


def _shown(value: object) -> str:
    if isinstance(value, Model):
        return value.model_dump_json(by_alias=True, exclude_defaults=True)
    return "unset" if value is None else str(value)


def _check_version(doing: str, current: Resource, wanted: Resource) -> None:
    asked, stored = wanted.metadata.resource_version, current.metadata.resource_version
    if asked is not None and asked != stored:
        raise Conflict(
            doing,
            f"it is at resourceVersion {stored}, the document at {asked}",
            "read it again, or leave resourceVersion out to overwrite",
        )


def _merged(current: Resource, wanted: Resource) -> Metadata:
    given = wanted.metadata
    return current.metadata.model_copy(update={"labels": given.labels, "annotations": given.annotations})
