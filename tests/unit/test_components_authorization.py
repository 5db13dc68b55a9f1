"""The authorizers of an apiserver, as its unit has them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import yaml
from support.templates import template, units_of

from quarterdeck.api.controlplane import new_control_plane
from quarterdeck.api.differences import differences as spec_fields
from quarterdeck.api.plane.authorization import Authorization
from quarterdeck.components.difference import Need, differences
from quarterdeck.model.components import Component
from quarterdeck.model.units import UnitSpec
from quarterdeck.pki.authority import create_authority

PAIR = create_authority("own", datetime.now(UTC))


def webhook(name: str, **changes: object) -> dict[str, Any]:
    server = {"url": "https://a.example", "token": "secret"}
    return {"name": name, "server": server, "failurePolicy": "Deny", **changes}


def authorization(*webhooks: dict[str, Any]) -> Authorization:
    return Authorization.model_validate({"webhooks": webhooks}, strict=False)


def unit(*webhooks: dict[str, Any]) -> UnitSpec:
    return units_of(template(authorization=authorization(*webhooks)))[Component.APISERVER]


def files(of: UnitSpec) -> dict[str, Any]:
    return {each.path.name: yaml.safe_load(each.content) for each in of.files if "authorization" in each.path.name}


def test_webhooks_are_asked_around_rbac_and_nodes_depend_on_none() -> None:
    before = webhook("guard", position="BeforeRBAC")
    found = unit(webhook("late-1"), before, webhook("late-2"))
    (config,) = (each for each in files(found).values() if each["kind"] == "AuthorizationConfiguration")
    assert [each["name"] for each in config["authorizers"]] == ["node", "guard", "rbac", "late-1", "late-2"]
    assert not any(each.startswith("--authorization-mode") for each in found.argv)


def test_a_webhook_before_rbac_is_not_asked_about_what_the_plane_itself_does() -> None:
    mine = [{"expression": "has(request.resourceAttributes)"}]
    found = files(unit(webhook("guard", position="BeforeRBAC", matchConditions=mine), webhook("late")))
    asked = {
        each["name"]: [one["expression"] for one in each["webhook"]["matchConditions"]]
        for each in found["authorization.yaml"]["authorizers"]
        if each["type"] == "Webhook"
    }
    own, given = asked["guard"]
    assert "system:kube-scheduler" in own
    assert "/readyz" in own
    assert (given, asked["late"]) == ("has(request.resourceAttributes)", [])


def test_what_identifies_an_apiserver_is_in_a_file_for_its_owner_alone() -> None:
    own = {"clientCertificate": PAIR.certificate.decode(), "clientKey": PAIR.key.decode()}
    found = unit(webhook("one"), webhook("two", server={"url": "https://b.example/x", **own}))
    one, two = (files(found)[f"authorization-{name}.kubeconfig"] for name in ("one", "two"))
    assert one["users"][0]["user"] == {"token": "secret"}
    assert {*two["users"][0]["user"]} == {"client-certificate-data", "client-key-data"}
    assert two["clusters"][0]["cluster"] == {"server": "https://b.example/x"}
    assert {each.mode for each in found.files} == {0o600}
    assert "secret" not in " ".join(found.argv)


def test_secrets_are_in_no_difference() -> None:
    """Neither where webhooks are added, nor where one changes, nor in the history of a plane."""
    none, one = template(), template(authorization=authorization(webhook("guard")))
    other = webhook("guard", server={"url": "https://a.example", "token": "geheim"})
    two = template(authorization=authorization(other))
    found = [*differences(none, one), *differences(one, two)]
    assert [each.path for each in found] == ["spec.authorization", "spec.authorization.webhooks[0].server.token"]
    assert {each.needs for each in found} == {Need.RESTART}
    spec = new_control_plane("demo", site="east").spec
    specs = [spec.model_copy(update={"authorization": each.authorization}) for each in (none, one, two)]
    told = [*map(str, found), *(str(each) for pair in (specs[:2], specs[1:]) for each in spec_fields(*pair))]
    assert "token" in told[-1]
    assert not any("secret" in each or "geheim" in each for each in told)
