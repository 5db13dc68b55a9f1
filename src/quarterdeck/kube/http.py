"""The kube port over HTTPS."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, aclosing
from dataclasses import dataclass, field, replace
from typing import TypeVar
from urllib.parse import quote

from pydantic import BaseModel, ValidationError

from quarterdeck.components.credentials import KeyPair
from quarterdeck.components.ports import LIVEZ, READYZ, READYZ_FOUNDED
from quarterdeck.components.settings import url
from quarterdeck.errors import TimedOut, Unavailable
from quarterdeck.http import Answer, Http, NoAnswer
from quarterdeck.kube.documents import (
    AccessReviewDocument,
    LeaseDocument,
    LeaseListDocument,
    StatusDocument,
    VersionDocument,
    WatchEvent,
)
from quarterdeck.kube.http_objects import HttpObjects
from quarterdeck.kube.port import Address, DeprecatedUse, HealthAnswer, SeenLease, Witness, WriteTrial
from quarterdeck.pki.tls import client_context

#: Deadlines in seconds: for health checks, which run several times a second, for all other calls, and for an idle
#: connection.
HEALTH_DEADLINE = 1.0
CALL_DEADLINE = 5.0
_DIAL_DEADLINE = 0.5

_LOADED = re.compile(
    r'^apiserver_authentication_config_controller_last_config_info\{[^}]*\bhash="([^"]+)"[^}]*\} 1$', re.MULTILINE
)
_DEPRECATED = re.compile(r"^apiserver_requested_deprecated_apis\{([^}]*)\} 1$", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="([^"]*)"')
_LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
_JSON = "application/json"
_EVERYBODY = "system:authenticated"
_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"

_Document = TypeVar("_Document", bound=BaseModel)


def _deprecated_use(labels: str) -> DeprecatedUse:
    """The labels of a metric."""
    found = dict(_LABEL.findall(labels))
    major, _, minor = found.get("removed_release", "").partition(".")
    return DeprecatedUse(
        group=found.get("group", ""),
        version=found.get("version", ""),
        resource=found.get("resource", ""),
        subresource=found.get("subresource", ""),
        removed=(int(major), int(minor)) if major.isdigit() and minor.isdigit() else None,
    )


class HttpKube(HttpObjects):
    """Real apiservers and controllers: ``authority`` (PEM) signed their certificates, ``client`` is the client
    certificate.

    Readiness is checked anonymously. ``health_deadline`` and ``call_deadline`` are in seconds: see ``Http.ask``.
    """

    def __init__(
        self,
        authority: bytes,
        client: KeyPair,
        *,
        health_deadline: float = HEALTH_DEADLINE,
        call_deadline: float = CALL_DEADLINE,
    ) -> None:
        self._health_deadline = health_deadline
        self._call_deadline = call_deadline
        self._authority, self._client = authority, client
        self._anonymous = Http(client_context(authority))
        self._manager = Http(client_context(authority, client))
        super().__init__(self._request)

    async def readyz(self, apiserver: Address, *, founded: bool = False, within: float | None = None) -> HealthAnswer:
        """See the port."""
        path = READYZ_FOUNDED if founded else READYZ
        return await self._health(self._anonymous, apiserver, path, within or self._health_deadline)

    async def ping(self, apiserver: Address) -> HealthAnswer:
        """See the port."""
        return await self._health(self._manager, apiserver, "/livez/ping", self._health_deadline)

    async def livez(self, apiserver: Address, *, within: float | None = None) -> HealthAnswer:
        """See the port. Checked anonymously."""
        return await self._health(self._anonymous, apiserver, LIVEZ, within or self._health_deadline)

    async def healthz(self, controller: Address, *, within: float | None = None) -> HealthAnswer:
        """See the port. Checked anonymously: that path needs no authorization."""
        return await self._health(self._anonymous, controller, "/healthz", within or self._health_deadline)

    async def listens(self, server: Address) -> bool | None:
        """See the port."""
        try:
            async with asyncio.timeout(_DIAL_DEADLINE):
                _, writer = await asyncio.open_connection(server.host, server.port)
        except TimeoutError:
            return None
        except OSError:
            return False
        writer.close()
        return True

    def witness(self, apiserver: Address) -> AbstractAsyncContextManager[Witness]:
        """See the port."""
        from quarterdeck.kube.witness import witness  # only for an apiserver that stops: h2 is not quick to load

        # Created here: planes that are only observed, as nearly all are, need none.
        tls, tls_http2 = (client_context(self._authority, self._client) for _ in range(2))
        tls_http2.set_alpn_protocols(["h2"])
        return witness(apiserver, tls, tls_http2)

    async def version(self, apiserver: Address) -> str:
        """See the port."""
        answer = await self._call("GET", apiserver, "/version")
        return _parsed(VersionDocument, answer, apiserver, "/version").release.removeprefix("v")

    async def loaded(self, apiserver: Address) -> str | None:
        """See the port. From its metrics (kubernetes: authenticationconfig/metrics)."""
        answer = await self._call("GET", apiserver, "/metrics")
        found = _LOADED.search(answer.text)
        return found[1] if found is not None else None

    async def deprecated_uses(self, apiserver: Address) -> tuple[DeprecatedUse, ...]:
        """See the port. From its metric (kubernetes: apiserver_requested_deprecated_apis, stable)."""
        answer = await self._call("GET", apiserver, "/metrics")
        return tuple(map(_deprecated_use, _DEPRECATED.findall(answer.text)))

    async def leads(self, controller: Address, lease: str) -> bool | None:
        """See the port. From its metric (client-go: leader_election_master_status)."""
        try:
            answer = await self._call("GET", controller, "/metrics")
        except Unavailable:
            return None
        if answer.status != 200:
            return None
        pattern = rf'^leader_election_master_status{{name="{re.escape(lease)}"}} ([01])$'
        found = re.search(pattern, answer.text, re.MULTILINE)
        return found is not None and found[1] == "1"

    async def leader_lease(self, apiserver: Address, name: str) -> SeenLease | None:
        """See the port."""
        answer = await self._call("GET", apiserver, f"{_LEASES}/{name}")
        if answer.status == 404:
            return None
        return _parsed(LeaseDocument, answer, apiserver, name).lease(answered_at=answer.date)

    def lease_changes(self, apiserver: Address) -> AsyncGenerator[SeenLease, None]:
        """See the port."""
        where = url(apiserver.host, apiserver.port)

        async def listed() -> LeaseListDocument:
            return _parsed(LeaseListDocument, await self._call("GET", apiserver, _LEASES), apiserver, _LEASES)

        def lines(version: str, seconds: int) -> AsyncGenerator[bytes, None]:
            path = f"{_LEASES}?watch=true&resourceVersion={quote(version)}&timeoutSeconds={seconds}"
            return self._manager.lines(where, path, deadline=self._call_deadline)

        return LeaseWatch(where=where, listed=listed, lines=lines, deadline=self._call_deadline).changes()

    async def may_hold(self, apiserver: Address, user: str, lease: str) -> bool:
        """See the port."""
        attributes = {"namespace": "kube-system", "group": "coordination.k8s.io", "resource": "leases", "name": lease}
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {"user": user, "groups": [_EVERYBODY], "resourceAttributes": {**attributes, "verb": "update"}},
        }
        headers = {"Content-Type": "application/json"}
        answer = await self._request("POST", apiserver, _REVIEWS, headers, json.dumps(review).encode())
        return _parsed(AccessReviewDocument, answer, apiserver, _REVIEWS).status.allowed

    async def try_lease(self, apiserver: Address, name: str, *, within: float) -> WriteTrial:
        """See the port. An annotation is written, since a write without a change might be skipped."""
        where = url(apiserver.host, apiserver.port)
        change: dict[str, object] = {"metadata": {"annotations": {"quarterdeck.dev/trial": "now"}}}
        made = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name}, "spec": {}}
        tries = (("PATCH", f"{_LEASES}/{name}", "application/merge-patch+json", change), ("POST", _LEASES, _JSON, made))
        answer = Answer(0, b"")
        try:
            async with asyncio.timeout(within):
                for method, path, kind, body in tries:
                    answer = await self._manager.ask(
                        method,
                        where,
                        f"{path}?dryRun=All",
                        deadline=within,
                        headers={"Content-Type": kind},
                        content=json.dumps(body).encode(),
                    )
                    if answer.status != 404:
                        break
        except TimeoutError:
            return WriteTrial(late=True)
        except NoAnswer as error:
            if error.late:
                return WriteTrial(late=True)
            raise Unavailable(f"trying to write lease {name} at {where}", _cause(error)) from error
        return WriteTrial(refusal="" if answer.status in (200, 201) else _refusal(answer))

    async def release_lease(self, apiserver: Address, name: str, holder: str) -> bool:
        """See the port. The resource version of the read is the precondition of the write."""
        lease = await self.leader_lease(apiserver, name)
        if lease is None or lease.holder != holder or not holder:
            return False
        patch = {
            "metadata": {"resourceVersion": lease.resource_version},
            "spec": {"holderIdentity": "", "leaseDurationSeconds": 1},
        }
        answer = await self._call("PATCH", apiserver, f"{_LEASES}/{name}", patch)
        if answer.status in (404, 409):
            return False
        _parsed(LeaseDocument, answer, apiserver, name)
        return True

    async def close(self) -> None:
        """See the port."""
        await self._anonymous.close()
        await self._manager.close()

    async def _health(self, client: Http, apiserver: Address, path: str, deadline: float) -> HealthAnswer:
        try:
            answer = await client.ask("GET", url(apiserver.host, apiserver.port), path, deadline=deadline)
        except NoAnswer as error:
            if error.late:
                return HealthAnswer(None, f"no answer within {deadline:g} s")
            return HealthAnswer(False if error.refused else None, _cause(error))
        if answer.status == 200:
            return HealthAnswer(True)
        return HealthAnswer(False, f"{answer.status}: {_failures(answer.text)}")

    async def _call(self, method: str, server: Address, path: str, patch: Mapping[str, object] | None = None) -> Answer:
        """One request. Raises Unavailable; the caller handles statuses."""
        headers = {"Content-Type": "application/merge-patch+json"} if patch is not None else {}
        content = json.dumps(patch).encode() if patch is not None else b""
        return await self._request(method, server, path, headers, content)

    async def _request(
        self, method: str, server: Address, path: str, headers: Mapping[str, str], content: bytes
    ) -> Answer:
        where = url(server.host, server.port)
        try:
            return await self._manager.ask(
                method, where, path, deadline=self._call_deadline, headers=headers, content=content
            )
        except NoAnswer as error:
            doing = f"calling {where} ({method} {path})"
            if error.late:
                raise TimedOut(doing, f"no answer within {self._call_deadline:g} s") from None
            raise Unavailable(doing, _cause(error)) from error


def _parsed(kind: type[_Document], answer: Answer, server: Address, what: str) -> _Document:
    if answer.status not in (200, 201):
        raise Unavailable(
            f"reading {what} from {url(server.host, server.port)}",
            f"it answered {answer.status}: {_first_failure(answer.text)}",
        )
    try:
        return kind.model_validate_json(answer.body)
    except ValidationError as error:
        raise Unavailable(
            f"parsing the answer of {url(server.host, server.port)} to {what}",
            str(error).replace("\n", " "),
        ) from error


def _refusal(answer: Answer) -> str:
    """Why an apiserver refused a write, in one line."""
    try:
        message = StatusDocument.model_validate_json(answer.body).message
    except ValidationError:
        message = _first_failure(answer.text)
    return " ".join(message.split()) or f"it answered {answer.status}"


def _cause(error: NoAnswer) -> str:
    return "connection refused" if error.refused else str(error)


def _failures(text: str) -> str:
    """One line of a health page: all checks that failed, if any are named."""
    failed = [line for line in text.splitlines() if line.startswith("[-]")]
    return "; ".join(failed) or _first_failure(text)


def _first_failure(text: str) -> str:
    """One line of a health page or a Status: the first failed check, if one is named."""
    lines = text.splitlines() or [""]
    return next((line for line in lines if line.startswith("[-]")), lines[0])[:200]


# Every change of the Leases in kube-system, over HTTPS: a list, and from there one watch after another.

#: Seconds for which one watch is open. An apiserver ends it then, so a watch that does not end is known to be silent.
WATCHED = 5
_EXPIRED = 410


class _Expired(Exception):
    """The start of the watch is too old for the apiserver."""


@dataclass(kw_only=True)
class LeaseWatch:
    """The watch of one apiserver; ``where`` names it. ``listed`` lists all of them, ``lines`` watches them from a
    resource version on for that many seconds; ``deadline`` (s) is how much later than that a line may come.
    """

    where: str
    listed: Callable[[], Awaitable[LeaseListDocument]]
    lines: Callable[[str, int], AsyncGenerator[bytes, None]]
    deadline: float
    _known: dict[str, SeenLease] = field(default_factory=dict)

    async def changes(self) -> AsyncGenerator[SeenLease, None]:
        """See ``Kube.lease_changes``."""
        version = ""
        while True:
            if not version:
                found = await self.listed()
                version = found.metadata.resource_version
                for each in self._as_listed(found):
                    yield each
            before = version
            try:
                async with aclosing(self._lines(version)) as lines:
                    async for line in lines:
                        seen = self._event(line)
                        version = seen.resource_version
                        yield seen
            except _Expired:
                version = ""
            if version == before:
                version = ""  # an apiserver without its etcd serves watches, but no lists

    def _as_listed(self, found: LeaseListDocument) -> list[SeenLease]:
        there = {each.metadata.name: each.lease() for each in found.items}
        gone = [replace(each, deleted=True) for name, each in self._known.items() if name not in there]
        self._known = there
        return [*gone, *there.values()]

    async def _lines(self, version: str) -> AsyncGenerator[bytes, None]:
        """The lines of one watch, read only on demand."""
        lines = self.lines(version, WATCHED)
        try:
            while True:
                try:
                    async with asyncio.timeout(WATCHED + self.deadline):
                        line = await anext(lines, None)
                except TimeoutError:
                    raise TimedOut(self._doing, f"nothing for {WATCHED + self.deadline:g} s") from None
                except NoAnswer as error:
                    raise Unavailable(self._doing, "connection refused" if error.refused else str(error)) from error
                if line is None:
                    return
                yield line
        finally:
            await lines.aclose()

    def _event(self, line: bytes) -> SeenLease:
        """The content of an event. Raises _Expired, Unavailable."""
        try:
            event = WatchEvent.model_validate_json(line)
            if event.type == "ERROR":
                status = StatusDocument.model_validate(event.object)
                if status.code == _EXPIRED:
                    raise _Expired
                raise Unavailable(self._doing, f"it answered {status.code}: {status.message}")
            seen = LeaseDocument.model_validate(event.object).lease(deleted=event.type == "DELETED")
        except ValidationError as error:
            raise Unavailable(self._doing, str(error).replace("\n", " ")) from error
        if seen.deleted:
            self._known.pop(seen.name, None)
        else:
            self._known[seen.name] = seen
        return seen

    @property
    def _doing(self) -> str:
        return f"watching the leases of {self.where}"
