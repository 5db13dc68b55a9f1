"""docs/reference/json.md, json-planes.md and json-operations.md, made from the models of what commands print."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import UnionType
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel

from pages.declared import PLAIN, comments, models_in, summary, table
from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.output import backups, base, controllers, operations, planes, sites, status
from quarterdeck.api.output.backups import (
    BackupDifference,
    BackupKeyResult,
    BackupResult,
    BackupRow,
    BackupVerification,
    KubernetesObject,
    ObjectBroughtBack,
    RestoreResult,
)
from quarterdeck.api.output.base import NamedOutput
from quarterdeck.api.output.controllers import ControllerSetRow, VerificationResult
from quarterdeck.api.output.operations import ApplyPlan, ChangePlan, ChangeResult, KeyResult, OperationRow, StepsPlan
from quarterdeck.api.output.planes import (
    ApprovalRow,
    CertificateRow,
    DrillRow,
    FailoverResult,
    MemberHashRow,
    NewTokenResult,
    NodeRow,
    RecoveryResult,
    ReplicaRow,
    TokenRow,
    UpgradeRow,
)
from quarterdeck.api.output.sites import (
    DrainResult,
    FetchedProgram,
    MachineRow,
    ProgramRow,
    ServiceStatus,
    SiteCheck,
    SiteRow,
    StoragePromise,
)
from quarterdeck.api.output.status import EventRow, PlaneStatus, WatchedStatus
from quarterdeck.api.site import Site
from quarterdeck.probe.schema import Probe
from quarterdeck.report.schema import Report


@dataclass(frozen=True, slots=True)
class Printed:
    """What a command prints. ``many``: a list of it; ``when``: the options with which it does."""

    model: type[BaseModel]
    many: bool = False
    when: str = ""


_CHANGE = (Printed(ChangeResult),)

#: What each command prints with ``-o json``, by its words.
OUTPUTS: Mapping[str, tuple[Printed, ...]] = {
    "create": _CHANGE,
    "apply": (Printed(ChangeResult, many=True), Printed(ApplyPlan, when="--dry-run")),
    "node list": (Printed(NodeRow, many=True),),
    "node approve": (Printed(ApprovalRow, many=True),),
    "node token create": (Printed(NewTokenResult),),
    "node token list": (Printed(TokenRow, many=True),),
    "node token delete": _CHANGE,
    "plan": (Printed(StepsPlan), Printed(ChangePlan, when="-f")),
    "migrate": _CHANGE,
    "scale": _CHANGE,
    "upgrade run": _CHANGE,
    "upgrade plan": (Printed(UpgradeRow, many=True),),
    "replica list": (Printed(ReplicaRow, many=True),),
    "replica replace": _CHANGE,
    "replica cordon": _CHANGE,
    "replica uncordon": _CHANGE,
    "certs list": (Printed(CertificateRow, many=True),),
    "certs renew": _CHANGE,
    "certs rotate-ca": _CHANGE,
    "keys rotate": _CHANGE,
    "controllers list": (Printed(ControllerSetRow, many=True),),
    "controllers plan": (Printed(ChangePlan),),
    "controllers move": _CHANGE,
    "controllers rollback": _CHANGE,
    "controllers verify": (Printed(VerificationResult),),
    "pause": _CHANGE,
    "resume": _CHANGE,
    "delete": _CHANGE,
    "get": (Printed(ControlPlane),),
    "status": (Printed(PlaneStatus), Printed(WatchedStatus, when="--watch")),
    "events": (Printed(EventRow, many=True),),
    "probe": (Printed(Probe),),
    "report": (Printed(Report),),
    "history": (Printed(OperationRow, many=True),),
    "abort": _CHANGE,
    "recover": (Printed(RecoveryResult),),
    "failover": (Printed(FailoverResult),),
    "restore": (Printed(RestoreResult),),
    "backup create": (Printed(BackupResult),),
    "backup list": (Printed(BackupRow, many=True),),
    "backup verify": (Printed(BackupVerification),),
    "backup diff": (Printed(BackupDifference),),
    "backup get": (Printed(KubernetesObject), Printed(ObjectBroughtBack, when="--apply")),
    "backup key": (Printed(BackupKeyResult),),
    "etcd check": (Printed(MemberHashRow, many=True),),
    "etcd remove-member": _CHANGE,
    "etcd disarm": _CHANGE,
    "etcd disable-auth": _CHANGE,
    "drill run": (Printed(DrillRow),),
    "drill list": (Printed(DrillRow, many=True),),
    "site list": (Printed(SiteRow, many=True),),
    "site show": (Printed(Site),),
    "site add": _CHANGE,
    "site check": (Printed(SiteCheck),),
    "site test-storage": (Printed(StoragePromise, many=True),),
    "site remove": _CHANGE,
    "site forget": _CHANGE,
    "site cordon": _CHANGE,
    "site uncordon": _CHANGE,
    "site drain": (Printed(DrainResult),),
    "site machines list": (Printed(MachineRow, many=True),),
    "site machines add": (Printed(ChangeResult, many=True),),
    "site machines remove": _CHANGE,
    "site machines replace": _CHANGE,
    "service install": _CHANGE,
    "service status": (Printed(ServiceStatus),),
    "service remove": _CHANGE,
    "home seal": (Printed(KeyResult),),
    "home unseal": (Printed(KeyResult),),
    "home rekey": (Printed(KeyResult),),
    "upstream list": (Printed(ProgramRow, many=True),),
    "upstream fetch": (Printed(FetchedProgram, many=True),),
}
#: The commands without ``-o json``, and why.
NO_FACTS: Mapping[str, str] = {
    "demo": "it shows other commands at work; `report` prints its result",
    "kubeconfig": "it prints a kubeconfig",
    "logs": "it prints the lines that programs wrote",
    "wait": "its exit code is the answer; `history` prints the operation",
    "serve": "it runs until it is stopped; `--log-format json` is for its log",
    "site bootstrap": "it prints a shell script",
    "upstream path": "it prints one path",
}
#: Models that have pages of their own.
_ELSEWHERE: Mapping[type[BaseModel], str] = {
    ControlPlane: "the resource, as `apply` reads it; without a name a `List` of them, unless there is just one plane",
    Site: "the resource, as `apply` reads it",
    KubernetesObject: "the object, as kubectl prints it",
    Probe: "[the probe's part of a report](../report-schema.md#probe), with times in Unix seconds and empty `samples`",
    Report: "[the report](../report-schema.md)",
}
_OPENING = """# JSON output

Every command that prints facts takes `-o json` and `-o yaml`, with the same fields. Commands that change something
print what was changed, once it is done. Progress and warnings go to standard error. A test checks the output of the
commands against these models; this page is made from `src/quarterdeck/api/output` and from
`scripts/pages/json_reference.py` (`PYTHONPATH=src:scripts python -m pages`).

- Names of fields are camelCase. Fields may be added; they do not change and are not removed.
- Times are RFC 3339 in UTC. Numbers are in base units, which their names end with: `durationSeconds`, `sizeBytes`.
- Text for people is only in `message`, `reason`, `reasons` and `nextStep`. It may change at any time.
- A field without a value is null. The models are in [json-planes.md](json-planes.md) and
  [json-operations.md](json-operations.md).
- `-o name` prints KIND/NAME, one on a line, for what has a name. A change prints its operation, or the thing that was
  changed where there is no operation.

## Commands
"""
_NO_FACTS = """
## Commands without JSON
"""
_MODELS = """# JSON models: {topic}

[json.md](json.md) has the commands that print these models, and the rules for names, times and numbers. This page is
made from `src/quarterdeck/api/output`; a test keeps both equal.
"""
_PLANES, _OPERATIONS = "json-planes.md", "json-operations.md"
#: The page of each module of models.
_PAGE: Mapping[str, str] = {
    backups.__name__: _OPERATIONS,
    base.__name__: _PLANES,
    controllers.__name__: _PLANES,
    planes.__name__: _PLANES,
    status.__name__: _PLANES,
    operations.__name__: _OPERATIONS,
    sites.__name__: _OPERATIONS,
}


def commands_page() -> str:
    """The page with all commands."""
    rows = [
        (f"`{' '.join(filter(None, (name, each.when)))}`", _linked(each), _named(each.model))
        for name, printed in OUTPUTS.items()
        for each in printed
    ]
    without = [(f"`{name}`", why) for name, why in NO_FACTS.items()]
    return "".join(
        (_OPENING, table(("command", "model", "`-o name`"), rows), _NO_FACTS, table(("command", "why"), without))
    )


def planes_page() -> str:
    """The models of planes and of their parts."""
    return _models_page("planes", _PLANES)


def operations_page() -> str:
    """The models of operations, of backups, of sites and of the host."""
    return _models_page("operations, backups and sites", _OPERATIONS)


def _models_page(topic: str, page: str) -> str:
    """Each model after the one that it is part of."""
    roots = dict.fromkeys(each.model for printed in OUTPUTS.values() for each in printed)
    models = dict.fromkeys(part for root in roots if root not in _ELSEWHERE for part in _with_parts(root))
    return "\n".join(
        (_MODELS.format(topic=topic), *(_model(each) for each in models if _PAGE[each.__module__] == page))
    )


def _linked(printed: Printed) -> str:
    model = printed.model
    if model in _ELSEWHERE:
        return _ELSEWHERE[model]
    link = _link(model)
    line = "a line for each change: " if model is WatchedStatus else ""
    return f"{line}list of {link}" if printed.many else f"{line}{link}"


def _link(model: type[BaseModel], page: str = "") -> str:
    """A link to a model from a page."""
    there = _PAGE[model.__module__]
    return f"[{model.__name__}]({'' if there == page else there}#{model.__name__.lower()})"


def _named(model: type[BaseModel]) -> str:
    named = issubclass(model, NamedOutput) and model is not WatchedStatus
    return "yes" if named or model in (ControlPlane, Site) else ""


def _with_parts(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    yield model
    for field in model.model_fields.values():
        for part in models_in(field.annotation):
            yield from _with_parts(part)


def _model(model: type[BaseModel]) -> str:
    meanings, page = comments(model), _PAGE[model.__module__]
    rows = [
        (f"`{field.alias}`", _words(field.annotation, page), meanings[name])
        for name, field in model.model_fields.items()
    ]
    return f"## {model.__name__}\n{summary(model)}\n\n{table(('field', 'type', 'meaning'), rows)}"


def _words(annotation: Any, page: str) -> str:
    """A type, as a page has it."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, UnionType):
        return " or ".join(_words(each, page) for each in arguments)
    if origin is tuple:
        return f"list of {_words(arguments[0], page)}"
    if origin is dict:
        return f"object of {_words(arguments[1], page)} by name"
    if arguments:  # an annotated type
        return _words(arguments[0], page)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return _link(annotation, page)
    return PLAIN.get(annotation) or "RFC 3339 time"
