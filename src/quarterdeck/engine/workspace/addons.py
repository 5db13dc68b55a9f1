"""The manifests of planes' add-ons: read once when they are requested, then loaded from the store."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

from pydantic import SecretStr

from quarterdeck.addons.content import Content, contents, decoded, digest_of, gone_with_a_namespace
from quarterdeck.addons.lease_webhooks import warnings_of
from quarterdeck.api.belongings import AddonContent, AddonManifests, manifests_of
from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.engine.workspace import belongings
from quarterdeck.errors import Conflict, Corrupt, InvalidInput, NotFound
from quarterdeck.model.findings import Finding, Verdict
from quarterdeck.stores.port import Lease, Store, amend


async def wanted(store: Store, plane: ControlPlane, found: tuple[Content, ...] | None = None) -> AddonManifests | None:
    """The wanted manifests of a plane's add-ons; None when there are none. If the plane names no stored ones, all
    sources of its spec are read, and charts are rendered, unless they were ``found`` already; the result is not stored.

    Raises InvalidInput for invalid sources, PreconditionFailed and TimedOut for charts, Corrupt when the stored
    manifests are gone.
    """
    if plane.status.addon_manifests:
        return await stored(store, plane, plane.status.addon_manifests)
    if not plane.spec.addons:
        return None
    return manifests_of(plane, tuple(map(encoded, await read(plane) if found is None else found)))


async def established(
    store: Store, plane: ControlPlane, found: tuple[Content, ...] | None = None, *, lease: Lease | None = None
) -> ControlPlane:
    """The plane, with the manifests of its add-ons stored and named; ``found``, if they were read already.

    Raises what ``wanted`` does, and Conflict when the plane was changed concurrently.
    """
    if plane.status.addon_manifests or not plane.spec.addons:
        return plane
    manifests = manifests_of(plane, tuple(map(encoded, await read(plane) if found is None else found)))
    await belongings.keep(store, manifests, lease=lease)

    def naming(seen: ControlPlane) -> ControlPlane:
        if seen.spec == plane.spec and seen.status.addon_manifests:
            return seen  # another process has done the same
        if (seen.spec, seen.status.addon_manifests) != (plane.spec, ""):
            raise Conflict(f"reading the add-ons of plane {plane.name}", "it was changed concurrently", "try again")
        return seen.with_status(addon_manifests=manifests.name)

    return await amend(store, ControlPlane, plane.name, naming, lease=lease)


async def read(plane: ControlPlane) -> tuple[Content, ...]:
    """The present content of the sources of all add-ons of a plane."""
    # Commands that only observe a plane need no charts and YAML.
    from quarterdeck.engine.workspace import addon_sources

    found = [(each.name, each.namespace, await addon_sources.read(plane, each)) for each in plane.spec.addons]
    return contents(found, plane.name)


async def stored(store: Store, plane: ControlPlane, name: str) -> AddonManifests:
    """The stored manifests of that name. Raises Corrupt."""
    try:
        return await store.get(AddonManifests, name)
    except NotFound:
        raise Corrupt(
            f"reading the add-ons of plane {plane.name}",
            f"manifests {name} are not in the store",
            "apply the plane's document again",
        ) from None


def named(manifests: AddonManifests | None) -> str:
    """The name by which a plane refers to them."""
    return manifests.name if manifests is not None else ""


def contents_of(manifests: AddonManifests | None) -> tuple[Content, ...]:
    """The content of all add-ons."""
    found = manifests.spec.addons if manifests is not None else ()
    return tuple(content_of(each) for each in found)


def content_of(stored: AddonContent) -> Content:
    """The content of one add-on."""
    return decoded(stored.name, stored.data.get_secret_value())


async def before(store: Store, plane: ControlPlane) -> tuple[Content, ...]:
    """The previous content of a plane's add-ons, as far as known, for comparison."""
    name = plane.status.addon_manifests
    if not name:
        return ()
    with contextlib.suppress(Corrupt):
        return contents_of(await stored(store, plane, name))
    return ()


def require_possible(plane: ControlPlane, before: Iterable[Content], after: Iterable[Content]) -> None:
    """Raise InvalidInput for a change that would delete a namespace with objects in it that are wanted."""
    refs = (ref for each in before for ref in each.refs)
    lost = gone_with_a_namespace(refs, after)
    if lost:
        raise InvalidInput(
            f"changing the add-ons of plane {plane.name}", "; ".join(lost), "keep the Namespace, or move its objects"
        )


def findings(contents: Iterable[Content]) -> tuple[Finding, ...]:
    """Warnings about applied add-ons."""
    return tuple(Finding(f"add-on {addon}", Verdict.WARN, words) for addon, words in warnings_of(contents))


async def forget_unused(store: Store, plane: ControlPlane, named: Iterable[str], *, lease: Lease | None = None) -> None:
    """Delete unused manifests, except the last few. ``named``: used by others than the plane."""
    if not plane.status.addon_manifests and not plane.status.addons:
        return
    used = {plane.status.addon_manifests, *(each.manifests for each in plane.status.addons), *named}
    await belongings.forget_unused(store, AddonManifests, plane.name, used, lease=lease)


def encoded(content: Content) -> AddonContent:
    """One add-on, as it is stored."""
    text = content.encoded()
    return AddonContent(name=content.addon, digest=digest_of(text), data=SecretStr(text))
