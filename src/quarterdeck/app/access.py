"""Kubeconfigs for people."""

from __future__ import annotations

from datetime import timedelta

from quarterdeck.api.events import EventReason
from quarterdeck.engine.notices.events import Happening
from quarterdeck.engine.workspace import recorded
from quarterdeck.engine.workspace.access import IssuedKubeconfig, user_kubeconfig
from quarterdeck.engine.workspace.home import Home
from quarterdeck.engine.workspace.operations import Requester
from quarterdeck.errors import InvalidInput
from quarterdeck.pki.users import (
    BREAK_GLASS_LIFETIME,
    USER_LIFETIME,
    UserAccess,
    administrator,
    break_glass,
    named_access,
)

__all__ = ["IssuedKubeconfig", "UserAccess", "issued", "requested_access"]


def requested_access(
    *,
    user: str | None = None,
    groups: tuple[str, ...] = (),
    lifetime: timedelta | None = None,
    without_rbac: bool = False,
) -> UserAccess:
    """What a kubeconfig is to give: without arguments, that of an administrator whose binding can be deleted.
    ``without_rbac``: the access of ``system:masters``, which nothing can take away before it expires.

    Raises InvalidInput for names that are not for people, a lifetime under a second, and arguments that exclude each
    other.
    """
    if without_rbac:
        if user is not None or groups:
            seen = "--break-glass gives all permissions, and --user and --group name others"
            raise InvalidInput("issuing a kubeconfig", seen, "use one of them")
        return break_glass(lifetime if lifetime is not None else BREAK_GLASS_LIFETIME)
    lasting = lifetime if lifetime is not None else USER_LIFETIME
    if user is not None:
        return named_access(user, groups, lasting)
    if groups:
        raise InvalidInput("issuing a kubeconfig", "--group is given, and no user", "add --user")
    return administrator(lasting)


async def issued(home: Home, name: str, access: UserAccess, requester: Requester) -> IssuedKubeconfig:
    """See ``Quarterdeck.kubeconfig``."""
    plane = await recorded.existing(home.store, name)
    found = await user_kubeconfig(home, plane, access)
    if access.break_glass:
        message = f"{requester.name} was given a kubeconfig of {', '.join(access.groups)} until {found.ends:%F %T %Z}"
        happening = Happening(EventReason.BREAK_GLASS, message)
        await home.store.record(happening.event(name, requester.now().timestamp()))
    return found
