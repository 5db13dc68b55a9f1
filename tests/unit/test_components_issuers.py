"""Issuers of service account tokens: no apiserver signs a token that another one refuses, also while they change."""

from __future__ import annotations

from itertools import pairwise

import pytest
from pydantic import JsonValue
from support.golden import Golden
from support.templates import template, units_of

from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.documents import parse
from quarterdeck.api.plane.service_accounts import OWN_ISSUER
from quarterdeck.api.plane.upgrade import UpgradeWindow
from quarterdeck.api.revision import ReplicaTemplate
from quarterdeck.components.difference import change, differences
from quarterdeck.components.transitions.issuers import dropped, issuers_of
from quarterdeck.components.transitions.ways import apart, way
from quarterdeck.errors import InvalidInput
from quarterdeck.model.components import Component, ReplicaChange

NEW, OTHER = "https://tokens.example/alpha", "https://other.example"
APISERVER = frozenset({Component.APISERVER})


def signing(*issuers: str, **changes: object) -> ReplicaTemplate:
    return template(service_account_issuers=issuers or None, **changes)


def read(**spec: JsonValue) -> ControlPlane:
    head: dict[str, JsonValue] = {"apiVersion": "quarterdeck.dev/v1alpha1", "kind": "ControlPlane"}
    document = {**head, "metadata": {"name": "a"}, "spec": {"placement": {"site": "east"}, **spec}}
    return parse(ControlPlane, document, "reading it")


def test_the_first_issuer_signs_and_all_are_accepted() -> None:
    flag = "--service-account-issuer="
    argv = units_of(signing(NEW, OWN_ISSUER))[Component.APISERVER].argv
    assert [each for each in argv if each.startswith(flag)] == [f"{flag}{NEW}", f"{flag}{OWN_ISSUER}"]
    assert [each for each in units_of(signing())[Component.APISERVER].argv if each.startswith(flag)] == [
        f"{flag}{OWN_ISSUER}"
    ]


@pytest.mark.parametrize(
    ("before", "after", "between"),
    [
        ((), (), []),
        ((), (OWN_ISSUER, NEW), []),
        ((), (NEW, OWN_ISSUER), [(OWN_ISSUER, NEW)]),
        ((), (NEW,), [(OWN_ISSUER, NEW), (NEW, OWN_ISSUER)]),
        ((NEW, OWN_ISSUER), (NEW,), []),
        ((NEW, OWN_ISSUER), (), [(OWN_ISSUER, NEW)]),
        ((NEW,), (OTHER, NEW), [(NEW, OTHER)]),
    ],
)
def test_a_new_issuer_is_accepted_everywhere_before_one_signs_with_it(
    before: tuple[str, ...], after: tuple[str, ...], between: list[tuple[str, ...]]
) -> None:
    start, goal = signing(*before), signing(*after)
    stops = way(start, goal)
    assert [issuers_of(each) for each in stops] == between
    for one, other in pairwise((start, *stops, goal)):
        assert not apart(one, other)
        assert issuers_of(one)[0] in issuers_of(other)
        assert issuers_of(other)[0] in issuers_of(one)
    assert [issuers_of(each) for each in way(goal, start)] or not between, "there is a way back as well"


def test_issuers_change_before_versions_do() -> None:
    start = signing(kubernetes_version="v1.35.4")
    goal = signing(NEW, OWN_ISSUER, kubernetes_version="v1.36.3")
    found = [(each.kubernetes_version, each.upgrade_window, issuers_of(each)) for each in way(start, goal)]
    assert found == [
        ("v1.35.4", None, (OWN_ISSUER, NEW)),
        ("v1.36.3", UpgradeWindow.EMULATING, (NEW, OWN_ISSUER)),
    ]


def test_a_change_restarts_apiservers_alone_and_is_told_as_it_is_written() -> None:
    before, after = signing(), signing(OWN_ISSUER, NEW)
    (found,) = differences(before, after)
    assert (found.path, found.before) == ("spec.serviceAccounts.issuers", "unset")
    assert change(before, after) == ReplicaChange(restart=APISERVER)


@pytest.mark.parametrize("flags", [{}, {"service-account-extend-token-expiration": "true"}])
def test_tokens_that_are_no_longer_accepted_are_named_with_how_long_they_live(
    flags: dict[str, JsonValue], golden: Golden
) -> None:
    orders: tuple[JsonValue, ...] = ([NEW, OWN_ISSUER], [OWN_ISSUER, NEW])
    flagged: JsonValue = {"kubeApiserver": flags}
    before, same = (read(serviceAccounts={"issuers": each}, extraArgs=flagged).spec for each in orders)
    after = read(serviceAccounts={"issuers": [NEW]}).spec
    golden(dropped(before, after))
    assert dropped(before, same) == dropped(after, before) == ""


@pytest.mark.parametrize(
    "spec",
    [
        {"serviceAccounts": {"issuers": []}},
        {"serviceAccounts": {"issuers": ["tokens.example"]}},
        {"serviceAccounts": {"issuers": ["http://tokens.example"]}},
        {"serviceAccounts": {"issuers": [NEW, NEW]}},
        {
            "serviceAccounts": {"issuers": [OWN_ISSUER, NEW]},
            "authentication": {
                "jwt": [
                    {
                        "issuer": {"url": NEW, "audiences": ["a"]},
                        "claimMappings": {"username": {"claim": "sub", "prefix": ""}},
                    }
                ]
            },
        },
    ],
)
def test_what_no_issuer_can_be_is_refused_by_path(spec: dict[str, JsonValue], golden: Golden) -> None:
    with golden.raises(InvalidInput):
        read(**spec)
