"""Certificate authorities: who trusts whom between two revisions, and what is issued and kept of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise, product

import pytest
from cryptography import x509
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError
from support.golden import Golden
from support.templates import template as template_with

from quarterdeck.api.plane.certificates import AuthorityUse, Certificates, Signer
from quarterdeck.api.revision import ReplicaTemplate
from quarterdeck.components.credentials import Authority, KeyPair, NumberedAuthority, uses
from quarterdeck.components.difference import Need, change, differences
from quarterdeck.components.transitions.authorities import apart, common, objections
from quarterdeck.components.transitions.ways import way
from quarterdeck.model.components import Component
from quarterdeck.pki.authority import create_authority, cross_signed, issue, may_sign_authorities
from quarterdeck.pki.certificate import CertificateRequest, Usage
from quarterdeck.pki.issuance import (
    ReplicaNames,
    create_plane_secrets,
    has_all,
    with_authorities,
    with_issuer,
    with_manager,
    with_replica,
    without_former,
)

NOW = datetime(2026, 11, 1, tzinfo=UTC)
FIRST = AuthorityUse()
NAMES = ReplicaNames(
    replica="east-1",
    addresses=("10.0.0.1",),
    service_ip="10.96.0.1",
    programs=(Component.ETCD, Component.APISERVER, Component.CONTROLLER_MANAGER, Component.SCHEDULER),
)
#: Every use of two authorities.
USES = [
    FIRST,
    AuthorityUse(issuer=1),
    *(
        AuthorityUse(issuer=issuer, also=1 - issuer, serving=serving)
        for issuer, serving in product((0, 1), (None, 0, 1))
        if serving != issuer
    ),
]


def template(**certificates: AuthorityUse) -> ReplicaTemplate:
    return template_with(certificates=Certificates.model_validate(certificates))


def trusts(one: AuthorityUse, other: AuthorityUse) -> bool:
    return {other.issuer, other.servers} <= one.trusted


@pytest.mark.parametrize(("one", "other"), list(product(USES, repeat=2)), ids=str)
def test_revisions_meet_only_while_each_trusts_the_issuers_of_the_other(one: AuthorityUse, other: AuthorityUse) -> None:
    assert apart(template(etcd=one), template(etcd=other)) is not (trusts(one, other) and trusts(other, one))


@pytest.mark.parametrize(("start", "goal"), list(product(USES, repeat=2)), ids=str)
def test_there_is_a_way_on_which_nobody_meets_a_stranger(start: AuthorityUse, goal: AuthorityUse) -> None:
    line = [
        template(kubernetes=start),
        *way(template(kubernetes=start), template(kubernetes=goal)),
        template(kubernetes=goal),
    ]
    assert not any(apart(*each) for each in pairwise(line))
    assert len(line) <= 5, "no more rolls than are needed"


def test_all_authorities_change_on_the_same_way() -> None:
    goal = AuthorityUse(issuer=1, also=0)
    (between,) = way(template(), template(kubernetes=goal, etcd=goal, front_proxy=goal))
    assert [*uses(between.certificates).values()] == 3 * [AuthorityUse(issuer=0, also=1)]


def test_servers_keep_their_issuer_until_both_are_trusted() -> None:
    goal = AuthorityUse(issuer=1, also=0, serving=0)
    (between,) = way(template(), template(kubernetes=goal))
    assert between.certificates.kubernetes == AuthorityUse(issuer=0, also=1)
    (last,) = way(template(kubernetes=goal), template(kubernetes=AuthorityUse(issuer=1)))
    assert last.certificates.kubernetes == AuthorityUse(issuer=1, also=0)


@pytest.mark.parametrize(
    ("field", "restarted"),
    [
        ("etcd", {Component.ETCD, Component.APISERVER}),
        ("front_proxy", {Component.APISERVER}),
        ("kubernetes", {Component.APISERVER, Component.CONTROLLER_MANAGER, Component.SCHEDULER}),
    ],
)
def test_only_programs_that_use_an_authority_are_restarted_for_it(field: str, restarted: set[Component]) -> None:
    before, after = template(), template(**{field: AuthorityUse(issuer=0, also=1)})
    assert {each.needs for each in differences(before, after)} == {Need.RESTART}
    assert change(before, after).restart == restarted


def test_a_client_uses_what_all_that_it_meets_trust() -> None:
    begun = [
        Certificates(),
        Certificates(etcd=AuthorityUse(issuer=0, also=1)),
        Certificates(etcd=AuthorityUse(issuer=1, also=0)),
    ]
    assert common(begun)[Signer.ETCD] == AuthorityUse(issuer=0, also=1)
    assert common(begun[1:])[Signer.ETCD] == AuthorityUse(issuer=1, also=0)
    ended = [begun[2], Certificates(etcd=AuthorityUse(issuer=1))]
    assert common(ended)[Signer.ETCD] == AuthorityUse(issuer=1, also=0)
    assert common(ended[1:])[Signer.ETCD] == AuthorityUse(issuer=1)
    assert common([])[Signer.ETCD] == FIRST


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (FIRST, AuthorityUse(issuer=1)),
        (AuthorityUse(issuer=1), FIRST),
        (AuthorityUse(issuer=1), AuthorityUse(issuer=1, also=0)),
        (AuthorityUse(issuer=1, also=0), AuthorityUse(issuer=2, also=1)),
    ],
)
def test_changes_that_would_make_strangers_are_refused(
    before: AuthorityUse, after: AuthorityUse, golden: Golden
) -> None:
    (found,) = objections(Certificates(front_proxy=before), Certificates(front_proxy=after))
    golden(found)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (FIRST, AuthorityUse(issuer=1, also=0)),
        (FIRST, AuthorityUse(issuer=0, also=1)),
        (AuthorityUse(issuer=1, also=0), FIRST),
        (AuthorityUse(issuer=1, also=0), AuthorityUse(issuer=1)),
        (AuthorityUse(issuer=1), AuthorityUse(issuer=2, also=1)),
    ],
)
def test_steps_of_a_rotation_are_accepted(before: AuthorityUse, after: AuthorityUse) -> None:
    assert objections(Certificates(front_proxy=before), Certificates(front_proxy=after)) == ()


# What is issued


def chain_is_valid(presented: bytes, root: bytes, name: str) -> bool:
    """Whether who trusts only ``root`` accepts a server with these certificates."""
    leaf, *others = x509.load_pem_x509_certificates(presented)
    policy = PolicyBuilder().store(Store(x509.load_pem_x509_certificates(root))).time(NOW + timedelta(hours=1))
    try:
        policy.build_server_verifier(x509.DNSName(name)).verify(leaf, others)
    except VerificationError:
        return False
    return True


def test_who_trusts_only_the_former_authority_verifies_servers_by_the_cross_signed_one() -> None:
    former, new = (create_authority(f"alpha-{each}", NOW) for each in ("former", "new"))
    authority = with_issuer(Authority.of(former), 1, new, 0, NOW)
    request = CertificateRequest(
        common_name="server", usage=Usage.SERVER, lifetime=timedelta(days=1), dns_names=("server.example",)
    )
    leaf = KeyPair(*_parts(issue(new, request, NOW)), issuer=1)
    both = authority.used(AuthorityUse(issuer=1, also=0)).chained(leaf).certificate
    assert chain_is_valid(both, former.certificate, "server.example")
    assert chain_is_valid(both, new.certificate, "server.example")
    alone = authority.used(AuthorityUse(issuer=1)).chained(leaf)
    assert alone == leaf
    assert not chain_is_valid(alone.certificate, former.certificate, "server.example")


def _parts(pair: KeyPair) -> tuple[bytes, bytes]:
    return pair.certificate, pair.key


def test_after_one_that_was_taken_back_the_authority_in_use_signs_the_next_one() -> None:
    needed = dict.fromkeys(Signer, frozenset({0, 1}))
    secrets = with_authorities("alpha", create_plane_secrets("alpha", NOW), needed, NOW)
    again = with_authorities("alpha", secrets, dict.fromkeys(Signer, frozenset({0, 2})), NOW).kubernetes_ca
    crossed = x509.load_pem_x509_certificate(again.at(2).crossed)
    assert crossed.issuer == x509.load_pem_x509_certificate(again.at(0).pair.certificate).subject


def test_a_cross_signed_authority_signs_no_authorities_and_outlives_neither_of_both() -> None:
    former = create_authority("former", NOW, lifetime=timedelta(days=30))
    new = create_authority("new", NOW)
    crossed = cross_signed(new, former, NOW)
    assert may_sign_authorities(former.certificate)
    assert not may_sign_authorities(crossed)
    assert x509.load_pem_x509_certificate(crossed).not_valid_after_utc <= NOW + timedelta(days=30)


def test_an_authority_that_may_sign_none_is_followed_by_one_without_a_cross_signed_certificate() -> None:
    former = create_authority("former", NOW)
    bound = KeyPair(cross_signed(former, create_authority("root", NOW), NOW), former.key)
    assert with_issuer(Authority.of(bound), 1, create_authority("new", NOW), 0, NOW).at(1).crossed == b""


def test_missing_authorities_are_made_once_and_former_ones_forgotten() -> None:
    secrets = create_plane_secrets("alpha", NOW)
    needed = {**dict.fromkeys(Signer, frozenset({0})), Signer.ETCD: frozenset({0, 1})}
    more = with_authorities("alpha", secrets, needed, NOW)
    assert [each.number for each in more.etcd_ca.known] == [0, 1]
    assert more.kubernetes_ca == secrets.kubernetes_ca
    assert with_authorities("alpha", more, needed, NOW) is more
    left = without_former(more, {**needed, Signer.ETCD: frozenset({1})})
    assert [each.number for each in left.etcd_ca.known] == [1]
    assert without_former(more, dict.fromkeys(Signer, frozenset({0}))) == more, "no number is used twice"


def test_certificates_are_issued_again_by_the_authority_that_is_to_issue_them() -> None:
    secrets = with_replica(create_plane_secrets("alpha", NOW), NAMES, NOW)
    needed = {**dict.fromkeys(Signer, frozenset({0})), Signer.KUBERNETES: frozenset({0, 1})}
    secrets = with_authorities("alpha", secrets, needed, NOW)
    use = AuthorityUse(issuer=1, also=0, serving=0)
    used = secrets.used({Signer.KUBERNETES: use})
    assert has_all(secrets, NAMES)
    assert not has_all(used, NAMES)
    renewed = with_replica(used, NAMES, NOW).replica("east-1")
    had = secrets.replica("east-1")
    assert renewed is not None
    assert had is not None
    assert {name for name, pair in renewed.pairs.items() if pair.issuer == 1} == {
        "kubelet_client",
        "controller_manager_client",
        "scheduler_client",
    }, "those of clients: servers keep theirs"
    assert {name for name, pair in renewed.pairs.items() if pair == had.pairs[name]} == {
        name for name, pair in renewed.pairs.items() if pair.issuer == 0
    }


def test_quarterdecks_own_certificates_follow_the_authority_that_all_trust() -> None:
    secrets = create_plane_secrets("alpha", NOW)
    needed = {each: frozenset({0, 1}) for each in Signer}
    used = with_authorities("alpha", secrets, needed, NOW).used({Signer.ETCD: AuthorityUse(issuer=1, also=0)})
    renewed = with_manager(used, 0, NOW)
    assert (renewed.etcd_manager.issuer, renewed.manager.issuer) == (1, 0)
    assert with_manager(renewed, 0, NOW) is renewed


def test_a_plane_that_is_made_from_the_document_of_another_has_authorities_of_its_numbers() -> None:
    certificates = Certificates(kubernetes=AuthorityUse(issuer=2, also=1))
    secrets = create_plane_secrets("alpha", NOW, certificates=certificates)
    assert [each.number for each in secrets.kubernetes_ca.known] == [1, 2]
    assert secrets.manager.issuer == 2


def test_an_authority_that_is_not_known_is_named() -> None:
    with pytest.raises(Exception, match="certificate authority 3"):
        Authority((NumberedAuthority(0, create_authority("a", NOW)),)).at(3)
