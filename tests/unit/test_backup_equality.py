"""Two apiservers have the same objects, or not: all pages, all kinds, what is missing, and what differs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit

import pytest

from quarterdeck.backup.kubernetes import equality
from quarterdeck.backup.kubernetes.equality import ObjectServer, compare_objects
from quarterdeck.backup.kubernetes.kinds import CRDS
from quarterdeck.errors import Unavailable
from quarterdeck.kube.port import Address, ApiResource, Discovered

PODS = ApiResource("", "v1", "Pod", "pods", namespaced=True)
NODES = ApiResource("", "v1", "Node", "nodes", namespaced=False)
OLD_PODS = ApiResource("", "v0", "Pod", "pods", namespaced=True)
WIDGETS = ApiResource("tests.example", "v1", "Widget", "widgets", namespaced=False)
WIDGET_DEFINITION = {
    "metadata": {"name": "widgets.tests.example"},
    "spec": {
        "group": "tests.example",
        "scope": "Cluster",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [{"name": "v1", "served": True, "storage": True}],
    },
}


class Server:
    """An apiserver with these objects at revision 7, which answers in pages of two."""

    def __init__(self, objects: Mapping[ApiResource, list[dict[str, Any]]]) -> None:
        self.objects = {CRDS: [WIDGET_DEFINITION], **objects}
        self.asked: list[str] = []

    async def discover(self, apiserver: Address) -> Discovered:
        return Discovered((PODS, OLD_PODS, NODES, CRDS))

    async def read(self, apiserver: Address, path: str) -> Any:
        self.asked.append(path)
        split = urlsplit(path)
        query = parse_qs(split.query)
        found = next((its for kind, its in self.objects.items() if kind.path() == split.path), None)
        if found is None:
            return None
        if "limit" not in query:
            return {"items": found}
        at = int(query["continue"][0]) if "continue" in query else 0
        assert ("resourceVersion" in query) is (at == 0), "an apiserver refuses both"
        more = str(at + 2) if at + 2 < len(found) else ""
        return {"metadata": {"continue": more}, "items": found[at : at + 2]}

    @property
    def server(self) -> ObjectServer:
        return ObjectServer(cast("Any", self), Address("127.0.0.1", 1))


def named(name: str, namespace: str = "", **more: Any) -> dict[str, Any]:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"metadata": metadata, **more}


def objects() -> dict[ApiResource, list[dict[str, Any]]]:
    return {
        PODS: [named(str(each), "default", spec={"a": each, "b": 1}) for each in range(5)],
        NODES: [named("one")],
        WIDGETS: [named("small"), named("large")],
    }


@pytest.fixture(autouse=True)
def _pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(equality, "_PAGE", 2)


async def test_the_same_objects_are_equal_whatever_the_order_of_their_fields() -> None:
    other = objects()
    other[PODS] = [named(str(each), "default", spec={"b": 1, "a": each}) for each in range(5)]
    first, second = Server(objects()), Server(other)
    found = await compare_objects(first.server, second.server, 7)
    assert (found.equal, found.different) == (5 + 1 + 2 + 1, ())
    assert not any("/v0/" in each for each in first.asked), "each kind is compared once"
    exact = [each for each in second.asked if "continue" not in each]
    assert all("resourceVersion=7&resourceVersionMatch=Exact" in each for each in exact)


async def test_what_is_missing_added_or_changed_is_named() -> None:
    other = objects()
    other[PODS][1] = named("1", "default", spec={"a": 100})
    del other[PODS][4]
    other[NODES].append(named("two"))
    other[WIDGETS][0] = named("tiny")
    found = await compare_objects(Server(objects()).server, Server(other).server, 7)
    assert sorted(found.different) == [
        "nodes two",
        "pods default/1",
        "pods default/4",
        "widgets small",
        "widgets tiny",
    ]
    assert found.equal == 3 + 1 + 1 + 1


async def test_a_kind_that_one_does_not_serve_is_not_taken_for_empty() -> None:
    other = objects()
    del other[WIDGETS]
    with pytest.raises(Unavailable, match="does not serve widgets"):
        await compare_objects(Server(objects()).server, Server(other).server, 7)
