"""A kind of tests' own: its definition as users write it, and where its objects are."""

from __future__ import annotations

from pydantic import JsonValue

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
#: The widgets of namespace default.
WIDGETS = "/apis/tests.example/v1/namespaces/default/widgets"
DEFINITION: dict[str, JsonValue] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.tests.example"},
    "spec": {
        "group": "tests.example",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}
