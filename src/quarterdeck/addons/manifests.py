"""Manifests as people write them: YAML of many documents, or JSON; what is none is said with document and line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pydantic import JsonValue

from quarterdeck.addons.objects import Manifest
from quarterdeck.api.names import shortened
from quarterdeck.errors import InvalidInput

if TYPE_CHECKING:
    import yaml

#: What the apiserver writes, and nobody declares.
_ITS_OWN = ("managedFields", "resourceVersion", "uid", "generation", "creationTimestamp", "selfLink")
#: What YAML 1.1 takes for more than Kubernetes' own readers do: ``=``, dates, and 12:30 as a number of base 60.
_TEXT = ("tag:yaml.org,2002:value", "tag:yaml.org,2002:timestamp")
_BASE_60 = re.compile(r"[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?")


def parsed(text: str, source: str) -> tuple[Manifest, ...]:
    """All objects in a text, those of a List each by itself. ``source`` is what to call it in errors.

    Raises InvalidInput that names the document and the line.
    """
    found: list[Manifest] = []
    for place, document in _documents(text, source):
        for number, each in enumerate(_flat(document), start=1):
            where = place if each is document else f"{place}, item {number}"
            found.append(_checked(each, where))
    return tuple(found)


def _flat(document: JsonValue) -> Iterator[JsonValue]:
    if isinstance(document, dict) and str(document.get("kind", "")).endswith("List"):
        listed = document.get("items")
        if isinstance(listed, list):
            yield from listed
            return
    yield document


def _checked(document: JsonValue, place: str) -> Manifest:
    doing = f"reading {place}"
    if not isinstance(document, dict):
        raise InvalidInput(doing, f"an object must be a mapping, not {type(document).__name__}")
    for field in ("apiVersion", "kind"):
        value = document.get(field)
        if not isinstance(value, str) or not value:
            seen = "required, but missing" if value is None else f"{shortened(value)} is no text"
            raise InvalidInput(doing, f"{field}: {seen}")
    metadata = document.get("metadata")
    if not isinstance(metadata, dict):
        raise InvalidInput(doing, f"metadata: required, but missing in this {document['kind']}")
    for field in ("name", "namespace"):
        value = metadata.get(field)
        if value is None and field == "namespace":
            continue
        if not isinstance(value, str) or not value or "/" in value:
            seen = "required, but missing" if value is None else f"{shortened(value)} is no name"
            raise InvalidInput(doing, f"metadata.{field}: {seen} in this {document['kind']}")
    for field in ("labels", "annotations"):
        if not isinstance(metadata.get(field, {}), dict | None):
            raise InvalidInput(doing, f"metadata.{field}: must be a mapping")
    plain: dict[str, JsonValue] = {key: value for key, value in document.items() if key != "status"}
    plain["metadata"] = {key: value for key, value in metadata.items() if key not in _ITS_OWN and value is not None}
    return plain


def _documents(text: str, source: str) -> Iterator[tuple[str, JsonValue]]:
    """Each document, with what to call its place."""
    if text.lstrip().startswith(("{", "[")):
        try:
            yield source, json.loads(text)
        except json.JSONDecodeError:
            pass  # YAML has braces and brackets too; if it is neither, YAML's error tells more
        except RecursionError as error:
            raise InvalidInput(f"reading {source}", "it is nested too deeply") from error
        else:
            return
    yield from _yaml_documents(text, source)


def _yaml_documents(text: str, source: str) -> Iterator[tuple[str, JsonValue]]:
    import yaml

    loader, number = _loader(yaml, text, source), 0
    try:
        while loader.check_node():
            number += 1
            node = loader.get_node()
            document = loader.construct_document(node)
            if document is not None:
                line = node.start_mark.line + 1 if node is not None else 1
                yield f"{source}, document {number} (line {line})", _plain(document, source, number)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = f", line {mark.line + 1}, column {mark.column + 1}" if mark is not None else ""
        seen = " ".join((error.problem or error.context or "it is no YAML").split())
        raise InvalidInput(f"reading {source}, document {max(number, 1)}{line}", f"not valid YAML: {seen}") from error
    except yaml.YAMLError as error:
        seen = " ".join(str(error).split())
        raise InvalidInput(f"reading {source}, document {max(number, 1)}", f"not valid YAML: {seen}") from error
    except RecursionError as error:
        raise InvalidInput(f"reading {source}, document {max(number, 1)}", "it is nested too deeply") from error
    finally:
        loader.dispose()


def _plain(document: Any, source: str, number: int) -> JsonValue:
    """What YAML may hold and JSON does not is refused: keys that are no text, numbers that are none, binary data."""
    try:
        plain: JsonValue = json.loads(json.dumps(document, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        seen = f"it holds what JSON cannot: {error}"
        raise InvalidInput(f"reading {source}, document {number}", seen) from error
    return plain


def _loader(library: Any, text: str, source: str) -> yaml.SafeLoader:
    """A loader of the fast kind where there is one: definitions of kinds have megabytes."""
    base = getattr(library, "CSafeLoader", library.SafeLoader)

    class Loader(base):  # type: ignore[misc,valid-type]
        """YAML as Kubernetes reads it; a key that is there twice is refused."""

        def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
            seen: set[object] = set()
            for key, _ in node.value:
                if isinstance(key, library.ScalarNode) and key.tag != "tag:yaml.org,2002:merge":
                    if key.value in seen:
                        raise library.constructor.ConstructorError(
                            None, None, f"{key.value!r} is there twice in one mapping", key.start_mark
                        )
                    seen.add(key.value)
            made: dict[Any, Any] = super().construct_mapping(node, deep=deep)
            return made

        def construct_number(self, node: Any) -> object:
            value = str(self.construct_scalar(node))
            if _BASE_60.fullmatch(value):
                return value
            kind = library.constructor.SafeConstructor
            return (
                kind.construct_yaml_int(self, node)
                if node.tag.endswith(":int")
                else kind.construct_yaml_float(self, node)
            )

    Loader.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag not in _TEXT]
        for first, resolvers in base.yaml_implicit_resolvers.items()
    }
    Loader.add_constructor("tag:yaml.org,2002:int", Loader.construct_number)
    Loader.add_constructor("tag:yaml.org,2002:float", Loader.construct_number)
    try:
        made: yaml.SafeLoader = Loader(text)
    except library.YAMLError as error:  # characters that YAML does not allow are found before anything is read
        raise InvalidInput(f"reading {source}", f"not valid YAML: {' '.join(str(error).split())}") from error
    return made
