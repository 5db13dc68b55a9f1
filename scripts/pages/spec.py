"""Pages of docs/reference about the fields of resources, made from their models."""

from __future__ import annotations

import enum
import inspect
import types
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import PurePath
from typing import Any, Literal, Union, get_args, get_origin

import annotated_types
from pydantic import AwareDatetime, BaseModel
from pydantic.fields import FieldInfo

from pages.declared import PLAIN, comments, models_in, table
from quarterdeck.api import schema
from quarterdeck.api.base import Condition, Metadata
from quarterdeck.api.controlplane import ControlPlane, ControlPlaneStatus
from quarterdeck.api.plane.authentication import Authentication
from quarterdeck.api.plane.authorization import Authorization
from quarterdeck.api.plane.certificates import Certificates
from quarterdeck.api.plane.keys import Keys
from quarterdeck.api.plane.memory import MemoryStatus
from quarterdeck.api.site import Site

_VALUES = """Fields with a default may be left out. Unknown fields are refused. Bytes are a number, or a quantity such
as `8Gi`. Durations are a number of seconds, or text such as `500ms`, `5s`, `2m`, `1h` or `7d`."""
_DOCUMENT = f"""# {{kind}}

A document of kind `{{kind}}` for `quarterdeck apply -f FILE`.
{_VALUES}

[Metadata and conditions](metadata.md) are the same for all kinds. {{more}}
"""
_PLANE = _DOCUMENT.format(
    kind="ControlPlane",
    more="""[Authentication](authentication.md), [authorization](authorization.md),
[certificates and keys](certificates-and-keys.md) and the [status](status.md) have pages of their own, and so has the
[site](site.md).
`quarterdeck get NAME -o yaml` prints the resource of a plane.""",
)
_SITE = _DOCUMENT.format(kind="Site", more="The field `driver` decides which of the two specs a site has.")
_METADATA = """# Metadata and conditions

These parts are the same for all kinds of resources, and have the meaning that they have in Kubernetes. The types and
reasons of conditions are in [conditions and events](conditions-and-events.md).
"""
_AUTHENTICATION = """# Authentication

The field `spec.authentication` of a [ControlPlane](spec.md). The fields have the meaning that Kubernetes gives
them in its [structured authentication configuration][kubernetes].

[kubernetes]: https://kubernetes.io/docs/reference/access-authn-authz/authentication/#using-authentication-configuration
"""
_AUTHORIZATION = """# Authorization

The field `spec.authorization` of a [ControlPlane](spec.md). Every apiserver has the authorizers Node and RBAC, in this
order. [Webhooks](#authorizationwebhook) come before or after RBAC. A webhook before RBAC is not asked about requests of
the plane's own controllers, of service accounts in `kube-system`, and for `/healthz`, `/livez` and `/readyz`: a webhook
that does not answer would stop the plane. No authorizer is asked about members of `system:masters`.

The other fields have the meaning that Kubernetes gives them in its [AuthorizationConfiguration][kubernetes].

[kubernetes]: https://kubernetes.io/docs/reference/access-authn-authz/authorization/#using-configuration-file-for-authorization
"""
_SECRETS = """# Certificates and keys

The fields `spec.certificates` and `spec.keys` of a [ControlPlane](spec.md). `quarterdeck certs` and `quarterdeck keys`
write them: see [rotate authorities and keys](../how-to/rotate.md).
"""
_STATUS = """# Status of a ControlPlane

The field `status` of a [ControlPlane](spec.md). Only quarterdeck writes it. `quarterdeck status NAME` shows it to
people, together with what it observes.
"""
#: The models that pages begin with, and the path of each; models below them are on the same page.
_ROOTS: Mapping[str, Mapping[type[BaseModel], str]] = {
    "spec.md": {ControlPlane: ""},
    "status.md": {ControlPlaneStatus: "status"},
    "site.md": {Site: ""},
    "metadata.md": {Metadata: "metadata", Condition: "status.conditions[]"},
    "authentication.md": {Authentication: "spec.authentication"},
    "authorization.md": {Authorization: "spec.authorization"},
    "certificates-and-keys.md": {Certificates: "spec.certificates", Keys: "spec.keys"},
}
_OPENINGS = {
    "spec.md": _PLANE,
    "status.md": _STATUS,
    "site.md": _SITE,
    "metadata.md": _METADATA,
    "authentication.md": _AUTHENTICATION,
    "authorization.md": _AUTHORIZATION,
    "certificates-and-keys.md": _SECRETS,
}
_PAGE_OF = {model: page for page, roots in _ROOTS.items() for model in roots}
#: What a field is, by what its annotation puts into the schema.
_KINDS: Mapping[int, str] = {
    id(schema.BYTES): "bytes",
    id(schema.SECONDS): "duration",
    id(schema.VERSION): "version",
    id(schema.ABSOLUTE): "absolute path",
    id(schema.HTTPS): "https URL",
    id(schema.NETWORK): "network",
    id(schema.NAME): "DNS name",
    id(schema.ADDRESS): "IP address",
    id(schema.HOST): "host",
    id(schema.FLAGS): "object of flags by name",
}


def pages() -> Mapping[str, Callable[[], str]]:
    """The pages, by their names below ``reference``."""
    return {name: partial(_page, name) for name in _ROOTS}


def models() -> tuple[type[BaseModel], ...]:
    """All models that the pages describe."""
    return tuple(dict.fromkeys(model for name in _ROOTS for model in _below(name)))


def _page(name: str) -> str:
    sections = (_section(model, path) for model, path in _below(name).items())
    return "\n".join((_OPENINGS[name], *sections))


def _below(page: str) -> Mapping[type[BaseModel], str]:
    """The models of a page, each with the path of its first use. The planner's memory is internal."""
    found: dict[type[BaseModel], str] = {}

    def add(model: type[BaseModel], path: str) -> None:
        if model in found or model is MemoryStatus or _PAGE_OF.get(model, page) != page:
            return
        found[model] = path
        for name, field in model.model_fields.items():
            inner = f"{path}.{field.alias or name}" if path else field.alias or name
            for each in models_in(field.annotation):
                add(each, inner + ("[]" if "list of" in _type(field.annotation, field.metadata) else ""))

    for model, path in _ROOTS[page].items():
        add(model, path)
    return found


def _section(model: type[BaseModel], path: str) -> str:
    meanings = comments(model)
    rows = [
        (
            f"`{field.alias or name}`",
            _type(field.annotation, field.metadata),
            _default(field),
            meanings.get(name, "") + _values(field.annotation),
        )
        for name, field in model.model_fields.items()
    ]
    summary = " ".join((inspect.getdoc(model) or "").split())
    heading = f"## {model.__name__}\n" + (f"`{path}`: {summary}" if path else summary)
    return f"{heading}\n\n{table(('field', 'type', 'default', 'meaning'), rows)}"


def _type(annotation: Any, metadata: list[Any]) -> str:
    """The type of a field in words, with its bounds."""
    named = next((_KINDS[id(each)] for each in metadata if id(each) in _KINDS), "")
    text = named or _shape(annotation)
    least = next((each.ge for each in metadata if isinstance(each, annotated_types.Ge)), None)
    most = next((each.le for each in metadata if isinstance(each, annotated_types.Le)), None)
    if least is None and most is None:
        return text
    low, high = (_quantity(each) if named == "bytes" else f"{each}" for each in (least, most))
    return f"{text}, {low} - {high}" if most is not None else f"{text}, {low} or more"


def _quantity(size: Any) -> str:
    """Bytes as people write them."""
    found = ((size // 2**power, unit) for power, unit in ((30, "Gi"), (20, "Mi")) if size and size % 2**power == 0)
    return "".join(map(str, next(found, (size, ""))))


def _shape(annotation: Any) -> str:
    if hasattr(annotation, "__metadata__"):
        return _type(annotation.__origin__, _flat(annotation.__metadata__))
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        return " or ".join(_shape(each) for each in arguments if each is not type(None))
    if origin is Literal:
        return ", ".join(f"`{each}`" for each in arguments)
    if origin is tuple:
        return f"list of {_shape(arguments[0])}"
    if inspect.isclass(annotation):
        return _class(annotation)
    return "object" if origin is dict else "any value"


def _class(of: type) -> str:
    if issubclass(of, BaseModel):
        if of is MemoryStatus:
            return "object"
        return f"[{of.__name__}]({_PAGE_OF.get(of, '')}#{of.__name__.lower()})"
    if issubclass(of, enum.Enum):
        return ", ".join(f"`{each.value}`" for each in of) if len(of) <= 4 else "string"
    if of is AwareDatetime:
        return "RFC 3339 time"
    return PLAIN.get(of) or ("path" if issubclass(of, PurePath) else "object")


def _flat(metadata: tuple[Any, ...]) -> list[Any]:
    """Metadata, with that of pydantic's own ``Field`` taken apart."""
    return [part for each in metadata for part in (each.metadata if isinstance(each, FieldInfo) else (each,))]


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    if field.default_factory is not None:
        return "`{}`"
    if any(each is schema.BYTES for each in field.metadata) and field.default is not None:
        return f"`{_quantity(field.default)}`"
    return _value(field.default)


def _value(value: object) -> str:
    match value:
        case None | "":
            return ""
        case BaseModel():
            return "its defaults"
        case bool():
            return f"`{str(value).lower()}`"
        case enum.Enum():
            return f"`{value.value}`"
        case tuple() if any(isinstance(each, BaseModel) for each in value):
            return f"one named `{getattr(value[0], 'name', '')}`"
        case tuple():
            return f"`[{', '.join(map(str, value))}]`"
        case _:
            return f"`{value}`"


def _values(annotation: Any) -> str:
    """What each value of an enum means, as the end of a sentence; all values of a long one."""
    enums = [each for each in (annotation, *get_args(annotation)) if inspect.isclass(each)]
    for each in enums:
        if issubclass(each, enum.Enum):
            meanings = comments(each)
            if meanings:
                return " " + " ".join(f"`{one.value}`: {meanings[one.name]}" for one in each if one.name in meanings)
            if len(each) > 4:
                return f" One of {', '.join(f'`{one.value}`' for one in each)}."
    return ""
