"""The manifests of planes' add-ons: read when they are asked for, looked up ever after."""

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
    """What a stored plane's add-ons are to be; None when there are none. Not stored yet, if the plane names none: then
    everything that its spec names is read, and charts are rendered, unless that is what was ``found`` already.

    Raises InvalidInput for what makes no sense, PreconditionFailed and TimedOut for charts, Corrupt when what the plane
    names is gone.
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

    Raises what ``wanted`` does, and Conflict when the plane was changed meanwhile.
    """
    if plane.status.addon_manifests or not plane.spec.addons:
        return plane
    manifests = manifests_of(plane, tuple(map(encoded, await read(plane) if found is None else found)))
    await belongings.keep(store, manifests, lease=lease)

    def naming(seen: ControlPlane) -> ControlPlane:
        if seen.spec == plane.spec and seen.status.addon_manifests:
            return seen  # another process has done the same meanwhile
        if (seen.spec, seen.status.addon_manifests) != (plane.spec, ""):
            raise Conflict(f"reading the add-ons of plane {plane.name}", "it was changed meanwhile", "look again")
        return seen.with_status(addon_manifests=manifests.name)

    return await amend(store, ControlPlane, plane.name, naming, lease=lease)


async def read(plane: ControlPlane) -> tuple[Content, ...]:
    """What the sources of all add-ons of a plane say now."""
    # Charts and YAML are of no concern to whoever looks at a plane.
    from quarterdeck.engine.workspace import addon_sources

    found = [(each.name, each.namespace, await addon_sources.read(plane, each)) for each in plane.spec.addons]
    return contents(found, plane.name)


async def stored(store: Store, plane: ControlPlane, name: str) -> AddonManifests:
    """Those of that name. Raises Corrupt."""
    try:
        return await store.get(AddonManifests, name)
    except NotFound:
        raise Corrupt(
            f"reading the add-ons of plane {plane.name}",
            f"manifests {name} are not in the store",
            "apply the plane's document again",
        ) from None


def named(manifests: AddonManifests | None) -> str:
    """As a plane names them."""
    return manifests.name if manifests is not None else ""


def contents_of(manifests: AddonManifests | None) -> tuple[Content, ...]:
    """What is in them."""
    found = manifests.spec.addons if manifests is not None else ()
    return tuple(content_of(each) for each in found)


def content_of(stored: AddonContent) -> Content:
    """One add-on of them."""
    return decoded(stored.name, stored.data.get_secret_value())


async def before(store: Store, plane: ControlPlane) -> tuple[Content, ...]:
    """What was wanted of a plane's add-ons, as far as it is known; for telling what a change changes."""
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
            f"changing the add-ons of plane {plane.name}", "; ".join(lost), "keep the Namespace, or move what is in it"
        )


def findings(contents: Iterable[Content]) -> tuple[Finding, ...]:
    """What a user has to know of add-ons that are applied."""
    return tuple(Finding(f"add-on {addon}", Verdict.WARN, words) for addon, words in warnings_of(contents))


async def forget_unused(store: Store, plane: ControlPlane, named: Iterable[str], *, lease: Lease | None = None) -> None:
    """Delete what nobody names, but for the last few. ``named``: what others than the plane name."""
    if not plane.status.addon_manifests and not plane.status.addons:
        return
    used = {plane.status.addon_manifests, *(each.manifests for each in plane.status.addons), *named}
    await belongings.forget_unused(store, AddonManifests, plane.name, used, lease=lease)


def encoded(content: Content) -> AddonContent:
    """One add-on, as it is kept."""
    text = content.encoded()
    return AddonContent(name=content.addon, digest=digest_of(text), data=SecretStr(text))
