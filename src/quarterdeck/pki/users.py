"""Client certificates of people: who they may name, and how long they last."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta

from quarterdeck.addons.rbac import ADMINISTRATORS
from quarterdeck.api.names import shortened
from quarterdeck.components.catalogue import CATALOGUE
from quarterdeck.components.credentials import MASTERS, CertificateKind, KeyPair, SharedSecrets
from quarterdeck.errors import InvalidInput
from quarterdeck.pki.certificate import CertificateRequest, Usage
from quarterdeck.pki.issuance import issued_by
from quarterdeck.pki.validity import check_certificate

#: The lifetime of a certificate, and of one whose permissions cannot be taken away.
USER_LIFETIME = timedelta(days=30)
BREAK_GLASS_LIFETIME = timedelta(hours=1)
#: The user names of administrators, as kubeadm calls them.
ADMIN = "kubernetes-admin"
SUPER_ADMIN = "kubernetes-super-admin"
#: quarterdeck's own users besides those of ``CATALOGUE``.
MANAGER = "quarterdeck"
PROBE = "quarterdeck-probe"

#: Names that begin so are Kubernetes' own (kubernetes: docs/reference/access-authn-authz/rbac).
_RESERVED = "system:"
#: A group of Kubernetes that is of use to a person's program: it may read health and metrics, and nothing else
#: (kubernetes: rbac/bootstrappolicy, system:monitoring).
_MONITORING = "system:monitoring"
#: Why a person cannot be in a group.
_REFUSED = {
    MASTERS: ("its permissions cannot be taken away", "give --break-glass in place of --user and --group"),
    "system:nodes": ("it is for kubelets, which are named after their nodes", "see 'node token'"),
    "system:authenticated": ("every user is in it", "leave it out"),
    "system:unauthenticated": ("it is for requests without a user", "leave it out"),
}
_BY_KUBERNETES = (
    "names that begin with system: are for Kubernetes itself",
    f"use another name, or {_MONITORING}",
)
#: The longest name in a subject (X.509: ub-common-name, ub-organization-name), in characters.
_LONGEST = 64
_PRINTABLE = re.compile(r"\S(?:[^\x00-\x1f\x7f]*\S)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class UserAccess:
    """The user and groups in a client certificate, and its lifetime."""

    user: str
    groups: tuple[str, ...]
    lifetime: timedelta = USER_LIFETIME

    @property
    def break_glass(self) -> bool:
        """Whether its permissions cannot be taken away before it expires."""
        return MASTERS in self.groups

    @property
    def administers(self) -> bool:
        """Whether its permissions come from the binding of administrators."""
        return ADMINISTRATORS in self.groups


def administrator(lifetime: timedelta = USER_LIFETIME) -> UserAccess:
    """Of an administrator, for as long as ``ADMINISTRATORS`` is bound. Raises InvalidInput for the lifetime."""
    return _lasting(UserAccess(user=ADMIN, groups=(ADMINISTRATORS,), lifetime=lifetime))


def break_glass(lifetime: timedelta = BREAK_GLASS_LIFETIME) -> UserAccess:
    """Of an administrator whom no change of RBAC can lock out. Raises InvalidInput for the lifetime."""
    return _lasting(UserAccess(user=SUPER_ADMIN, groups=(MASTERS,), lifetime=lifetime))


def named_access(user: str, groups: tuple[str, ...] = (), lifetime: timedelta = USER_LIFETIME) -> UserAccess:
    """Of any user in any groups. Raises InvalidInput for names that Kubernetes or quarterdeck has for itself, and for
    the lifetime.
    """
    _check_name("user", user)
    if user.startswith(_RESERVED):
        raise InvalidInput(f"issuing a certificate for user {user}", _BY_KUBERNETES[0], "use another name")
    if user in _own_users():
        seen = "it is a user of quarterdeck or of the plane's own programs"
        raise InvalidInput(f"issuing a certificate for user {user}", seen, "use another name")
    for each in groups:
        _check_name("group", each)
        if each.startswith(_RESERVED) and each != _MONITORING:
            raise InvalidInput(f"issuing a certificate for group {each}", *_REFUSED.get(each, _BY_KUBERNETES))
    return _lasting(UserAccess(user=user, groups=tuple(dict.fromkeys(groups)), lifetime=lifetime))


def issue_user(plane: SharedSecrets, access: UserAccess, now: datetime) -> KeyPair:
    """A client certificate (``now`` is an aware datetime). It never outlives its authority, and cannot be revoked: what
    RBAC gives its groups can. Raises PreconditionFailed when the authority has expired.
    """
    check_certificate("kubernetes-ca", plane.kubernetes_ca.issuer.certificate, now)
    request = CertificateRequest(
        common_name=access.user, organizations=access.groups, usage=Usage.CLIENT, lifetime=access.lifetime
    )
    return issued_by(plane.kubernetes_ca, plane.kubernetes_ca.use.issuer, request, now)


def _lasting(access: UserAccess) -> UserAccess:
    if access.lifetime < timedelta(seconds=1):
        seen = f"{access.lifetime.total_seconds():g} s is no lifetime"
        raise InvalidInput(f"issuing a certificate for user {access.user}", seen, "give a second or more")
    return access


def _check_name(what: str, name: str) -> None:
    doing = f"issuing a certificate for {what} {shortened(name)}"
    if not _PRINTABLE.fullmatch(name):
        raise InvalidInput(
            doing,
            "it is empty, begins or ends with a space, or has control characters",
            "give a name such as ada@example.com",
        )
    if len(name) > _LONGEST:
        raise InvalidInput(doing, f"it has {len(name)} characters; certificates take {_LONGEST}", "give a shorter name")


def _own_users() -> frozenset[str]:
    issued = (each for spec in CATALOGUE.values() for each in spec.certificates)
    clients = (each.user for each in issued if each.kind is CertificateKind.CLIENT)
    return frozenset((MANAGER, PROBE, ADMIN, SUPER_ADMIN, *clients))
