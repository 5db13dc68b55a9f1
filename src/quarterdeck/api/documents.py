"""Resources as documents: YAML with several documents, or JSON (one object, or a List of them)."""

from __future__ import annotations

import difflib
import json
from collections.abc import Hashable, Sequence
from typing import Any, TypeAlias, TypeVar

import yaml
from pydantic import JsonValue

from quarterdeck.api.base import API_VERSION, Model, R, Resource
from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.errors import explained
from quarterdeck.api.names import shortened
from quarterdeck.api.operation import Operation
from quarterdeck.api.site import Site
from quarterdeck.errors import InvalidInput

M = TypeVar("M", bound=Model)

#: What users declare and read.
Declared: TypeAlias = ControlPlane | Site | Operation
DECLARED: tuple[type[Declared], ...] = (ControlPlane, Site, Operation)


def load(text: str, source: str) -> tuple[Declared, ...]:
    """All resources in ``text``, which is YAML or JSON; ``source`` is what to call it in errors.

    Raises InvalidInput that names every problem of the first bad document, with its path.
    """
    documents = _documents(text, f"reading {source}")
    if not documents:
        raise InvalidInput(f"reading {source}", "there is no resource in it")
    resources: list[Declared] = []
    for number, document in enumerate(documents, start=1):
        place = source if len(documents) == 1 else f"document {number} of {source}"
        resource = _declared(document, place)
        if any(each.kind == resource.kind and each.name == resource.name for each in resources):
            raise InvalidInput(f"reading {place}", f"{resource.kind} {resource.name!r} was there before")
        resources.append(resource)
    return tuple(resources)


def parse(kind: type[R], document: JsonValue, doing: str) -> R:
    """A resource from plain data in the documents' own spelling. Raises InvalidInput."""
    return parse_part(kind, document, doing)


def parse_part(kind: type[M], document: JsonValue, doing: str) -> M:
    """``parse`` for what is no resource. Raises InvalidInput."""
    try:
        text = json.dumps(document)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(doing, f"it holds what JSON cannot: {error}") from error
    with explained(doing, kind):
        return kind.model_validate_json(text, by_alias=True, by_name=False)


def single(text: str, doing: str) -> JsonValue:
    """The only document in a text. Raises InvalidInput."""
    found = [document for document in _parsed(text, doing) if document is not None]
    if len(found) != 1:
        raise InvalidInput(
            doing, "there is nothing in it" if not found else f"{len(found)} documents are in it, not one"
        )
    return found[0]


def dump_yaml(resources: Sequence[Resource]) -> str:
    """YAML that ``load`` reads back, one document for each resource."""
    return yaml.safe_dump_all(
        [_plain(resource) for resource in resources], sort_keys=False, allow_unicode=True, width=110
    )


def dump_json(resources: Sequence[Resource]) -> str:
    """JSON that ``load`` reads back: the object if there is one resource, else a List."""
    if len(resources) == 1:
        return json.dumps(_plain(resources[0]), indent=2, ensure_ascii=False) + "\n"
    items = [_plain(resource) for resource in resources]
    listed = {"apiVersion": "v1", "kind": "List", "items": items}
    return json.dumps(listed, indent=2, ensure_ascii=False) + "\n"


def _plain(resource: Resource) -> JsonValue:
    plain: dict[str, JsonValue] = resource.model_dump(mode="json", exclude_none=True)
    return {"apiVersion": plain["apiVersion"], "kind": plain["kind"], **plain}


def _declared(document: JsonValue, place: str) -> Declared:
    doing = f"reading {place}"
    if not isinstance(document, dict):
        raise InvalidInput(doing, f"a resource must be a mapping, not {shortened(document)}")
    kinds = {each.__name__: each for each in DECLARED}
    kind = document.get("kind")
    if kind is None:
        raise InvalidInput(doing, "kind: required, but missing", f"there are {', '.join(kinds)}")
    if not isinstance(kind, str) or kind not in kinds:
        alike = difflib.get_close_matches(str(kind), kinds, n=1)
        hint = f"did you mean {alike[0]!r}?" if alike else f"there are {', '.join(kinds)}"
        raise InvalidInput(doing, f"kind: unknown kind {shortened(kind)}", hint)
    version = document.get("apiVersion")
    if version != API_VERSION:
        seen = "required, but missing" if version is None else f"must be {API_VERSION!r}, not {shortened(version)}"
        raise InvalidInput(doing, f"apiVersion: {seen}", f"write apiVersion: {API_VERSION}")
    metadata = document.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    called = f" {name!r}" if isinstance(name, str) else ""
    return parse(kinds[kind], document, f"reading {kind}{called} in {place}")


def _documents(text: str, doing: str) -> list[JsonValue]:
    found = [document for document in _parsed(text, doing) if document is not None]
    flat: list[JsonValue] = []
    for document in found:
        if isinstance(document, dict) and document.get("kind") == "List":
            items = document.get("items")
            if not isinstance(items, list):
                raise InvalidInput(doing, "items: a List needs a list of resources here")
            flat.extend(items)
        elif isinstance(document, list):
            flat.extend(document)
        else:
            flat.append(document)
    return flat


def _parsed(text: str, doing: str) -> list[JsonValue]:
    if text.lstrip().startswith(("{", "[")):
        try:
            return [json.loads(text, object_pairs_hook=_once)]
        except json.JSONDecodeError:
            pass  # YAML has braces and brackets too; if it is neither, YAML's error tells more
        except _TwiceError as error:
            raise InvalidInput(doing, str(error)) from error
        except RecursionError as error:
            raise InvalidInput(doing, "it is nested too deeply") from error
    try:
        return list(yaml.load_all(text, Loader=_Loader))
    except (yaml.YAMLError, _TwiceError) as error:
        raise InvalidInput(doing, f"not valid YAML: {_in_one_line(error)}") from error
    except RecursionError as error:
        raise InvalidInput(doing, "it is nested too deeply") from error
    except ValueError as error:  # a number that Python refuses to read
        raise InvalidInput(doing, f"not valid YAML: {error}") from error


def _in_one_line(error: Exception) -> str:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        mark = error.problem_mark
        return f"{error.problem or error.context} (line {mark.line + 1}, column {mark.column + 1})"
    return " ".join(str(error).split())


class _TwiceError(Exception):
    """A mapping has a key twice: which one was meant?"""


def _once(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    seen: dict[str, JsonValue] = {}
    for key, value in pairs:
        if key in seen:
            raise _TwiceError(f"{key!r} is there twice in one mapping")
        seen[key] = value
    return seen


class _Loader(yaml.SafeLoader):
    """YAML as JSON has it: no dates (they stay text), no key twice."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - declared so by PyYAML
        first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[object] = set()
        for key_node, _ in node.value:
            if isinstance(key_node, yaml.ScalarNode) and key_node.tag != "tag:yaml.org,2002:merge":
                if key_node.value in seen:
                    line = key_node.start_mark.line + 1
                    raise _TwiceError(f"{key_node.value!r} is there twice in one mapping (line {line})")
                seen.add(key_node.value)
        return super().construct_mapping(node, deep=deep)
