"""What controllers did, read from lines of audit logs (audit.k8s.io/v1 Event, one JSON document a line)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, JsonValue, ValidationError
from pydantic.alias_generators import to_camel

from quarterdeck.api.plane.controllers import ControllerProgram, ControllerSetSpec
from quarterdeck.handover.clients import ApiWrite, client_of, writers

_ACCOUNT = "system:serviceaccount:kube-system:"
_USERS = {f"system:{manager.value}": manager for manager in ControllerProgram}
_VERBS = frozenset({"create", "update", "patch", "delete", "deletecollection"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """A write that an apiserver acknowledged. ``controllers``: the possible controllers, by name; one, if the log shows
    it. The process is the ``component`` of ``replica`` ("": unknown), whose apiserver wrote the log. ``begun`` and
    ``at``: when the request arrived and when it was answered (seconds since the epoch, by the apiserver's clock).
    ``object``: such as ``nodes/worker-1`` or ``services/status default/web``.
    """

    controllers: tuple[str, ...]
    component: ControllerProgram
    replica: str
    begun: float
    at: float
    verb: str
    object: str

    @property
    def process(self) -> tuple[str, str]:
        """The process: one per replica runs at a time."""
        return self.component.value, self.replica

    @property
    def description(self) -> str:
        """The process, in words."""
        return f"{self.component} of {self.replica or 'an unknown replica'}"


@dataclass(frozen=True, slots=True)
class ParsedAudit:
    """The parsed lines. ``unreadable``: how many of them are not events."""

    acts: tuple[Act, ...]
    unreadable: int = 0


class _AuditPart(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, extra="ignore", frozen=True)


class _AuditUser(_AuditPart):
    username: str = ""


class _Object(_AuditPart):
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""

    @property
    def kind(self) -> str:
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource

    @property
    def words(self) -> str:
        name = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.kind} {name}" if self.subresource or self.namespace else f"{self.kind}/{name}"


class _Answer(_AuditPart):
    code: int = 0


class _Event(_AuditPart):
    stage: str
    verb: str
    user: _AuditUser
    user_agent: str = ""
    object_ref: _Object | None = None
    response_status: _Answer | None = None
    request_object: JsonValue = None
    received: AwareDatetime = Field(alias="requestReceivedTimestamp")
    answered: AwareDatetime = Field(alias="stageTimestamp")

    @property
    def acknowledged(self) -> bool:
        code = self.response_status.code if self.response_status is not None else 0
        return self.stage == "ResponseComplete" and self.verb in _VERBS and 200 <= code < 300


def texts_of(sets: Iterable[ControllerSetSpec]) -> tuple[str, ...]:
    """Texts of which each relevant line of an audit log has one, for controllers of these sets."""
    clients = {client_of(name) for each in sets for name in each.controllers}
    accounts = (f'"{_ACCOUNT}{client}"' for client in clients)
    return tuple(sorted({*accounts, *(f'"{user}"' for user in _USERS)}))


def read(lines: Iterable[str], replica_at: Callable[[float], str]) -> ParsedAudit:
    """The acts of controllers that an apiserver's audit log has, in the order of the lines. ``replica_at`` says whose
    apiserver it was at a time ("": that is not known).
    """
    acts, unreadable = [], 0
    for line in lines:
        try:
            event = _Event.model_validate_json(line)
        except ValidationError:
            unreadable += 1
            continue
        if (act := _act(event, replica_at(event.answered.timestamp()))) is not None:
            acts.append(act)
    return ParsedAudit(tuple(acts), unreadable)


def _act(event: _Event, replica: str) -> Act | None:
    manager, seen = _manager(event), event.object_ref
    if manager is None or seen is None or not event.acknowledged:
        return None
    user = event.user.username
    client = user.removeprefix(_ACCOUNT) if user.startswith(_ACCOUNT) else event.user_agent.rpartition("/")[2]
    write = ApiWrite(
        manager=manager, client=client, verb=event.verb, resource=seen.kind, sets=_fields(event.request_object)
    )
    found = writers(write)
    if not found:
        return None
    return Act(
        controllers=tuple(sorted(found)),
        component=manager,
        replica=replica,
        begun=event.received.timestamp(),
        at=event.answered.timestamp(),
        verb=event.verb,
        object=seen.words,
    )


def _manager(event: _Event) -> ControllerProgram | None:
    """The manager of a request. Both managers use the same service accounts, and differ by their program names."""
    user = event.user.username
    if not user.startswith(_ACCOUNT):
        return _USERS.get(user)
    program = event.user_agent.partition("/")[0]
    return ControllerProgram.KUBE if program == ControllerProgram.KUBE.value else ControllerProgram.CLOUD


def _fields(body: JsonValue) -> frozenset[str] | None:
    """The fields of the spec that a body has; None where there is no body."""
    if body is None:
        return None
    spec = body.get("spec") if isinstance(body, dict) else None
    return frozenset(spec) if isinstance(spec, dict) else frozenset()
