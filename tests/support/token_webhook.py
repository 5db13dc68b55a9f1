"""A component that no plane has: one more process on each replica, as a new one is added.

It answers at one port, with one certificate, ``/healthz`` says whether it is well, and it has no lease.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath

from quarterdeck.api.revision import ReplicaTemplate
from quarterdeck.components.arguments import Arguments, Folder
from quarterdeck.components.credentials import serving
from quarterdeck.components.record import ComponentSpec, Port
from quarterdeck.components.settings import Inputs
from quarterdeck.model.components import Component
from quarterdeck.model.units import Program, UnitSpec

TOKEN_WEBHOOK = Component("token-webhook", depends=(Component.APISERVER,), optional=True)
PORT = Port(name="token-webhook", number=10263)
SERVING = serving("token-webhook", "token_webhook")


class WebhookTemplate(ReplicaTemplate):
    """A revision that may have one: ``token_webhook`` is its program."""

    token_webhook: str | None = None


def _of(template: ReplicaTemplate) -> str | None:
    return template.token_webhook if isinstance(template, WebhookTemplate) else None


def _is_there(template: ReplicaTemplate) -> bool:
    return _of(template) is not None


def _program(template: ReplicaTemplate) -> Program:
    return Program(TOKEN_WEBHOOK, PurePosixPath(_of(template) or ""))


def _unit(inputs: Inputs, flags: Mapping[str, str]) -> UnitSpec:
    folder, pair = Folder(inputs.replica.folders[TOKEN_WEBHOOK]), inputs.certificates.of(SERVING)
    owned = {
        "listen": inputs.replica.seat.listen(PORT.name).url(),
        "tls-cert-file": folder.file("server.crt", pair.certificate),
        "tls-private-key-file": folder.file("server.key", pair.key),
    }
    arguments = Arguments(owned=owned).command_line(TOKEN_WEBHOOK, flags)
    return UnitSpec(
        name=inputs.unit_name(TOKEN_WEBHOOK), argv=inputs.command(TOKEN_WEBHOOK, arguments), files=folder.files
    )


WEBHOOK = ComponentSpec(
    component=TOKEN_WEBHOOK,
    program="token-webhook",
    build=_unit,
    ports=(PORT,),
    certificates=(SERVING,),
    made_from=("tokenWebhook",),
    present=_is_there,
    given=_program,
)
