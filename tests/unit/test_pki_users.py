"""Client certificates of people: whose names they may have, and how long they last."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from support.golden import Golden

from quarterdeck.addons.rbac import ADMINISTRATORS, for_administrators
from quarterdeck.components.credentials import MASTERS, Authority, SharedSecrets
from quarterdeck.errors import InvalidInput, PreconditionFailed
from quarterdeck.pki.authority import create_authority
from quarterdeck.pki.issuance import create_plane_secrets
from quarterdeck.pki.users import (
    BREAK_GLASS_LIFETIME,
    USER_LIFETIME,
    UserAccess,
    administrator,
    break_glass,
    issue_user,
    named_access,
)
from quarterdeck.pki.validity import expiry

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.fixture(scope="module")
def plane() -> SharedSecrets:
    return create_plane_secrets("demo", NOW)


def subject(plane: SharedSecrets, access: UserAccess) -> tuple[str, list[str], timedelta]:
    found = x509.load_pem_x509_certificate(issue_user(plane, access, NOW).certificate)
    usage = found.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usage) == [ExtendedKeyUsageOID.CLIENT_AUTH]
    names, groups = (
        [str(each.value) for each in found.subject.get_attributes_for_oid(oid)]
        for oid in (NameOID.COMMON_NAME, NameOID.ORGANIZATION_NAME)
    )
    return names[0], groups, found.not_valid_after_utc - NOW


def test_an_administrator_has_no_permission_but_by_a_binding(plane: SharedSecrets) -> None:
    assert subject(plane, administrator()) == ("kubernetes-admin", [ADMINISTRATORS], USER_LIFETIME)
    assert not ADMINISTRATORS.startswith("system:")
    assert for_administrators()["subjects"] == [
        {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": ADMINISTRATORS}
    ]


def test_break_glass_is_short_lived(plane: SharedSecrets) -> None:
    assert subject(plane, break_glass()) == ("kubernetes-super-admin", [MASTERS], BREAK_GLASS_LIFETIME)
    assert timedelta(0) < BREAK_GLASS_LIFETIME < timedelta(days=1) < USER_LIFETIME
    assert break_glass().break_glass
    assert not administrator().break_glass


def test_any_user_and_groups_are_named(plane: SharedSecrets) -> None:
    access = named_access("ada@example.com", ("developers", "on call", "developers"), 8 * HOUR)
    assert subject(plane, access) == ("ada@example.com", ["developers", "on call"], 8 * HOUR)
    assert subject(plane, named_access("bob")) == ("bob", [], USER_LIFETIME)
    assert named_access("ada", (ADMINISTRATORS,)).administers
    assert named_access("prometheus", ("system:monitoring",)).groups == ("system:monitoring",)


@pytest.mark.parametrize(
    ("user", "groups"),
    [
        ("ada", (MASTERS,)),
        ("ada", ("system:nodes",)),
        ("ada", ("system:authenticated",)),
        ("ada", ("system:unauthenticated",)),
        ("ada", ("system:bootstrappers",)),
        ("ada", ("developers", "system:serviceaccounts")),
        ("ada", ("",)),
        ("ada", ("a\nb",)),
        ("ada", ("x" * 65,)),
        ("system:kube-controller-manager", ()),
        ("quarterdeck", ()),
        ("kube-apiserver-kubelet-client", ()),
        ("kubernetes-admin", ()),
        ("", ()),
        (" ada", ()),
        ("x" * 65, ()),
    ],
)
def test_names_that_are_not_for_people_are_refused(golden: Golden, user: str, groups: tuple[str, ...]) -> None:
    with golden.raises(InvalidInput):
        named_access(user, groups)


@pytest.mark.parametrize("seconds", [0.0, 0.5])
def test_a_lifetime_is_a_second_or_more(golden: Golden, seconds: float) -> None:
    with golden.raises(InvalidInput):
        administrator(timedelta(seconds=seconds))


def test_it_never_outlives_its_authority(plane: SharedSecrets) -> None:
    short = create_authority("demo-kubernetes-ca", NOW, lifetime=HOUR)
    old = replace(plane, kubernetes_ca=Authority.of(short))
    assert expiry(issue_user(old, administrator(), NOW).certificate) == NOW + HOUR


def test_an_authority_that_has_expired_issues_nothing(plane: SharedSecrets, golden: Golden) -> None:
    old = replace(plane, kubernetes_ca=Authority.of(create_authority("demo-kubernetes-ca", NOW, lifetime=HOUR)))
    with golden.raises(PreconditionFailed):
        issue_user(old, administrator(), NOW + HOUR)
