"""Which objects the keys of kube-apiserver are."""

from __future__ import annotations

import pytest

from quarterdeck.components.stored_keys import ResourcePath, resource_path


@pytest.mark.parametrize(
    ("key", "path", "text"),
    [
        ("pods/ns/p", ResourcePath("", "pods", "ns", "p"), "pods ns/p"),
        ("minions/n1", ResourcePath("", "nodes", "", "n1"), "nodes n1"),
        ("services/specs/ns/s", ResourcePath("", "services", "ns", "s"), "services ns/s"),
        ("services/endpoints/ns/s", ResourcePath("", "endpoints", "ns", "s"), "endpoints ns/s"),
        ("clusterroles/system:node", ResourcePath("", "clusterroles", "", "system:node"), "clusterroles system:node"),
        ("example.com/things/ns/t", ResourcePath("example.com", "things", "ns", "t"), "things.example.com ns/t"),
        ("example.com/minions/t", ResourcePath("example.com", "minions", "", "t"), "minions.example.com t"),
        ("example.com/things/t", ResourcePath("example.com", "things", "", "t"), "things.example.com t"),
    ],
)
def test_a_key_is_an_object(key: str, path: ResourcePath, text: str) -> None:
    found = resource_path(f"/registry/{key}".encode())
    assert found == path
    assert str(found) == text
    assert resource_path(f"/elsewhere/{key}".encode(), prefix="/elsewhere") == path
    assert resource_path(f"/elsewhere/{key}".encode()) is None


@pytest.mark.parametrize("key", ["", "pods", "pods/", "pods//p", "a/b/c/d", "example.com", "services/specs"])
def test_a_key_of_another_kind_is_no_object(key: str) -> None:
    found = resource_path(f"/registry/{key}".encode())
    assert found is None or key == "services/specs"
