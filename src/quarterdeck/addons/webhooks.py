"""What must be there before an object counts or is safe: services that webhooks call, definitions that are accepted."""

from __future__ import annotations

from pydantic import JsonValue

from quarterdeck.addons.lease_webhooks import GROUP, KINDS
from quarterdeck.addons.objects import Manifest, group_kind, items, mapping, text_of


def services(manifest: Manifest) -> tuple[tuple[str, str], ...]:
    """The services that a webhook configuration calls, by namespace and name, without which requests are refused."""
    kind = group_kind(manifest)
    if kind.group != GROUP or kind.kind not in KINDS:
        return ()
    found = []
    for webhook in items(manifest.get("webhooks")):
        service = mapping(mapping(webhook.get("clientConfig")).get("service"))
        if service and webhook.get("failurePolicy", "Fail") != "Ignore":
            found.append((text_of(service.get("namespace")), text_of(service.get("name"))))
    return tuple(dict.fromkeys(found))


def has_ready(slices: JsonValue) -> bool:
    """Whether a list of EndpointSlices has an endpoint that is ready (one that does not say is)."""
    endpoints = (endpoint for each in items(mapping(slices).get("items")) for endpoint in items(each.get("endpoints")))
    return any(mapping(each.get("conditions")).get("ready") is not False for each in endpoints)


def established(definition: JsonValue) -> bool:
    """Whether a CustomResourceDefinition is served."""
    return any((each.get("type"), each.get("status")) == ("Established", "True") for each in _conditions(definition))


def unestablished(definition: JsonValue) -> str:
    """Why it is not, as the end of a sentence; "" if it does not say."""
    for each in _conditions(definition):
        if (each.get("type"), each.get("status")) == ("NamesAccepted", "False"):
            return f" ({text_of(each.get('message'))})"
    return ""


def _conditions(definition: JsonValue) -> list[Manifest]:
    return [*items(mapping(mapping(definition).get("status")).get("conditions"))]
