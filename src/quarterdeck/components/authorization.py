"""The authorizers of an apiserver: Node and RBAC, and the user's webhooks around RBAC."""

from __future__ import annotations

from collections.abc import Iterator

from quarterdeck.api.plane.authorization import AuthorizationWebhook, WebhookPosition, WebhookServer
from quarterdeck.api.revision import ReplicaTemplate
from quarterdeck.components.arguments import Folder, seconds
from quarterdeck.components.kubeconfig import webhook_kubeconfig
from quarterdeck.yaml_text import dumped

#: The anonymous health paths. Exact paths; ``/readyz/etcd`` is not among them.
HEALTH_PATHS = ("/healthz", "/livez", "/readyz")
_PROGRAMS = ("system:kube-controller-manager", "system:kube-scheduler", "system:cloud-controller-manager")
#: A webhook before RBAC could stop the plane when it does not answer: controllers and load balancers would be denied.
#: (Apiservers and quarterdeck are in system:masters, which no authorizer is asked about.)
_NOT_OF_THE_PLANE = (
    f"!(request.user in {list(_PROGRAMS)} || 'system:serviceaccounts:kube-system' in request.groups"
    f" || (has(request.nonResourceAttributes) && request.nonResourceAttributes.path in {list(HEALTH_PATHS)}))"
)


def authorization_flags(template: ReplicaTemplate, folder: Folder) -> dict[str, str]:
    """Flags of authorization. Node is asked first: whatever a webhook says, nodes work."""
    if template.authorization is None:
        return {"authorization-mode": "Node,RBAC"}
    webhooks = template.authorization.webhooks
    first, last = ([each for each in webhooks if each.position is position] for position in WebhookPosition)
    authorizers = [
        {"type": "Node", "name": "node"},
        *(_authorizer(each, folder) for each in first),
        {"type": "RBAC", "name": "rbac"},
        *(_authorizer(each, folder) for each in last),
    ]
    document = {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "AuthorizationConfiguration",
        "authorizers": authorizers,
    }
    return {"authorization-config": folder.file("authorization.yaml", dumped(document))}


def _authorizer(webhook: AuthorizationWebhook, folder: Folder) -> dict[str, object]:
    file = folder.file(f"authorization-{webhook.name}.kubeconfig", _kubeconfig(webhook.server))
    return {
        "type": "Webhook",
        "name": webhook.name,
        "webhook": {
            "authorizedTTL": seconds(webhook.authorized_ttl),
            "unauthorizedTTL": seconds(webhook.unauthorized_ttl),
            "timeout": seconds(webhook.timeout),
            "subjectAccessReviewVersion": "v1",
            "matchConditionSubjectAccessReviewVersion": "v1",
            "failurePolicy": webhook.failure_policy.value,
            "connectionInfo": {"type": "KubeConfigFile", "kubeConfigFile": file},
            "matchConditions": [{"expression": each} for each in _conditions(webhook)],
        },
    }


def _conditions(webhook: AuthorizationWebhook) -> Iterator[str]:
    if webhook.position is WebhookPosition.BEFORE_RBAC:
        yield _NOT_OF_THE_PLANE
    yield from (each.expression for each in webhook.match_conditions if each.expression != _NOT_OF_THE_PLANE)


def _kubeconfig(server: WebhookServer) -> str:
    return webhook_kubeconfig(
        server.url,
        authority=_encoded(server.certificate_authority),
        certificate=_encoded(server.client_certificate),
        key=_encoded(server.client_key),
        token=server.token or "",
    )


def _encoded(text: str | None) -> bytes:
    return text.encode() if text is not None else b""
