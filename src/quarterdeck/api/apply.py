"""Applying: the user's half of a resource over quarterdeck's half of the one that exists."""

from __future__ import annotations

from quarterdeck.api.base import Metadata, Resource
from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.site import Site
from quarterdeck.errors import Conflict, InvalidInput


def applied_plane(current: ControlPlane, wanted: ControlPlane) -> ControlPlane:
    """``current`` with the labels, annotations and spec of ``wanted``.

    Raises Conflict if ``wanted`` names a resource version and ``current`` has moved on from it, InvalidInput for
    changes that clients or stored objects of a plane that exists would not survive.
    """
    doing = f"applying ControlPlane {current.name!r}"
    _check_version(doing, current, wanted)
    before, after = current.spec, wanted.spec
    changes = (
        ("spec.serviceCidr", before.service_cidr, after.service_cidr),
        ("spec.endpoint.mode", before.endpoint.mode, after.endpoint.mode),
        ("spec.endpoint.port", before.endpoint.port, after.endpoint.port),
        ("spec.endpoint", current.host, wanted.host),
    )
    problems = [
        f"{path}: cannot be changed once the plane exists (from {old} to {new})"
        for path, old, new in changes
        if old != new
    ]
    if problems:
        raise InvalidInput(doing, "; ".join(problems))
    return current.model_copy(update={"metadata": _merged(current, wanted), "spec": after})


def applied_site(current: Site, wanted: Site) -> Site:
    """``current`` with the labels, annotations and spec of ``wanted``. Raises Conflict and InvalidInput."""
    doing = f"applying Site {current.name!r}"
    _check_version(doing, current, wanted)
    if current.spec.isolation != wanted.spec.isolation:
        raise InvalidInput(doing, "spec.isolation: cannot be changed once the site exists", "add another site")
    return current.model_copy(update={"metadata": _merged(current, wanted), "spec": wanted.spec})


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
