"""Locks in the Lease API (coordination.k8s.io/v1), compatible with client-go's leader election."""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from typing_extensions import override

from quarterdeck.errors import Conflict, InvalidInput, TimedOut, Unavailable
from quarterdeck.http import Answer, Http, NoAnswer
from quarterdeck.leases.record import Record
from quarterdeck.leases.store import LockStore

#: Seconds: for a call, and for one watch before it is reopened, so that none hangs on a dead connection.
_DEADLINE = 4.0
_WATCHED = 30
_EXPIRED = 410
_JSON = {"Accept": "application/json", "Content-Type": "application/json"}
_PATCH = {"Accept": "application/json", "Content-Type": "application/merge-patch+json"}


class KubeLocks(LockStore):
    """A ``LockStore`` over one apiserver, or over the endpoint of several. A lock is a Lease of its name.

    The holder needs get, create, patch and watch on leases in the namespace. Close it.
    """

    def __init__(
        self,
        server: str,
        tls: ssl.SSLContext | None,
        *,
        namespace: str = "kube-system",
        token: Callable[[], str] = lambda: "",
    ) -> None:
        """``server``: ``https://host:port``. ``token``: read before each call, since those of pods are renewed."""
        self._server = server
        self._http = Http(tls)
        self._token = token
        self._leases = f"/apis/coordination.k8s.io/v1/namespaces/{quote(namespace)}/leases"

    @override
    async def read(self, name: str) -> Record | None:
        """See ``LockStore``. Without a resource version the apiserver reads the newest from etcd."""
        answer = await self.ask("GET", f"{self._leases}/{quote(name)}")
        return None if answer.status == 404 else self._record(answer, name)

    @override
    async def create(self, name: str, record: Record) -> Record:
        body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", **lease(name, record)}
        answer = await self.ask("POST", self._leases, body)
        if answer.status == 409:
            raise Conflict(f"creating lease {name!r}", "it exists already")
        return self._record(answer, name)

    @override
    async def update(self, name: str, record: Record) -> Record:
        """See ``LockStore``. Fields of other writers stay."""
        answer = await self.ask("PATCH", f"{self._leases}/{quote(name)}", lease(name, record))
        if answer.status in (404, 409):
            raise Conflict(f"writing lease {name!r}", "another process wrote it first, or deleted it")
        return self._record(answer, name)

    @override
    async def changed(self, name: str, version: str) -> Record | None:
        if not version and (found := await self.read(name)) is not None:
            return found
        while True:
            watch = (
                f"{self._leases}?watch=true&fieldSelector=metadata.name%3D{quote(name)}"
                f"&resourceVersion={quote(version)}&timeoutSeconds={_WATCHED}"
            )
            event = await self._event(watch, name)
            if event is not None and event.type == "DELETED":
                return None
            if event is not None and event.type in ("ADDED", "MODIFIED"):
                return record(event.object)
            if event is not None and event.code != _EXPIRED:
                raise Unavailable(f"watching lease {name!r}", event.message or event.type)
            found = await self.read(name)
            if (found.version if found is not None else "") != version:
                return found

    async def ask(self, method: str, path: str, body: Mapping[str, object] | None = None) -> Answer:
        """One call of the apiserver, for other needs of a controller, too; a PATCH merges. Raises Unavailable; the
        caller handles statuses.
        """
        content = json.dumps(body).encode() if body is not None else b""
        headers = self._headers(_PATCH if method == "PATCH" else _JSON)
        try:
            return await self._http.ask(
                method, self._server, path, deadline=_DEADLINE, headers=headers, content=content
            )
        except NoAnswer as error:
            doing = f"calling {self._server} ({method} {path})"
            if error.late:
                raise TimedOut(doing, str(error)) from error
            raise Unavailable(doing, "connection refused" if error.refused else str(error)) from error

    async def close(self) -> None:
        """Close all connections."""
        await self._http.close()

    async def _event(self, path: str, name: str) -> WatchedLock | None:
        """The first event of a watch; None if it ended without one."""
        try:
            async for line in self._http.lines(self._server, path, deadline=_DEADLINE, headers=self._headers(_JSON)):
                return WatchedLock.model_validate_json(line)
        except NoAnswer as error:
            raise Unavailable(f"watching lease {name!r}", str(error)) from error
        except ValidationError as error:
            raise Unavailable(f"watching lease {name!r}", str(error).replace("\n", " ")) from error
        return None

    def _headers(self, headers: Mapping[str, str]) -> Mapping[str, str]:
        try:
            token = self._token()
        except OSError as error:
            raise Unavailable(f"reading the token for {self._server}", str(error)) from error
        return {**headers, "Authorization": f"Bearer {token}"} if token else headers

    def _record(self, answer: Answer, name: str) -> Record:
        doing = f"reading or writing lease {name!r} at {self._server}"
        if answer.status == 422:
            raise InvalidInput(doing, f"it answered 422: {answer.text[:300]}")
        if answer.status not in (200, 201):
            next_step = "may this client get, create, patch and watch leases there?" if answer.status == 403 else ""
            raise Unavailable(doing, f"it answered {answer.status}: {answer.text[:300]}", next_step)
        try:
            return record(LockDocument.model_validate_json(answer.body))
        except ValidationError as error:
            raise Unavailable(doing, str(error).replace("\n", " ")) from error


# The Lease of a lock: its spec as client-go writes it, and all else in annotations, which client-go leaves unchanged.

_ABOUT = "leases.quarterdeck.dev"
CONTROLLERS = f"{_ABOUT}/controllers"
ASKED_BY = f"{_ABOUT}/asked-by"
ANSWERS = f"{_ABOUT}/answers"
PRECEDENCE = f"{_ABOUT}/precedence"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class _LockPart(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class LockMeta(_LockPart):
    """The fields that are read of the metadata."""

    name: str = ""
    version: str = Field(default="", alias="resourceVersion")
    annotations: dict[str, str] = Field(default_factory=dict)


class LockLeaseSpec(_LockPart):
    """LeaseSpec."""

    holder: str | None = Field(default=None, alias="holderIdentity")
    duration: int | None = Field(default=None, alias="leaseDurationSeconds")
    acquired: datetime | None = Field(default=None, alias="acquireTime")
    renewed: datetime | None = Field(default=None, alias="renewTime")
    transitions: int | None = Field(default=None, alias="leaseTransitions")


class LockDocument(_LockPart):
    """A Lease; or, of an event that is an error, a Status."""

    metadata: LockMeta = LockMeta()
    spec: LockLeaseSpec = LockLeaseSpec()
    code: int = 0
    message: str = ""


class WatchedLock(_LockPart):
    """An event of a watch."""

    type: str
    object: LockDocument

    @property
    def code(self) -> int:
        """Of an error: its HTTP status."""
        return self.object.code

    @property
    def message(self) -> str:
        """Of an error: its message."""
        return self.object.message


def record(document: LockDocument) -> Record:
    """The record of a Lease."""
    spec, annotations = document.spec, document.metadata.annotations
    precedence = annotations.get(PRECEDENCE, "")
    return Record(
        holder=spec.holder or "",
        duration=float(spec.duration or 0),
        acquired=_microseconds(spec.acquired),
        renewed=_microseconds(spec.renewed),
        transitions=spec.transitions or 0,
        controllers=tuple(filter(None, annotations.get(CONTROLLERS, "").split(","))),
        asked_by=annotations.get(ASKED_BY, ""),
        answers=annotations.get(ANSWERS, ""),
        precedence=int(precedence) if precedence.lstrip("-").isdecimal() else 0,
        version=document.metadata.version,
    )


def lease(name: str, record: Record) -> dict[str, object]:
    """The metadata and the spec of a Lease, to create it, or to merge into the one of the record's version.

    Raises InvalidInput for a duration that is not a whole number of seconds.
    """
    if record.duration != int(record.duration):
        raise InvalidInput(
            f"writing lease {name!r}", f"it would last {record.duration:g} s", "use whole seconds over the Lease API"
        )
    annotations = {
        CONTROLLERS: ",".join(record.controllers),
        ASKED_BY: record.asked_by,
        ANSWERS: record.answers,
        PRECEDENCE: str(record.precedence) if record.precedence else "",
    }
    metadata: dict[str, object] = {"name": name}
    if record.version:
        metadata["resourceVersion"] = record.version
        metadata["annotations"] = {key: value or None for key, value in annotations.items()}
    else:
        metadata["annotations"] = {key: value for key, value in annotations.items() if value}
    spec = {
        "holderIdentity": record.holder,
        "leaseDurationSeconds": int(record.duration),
        "acquireTime": _written(record.acquired),
        "renewTime": _written(record.renewed),
        "leaseTransitions": record.transitions,
    }
    return {"metadata": metadata, "spec": spec}


def _microseconds(time: datetime | None) -> int:
    return 0 if time is None else (time - _EPOCH) // _MICROSECOND


def _written(microseconds: int) -> str:
    """As metav1.MicroTime: six digits, always."""
    time = _EPOCH + timedelta(microseconds=microseconds)
    return time.strftime("%Y-%m-%dT%H:%M:%S.") + f"{time.microsecond:06d}Z"
