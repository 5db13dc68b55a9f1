"""The parts of admission webhooks and of definitions of custom resources that quarterdeck reads."""

from __future__ import annotations

from pydantic import Field

from quarterdeck.kube.lists import ObjectPart, Page, items
from quarterdeck.kube.port import Address, Objects

_PAGE = 200
_WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/{kind}webhookconfigurations?limit={limit}"
_DEFINITIONS = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions?limit={_PAGE}"


class _Named(ObjectPart):
    name: str


class Webhook(ObjectPart):
    """An admission webhook. ``match_policy``: Exact or Equivalent."""

    name: str
    match_policy: str = Field(default="Equivalent", alias="matchPolicy")


class WebhookConfiguration(ObjectPart):
    """A validating or a mutating configuration of webhooks."""

    metadata: _Named
    webhooks: tuple[Webhook, ...] = ()


class _DefinitionSpec(ObjectPart):
    versions: tuple[_Named, ...] = ()


class _DefinitionStatus(ObjectPart):
    stored: tuple[str, ...] = Field(default=(), alias="storedVersions")


class Definition(ObjectPart):
    """A CustomResourceDefinition."""

    metadata: _Named
    spec: _DefinitionSpec = _DefinitionSpec()
    status: _DefinitionStatus = _DefinitionStatus()

    @property
    def lost(self) -> tuple[str, ...]:
        """The versions in which resources may be stored, and which the definition no longer has."""
        known = {each.name for each in self.spec.versions}
        return tuple(each for each in self.status.stored if each not in known)


async def webhook_configurations(kube: Objects, apiserver: Address) -> tuple[WebhookConfiguration, ...]:
    """All of both kinds. Raises Unavailable."""
    paths = [_WEBHOOKS.format(kind=kind, limit=_PAGE) for kind in ("validating", "mutating")]
    return tuple([each for path in paths async for each in items(kube, apiserver, path, Page[WebhookConfiguration])])


async def definitions(kube: Objects, apiserver: Address) -> tuple[Definition, ...]:
    """All definitions of custom resources. Raises Unavailable."""
    return tuple([each async for each in items(kube, apiserver, _DEFINITIONS, Page[Definition])])
