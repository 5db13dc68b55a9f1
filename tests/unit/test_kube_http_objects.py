"""What the HTTPS driver makes of what apiservers say about objects."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from pydantic import JsonValue
from support.golden import Golden

from quarterdeck.errors import Unavailable
from quarterdeck.http import Answer
from quarterdeck.kube.http_objects import HttpObjects
from quarterdeck.kube.port import Address, ApiResource, Refusal, Refused

SERVER = Address("127.0.0.1", 6443)
CONFIG_MAP = ApiResource("", "v1", "ConfigMap", "configmaps", namespaced=True)
PATH = CONFIG_MAP.path("default", "a")


class Answers:
    """Answers to requests, in turn; ``asked`` are their methods, paths and headers."""

    def __init__(self, *answers: tuple[int, Any]) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, str, dict[str, str]]] = []

    async def __call__(self, method: str, _: Address, path: str, headers: Any, __: bytes) -> Answer:
        self.asked.append((method, path, dict(headers)))
        status, body = self.answers.pop(0)
        return Answer(status, body if isinstance(body, bytes) else json.dumps(body).encode())


def kind(
    plural: str, name: str, scope: str = "Namespaced", verbs: tuple[str, ...] = ("get", "patch")
) -> dict[str, Any]:
    type_meta = {"group": "", "version": "", "kind": name}
    return {"resource": plural, "responseKind": type_meta, "scope": scope, "verbs": [*verbs], "subresources": []}


def group(name: str, *versions: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"name": name} if name else {}, "versions": [*versions]}


def status(code: int, reason: str, message: str, *causes: dict[str, str]) -> tuple[int, dict[str, Any]]:
    body = {"kind": "Status", "reason": reason, "message": message, "details": {"causes": [*causes]}}
    return code, body


async def test_discovery_tells_what_can_be_applied_and_whose_apiserver_is_silent() -> None:
    core = group("", {"version": "v1", "freshness": "Current", "resources": [
        kind("configmaps", "ConfigMap"), kind("namespaces", "Namespace", "Cluster"),
        kind("tokenreviews", "TokenReview", "Cluster", ("create",)),
    ]})  # fmt: skip
    stale = group("metrics.k8s.io", {"version": "v1beta1", "freshness": "Stale"})
    apps = group("apps", {"version": "v1", "freshness": "Current", "resources": [kind("deployments", "Deployment")]})
    answers = Answers((200, {"items": [core]}), (200, {"items": [stale, apps]}))
    found = await HttpObjects(answers).discover(SERVER)
    assert found.resources == (
        CONFIG_MAP,
        ApiResource("", "v1", "Namespace", "namespaces", namespaced=False),
        ApiResource("apps", "v1", "Deployment", "deployments", namespaced=True),
    )
    assert found.silent == {("metrics.k8s.io", "v1beta1")}
    assert [path for _, path, _ in answers.asked] == ["/api", "/apis"]


async def test_discovery_tells_what_else_people_call_a_kind() -> None:
    entry = {**kind("configmaps", "ConfigMap"), "singularResource": "configmap", "shortNames": ["cm"]}
    core = group("", {"version": "v1", "freshness": "Current", "resources": [entry]})
    (found,) = (await HttpObjects(Answers((200, {"items": [core]}), (200, {"items": []}))).discover(SERVER)).resources
    assert (found, found.singular, found.short_names) == (CONFIG_MAP, "configmap", ("cm",))


async def test_a_preview_stores_nothing_and_takes_fields_of_others() -> None:
    answers = Answers((200, {"data": {"a": "1"}}))
    assert await HttpObjects(answers).preview(SERVER, PATH, {"kind": "ConfigMap"}, manager="me") == {"data": {"a": "1"}}
    (asked,) = answers.asked
    assert asked[1] == f"{PATH}?fieldManager=me&force=true&dryRun=All&fieldValidation=Strict"


async def test_a_long_list_is_read_page_by_page() -> None:
    def page(name: str, more: str = "") -> dict[str, Any]:
        return {"metadata": {"continue": more}, "items": [{"metadata": {"name": name, "uid": name}}]}

    answers = Answers((200, page("a", "x/y")), (200, page("b")))
    found = await HttpObjects(answers).metadata(SERVER, CONFIG_MAP, "set=mine")
    assert [each.name for each in found] == ["a", "b"]
    assert "labelSelector=set%3Dmine" in answers.asked[1][1]
    assert "continue=x" in answers.asked[1][1]


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (status(422, "Invalid", "spec.x:\nRequired value"), Refusal.INVALID),
        (status(403, "Forbidden", "no", {"reason": "NamespaceTerminating"}), Refusal.LATER),
        (status(403, "Forbidden", "policy says no"), Refusal.INVALID),
        (status(404, "NotFound", "namespaces not found"), Refusal.LATER),
        (status(409, "Conflict", "the object has been modified"), Refusal.LATER),
        (status(500, "InternalError", "failed calling webhook"), Refusal.LATER),
        (status(500, "", "failed to create typed patch object (x): .data: expected map"), Refusal.INVALID),
        ((503, b"no JSON"), Refusal.LATER),
    ],
)
async def test_what_is_refused_may_come_later_or_never(answer: tuple[int, Any], why: Refusal, golden: Golden) -> None:
    with pytest.raises(Refused) as refused:
        await HttpObjects(Answers(answer)).apply(SERVER, PATH, {"kind": "ConfigMap"}, manager="me")
    assert refused.value.why is why
    golden(refused.value.seen)
    assert "\n" not in str(refused.value)


async def test_a_conflict_names_the_fields_and_who_owns_them(golden: Golden) -> None:
    causes = [
        {"reason": "FieldManagerConflict", "message": 'conflict with "an-operator" using v1', "field": field}
        for field in (".data.a", ".data.b")
    ]
    answers = Answers(status(409, "Conflict", "Apply failed with 2 conflicts", *causes))
    with pytest.raises(Refused) as refused:
        await HttpObjects(answers).apply(SERVER, PATH, {}, manager="me")
    assert (refused.value.why, refused.value.fields) == (Refusal.OWNED, (".data.a", ".data.b"))
    golden(refused.value.seen)
    assert "fieldManager=me&force=false" in answers.asked[0][1]


async def test_what_is_said_of_a_secret_that_makes_no_sense_is_not_told() -> None:
    answers = Answers(status(422, "Invalid", 'Invalid value: "hidden-word"'))
    with pytest.raises(Refused) as refused:
        await HttpObjects(answers).apply(SERVER, PATH, {"kind": "Secret"}, manager="me")
    assert refused.value.seen == "Invalid (422)"


async def test_another_object_of_the_name_is_not_deleted(golden: Golden) -> None:
    other = status(409, "Conflict", "the UID in the precondition (a) does not match the UID in record (b)")
    assert await HttpObjects(Answers(other)).delete(SERVER, PATH, uid="a") is False
    with golden.raises(Refused):
        await HttpObjects(Answers(status(409, "Conflict", "it is in use"))).delete(SERVER, PATH, uid="a")


async def test_an_answer_that_is_no_object_is_unavailable(golden: Golden) -> None:
    with golden.raises(Unavailable):
        await HttpObjects(Answers((200, b"<html>"))).read(SERVER, PATH)
    assert await HttpObjects(Answers((404, {}))).read(SERVER, PATH) is None
    assert await HttpObjects(Answers((404, {}))).metadata(SERVER, CONFIG_MAP, "a") == ()


async def test_a_policy_that_denies_a_secret_is_told_without_what_the_secret_holds(golden: Golden) -> None:
    why = "ValidatingAdmissionPolicy 'no-tokens' with binding 'b' denied request: no tokens, such as abcdef.x or {}"
    data: dict[str, JsonValue] = {"token-secret": base64.b64encode(b"hidden-word").decode()}
    for value in ("hidden-word", data["token-secret"]):
        answers = Answers(status(422, "Invalid", f'secrets "t" is forbidden: {why.format(value)}'))
        with pytest.raises(Refused) as refused:
            await HttpObjects(answers).apply(SERVER, PATH, {"kind": "Secret", "data": data}, manager="me")
        golden(refused.value.seen)
