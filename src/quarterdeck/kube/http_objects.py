"""Objects of any kind over HTTPS. No client library: only six requests are needed, over the connections, with the
deadlines and the in-memory certificates of all other calls to apiservers.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from urllib.parse import quote

from pydantic import JsonValue

from quarterdeck.errors import Unavailable
from quarterdeck.http import Answer
from quarterdeck.kube.port import Address, ApiResource, Discovered, Meta, Refusal, Refused

_DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
#: An aggregated apiserver may support none of these: then it answers with whole objects, and the rest is ignored.
_METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
_METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
_APPLY = "application/apply-patch+yaml"
_LISTED = 500  # objects of a page
_LONGEST = 300
#: An apiserver's errors for a failed precondition, for a denial by a policy or webhook, and (as a separate error) for
#: an object with fields that its kind does not have.
_OTHER_UID = "the UID in the precondition"
_DENIED = re.compile(r"ValidatingAdmissionPolicy '|admission webhook \"")
_NO_SUCH_FIELD = "failed to create typed patch object"

#: The function that makes one request: method, server, path, headers, content.
Ask = Callable[[str, Address, str, Mapping[str, str], bytes], Awaitable[Answer]]


class HttpObjects:
    """The half of the port that is about objects."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    async def discover(self, apiserver: Address) -> Discovered:
        """See the port: aggregated discovery, one call for upstream's first group and one for all others."""
        found: list[ApiResource] = []
        silent: set[tuple[str, str]] = set()
        for path in ("/api", "/apis"):
            answer = await self._ask("GET", apiserver, path, {"Accept": _DISCOVERY}, b"")
            for group in _items(_document(answer, path).get("items")):
                name = _text(_mapping(group.get("metadata")).get("name"))
                for version in _items(group.get("versions")):
                    served = _text(version.get("version"))
                    if version.get("freshness") == "Stale":
                        silent.add((name, served))
                    found += [each for each in map(_resource(name, served), _items(version.get("resources"))) if each]
        return Discovered(tuple(found), frozenset(silent))

    async def read(self, apiserver: Address, path: str) -> JsonValue:
        """See the port."""
        answer = await self._ask("GET", apiserver, path, {"Accept": "application/json"}, b"")
        return None if answer.status == 404 else dict(_document(answer, path))

    async def metadata(self, apiserver: Address, resource: ApiResource, selector: str) -> tuple[Meta, ...]:
        """See the port."""
        base = f"{resource.path()}?limit={_LISTED}&labelSelector={quote(selector)}"
        found: list[Meta] = []
        more = ""
        while True:
            path = base + (f"&continue={quote(more)}" if more else "")
            answer = await self._ask("GET", apiserver, path, {"Accept": _METADATA_LIST}, b"")
            if answer.status == 404:
                return ()
            page = _document(answer, resource.path())
            found += [_meta(each) for each in _items(page.get("items"))]
            more = _text(_mapping(page.get("metadata")).get("continue"))
            if not more:
                return tuple(found)

    async def apply(
        self, apiserver: Address, path: str, manifest: Mapping[str, JsonValue], *, manager: str, force: bool = False
    ) -> Meta:
        """See the port."""
        query = f"fieldManager={quote(manager)}&force={str(force).lower()}"
        return _meta(await self._applied(apiserver, path, query, manifest, accept=_METADATA))

    async def preview(
        self, apiserver: Address, path: str, manifest: Mapping[str, JsonValue], *, manager: str
    ) -> JsonValue:
        """See the port."""
        query = f"fieldManager={quote(manager)}&force=true&dryRun=All"
        return dict(await self._applied(apiserver, path, query, manifest, accept="application/json"))

    async def _applied(
        self, apiserver: Address, path: str, query: str, manifest: Mapping[str, JsonValue], *, accept: str
    ) -> Mapping[str, JsonValue]:
        headers = {"Accept": accept, "Content-Type": _APPLY}
        # JSON is YAML; the apiserver reports text that is not Unicode.
        content = json.dumps(manifest).encode()
        answer = await self._ask("PATCH", apiserver, f"{path}?{query}&fieldValidation=Strict", headers, content)
        if answer.status not in (200, 201):
            raise _refused(answer, "applying", path, manifest=manifest)
        return _document(answer, path)

    async def rewrite(self, apiserver: Address, path: str) -> bool:
        """See the port. An update without a change is stored only where that matters (kubernetes: storage/etcd3)."""
        headers = {"Accept": _METADATA, "Content-Type": "application/merge-patch+json"}
        answer = await self._ask("PATCH", apiserver, path, headers, b"{}")
        if answer.status == 404:
            return False
        if answer.status != 200:
            raise _refused(answer, "writing", path)
        return True

    async def delete(self, apiserver: Address, path: str, *, uid: str) -> bool:
        """See the port."""
        options = {"propagationPolicy": "Background", "preconditions": {"uid": uid}}
        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        answer = await self._ask("DELETE", apiserver, path, headers, json.dumps(options).encode())
        if answer.status == 404:
            return False
        if answer.status == 409 and _OTHER_UID in answer.text:
            return False  # another object of that name by now, which must not be deleted
        if answer.status not in (200, 202):
            raise _refused(answer, "deleting", path)
        return True


def _resource(group: str, version: str) -> Callable[[Mapping[str, JsonValue]], ApiResource | None]:
    def made(entry: Mapping[str, JsonValue]) -> ApiResource | None:
        kind = _text(_mapping(entry.get("responseKind")).get("kind"))
        verbs = entry.get("verbs")
        if not kind or not isinstance(verbs, list) or "patch" not in verbs:
            return None  # kinds that cannot be applied: reviews, read-only ones
        short = entry.get("shortNames")
        return ApiResource(
            group,
            version,
            kind,
            _text(entry.get("resource")),
            entry.get("scope") == "Namespaced",
            singular=_text(entry.get("singularResource")),
            short_names=tuple(map(_text, short)) if isinstance(short, list) else (),
        )

    return made


def _meta(document: Mapping[str, JsonValue]) -> Meta:
    metadata = _mapping(document.get("metadata"))
    return Meta(
        namespace=_text(metadata.get("namespace")),
        name=_text(metadata.get("name")),
        uid=_text(metadata.get("uid")),
        labels={key: _text(value) for key, value in _mapping(metadata.get("labels")).items()},
        annotations={key: _text(value) for key, value in _mapping(metadata.get("annotations")).items()},
        managed=metadata.get("managedFields"),
        deleting=metadata.get("deletionTimestamp") is not None,
    )


def _without_secret(message: str, manifest: Mapping[str, JsonValue]) -> str:
    """The safe part of a message about a Secret: that of a denial by a policy or a webhook, without the Secret's
    values. Validation quotes what it finds invalid.
    """
    if not _DENIED.search(message):
        return ""
    values = {_text(each) for field in ("data", "stringData") for each in _mapping(manifest.get(field)).values()}
    for each in tuple(values):
        with suppress(ValueError):
            values.add(base64.b64decode(each, validate=True).decode())
    for each in sorted(filter(None, values), key=len, reverse=True):
        for written in (each, json.dumps(each)[1:-1]):
            message = message.replace(written, "(hidden)")
    return message


def _refused(answer: Answer, doing: str, path: str, *, manifest: Mapping[str, JsonValue] | None = None) -> Refused:
    """The meaning of an answer that is not a success. An error about a Secret (``manifest``) may contain its values."""
    status = _parsed(answer)
    details = _mapping(status.get("details"))
    causes = _items(details.get("causes"))
    message = " ".join(_text(status.get("message")).split())
    owned = [each for each in causes if each.get("reason") == "FieldManagerConflict"]
    doing = f"{doing} {path}"
    if answer.status == 409 and owned:
        owners = ", ".join(sorted({_text(each.get("message")).removeprefix("conflict with ") for each in owned}))
        fields = [_text(each.get("field")) for each in owned]
        return Refused(doing, f"{owners} owns {', '.join(fields[:3])}", Refusal.OWNED, fields=fields, owners=owners)
    terminating = any(each.get("reason") == "NamespaceTerminating" for each in causes)
    never = answer.status in (400, 405, 413, 415, 422) or (answer.status == 403 and not terminating)
    never = never or _NO_SUCH_FIELD in message
    if never and manifest is not None and manifest.get("kind") == "Secret":
        message = _without_secret(message, manifest)
    words = f": {message[:_LONGEST]}" if message else ""
    why = Refusal.INVALID if never else Refusal.LATER
    return Refused(doing, f"{_text(status.get('reason')) or 'it answered'} ({answer.status}){words}", why)


def _document(answer: Answer, what: str) -> Mapping[str, JsonValue]:
    """An answer that must be a success. Raises Unavailable."""
    if answer.status not in (200, 201):
        message = " ".join(_text(_parsed(answer).get("message")).split())[:_LONGEST]
        raise Unavailable(f"reading {what} from an apiserver", f"it answered {answer.status}: {message}")
    found = _parsed(answer)
    if not found:
        raise Unavailable(f"reading {what} from an apiserver", "its answer is not an object")
    return found


def _parsed(answer: Answer) -> Mapping[str, JsonValue]:
    try:
        return _mapping(json.loads(answer.body))
    except ValueError:
        return {}


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else ""


def _mapping(value: JsonValue) -> Mapping[str, JsonValue]:
    return value if isinstance(value, dict) else {}


def _items(value: JsonValue) -> list[Mapping[str, JsonValue]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
