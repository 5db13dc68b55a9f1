"""What kinds of objects an apiserver serves, and which one a person means: as kubectl understands its types."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pydantic import JsonValue

from quarterdeck.addons.objects import CRD_GROUP, Manifest, items, mapping, text_of
from quarterdeck.errors import InvalidInput, NotFound
from quarterdeck.kube.port import Address, ApiResource, Objects

CRDS = ApiResource(CRD_GROUP, "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False)


@dataclass(frozen=True, slots=True)
class ServedKinds:
    """The kinds that are built in, and those that definitions of custom resources have added."""

    upstream: tuple[ApiResource, ...]
    custom: tuple[ApiResource, ...]

    @property
    def each_once(self) -> tuple[ApiResource, ...]:
        """All kinds, each in one version: the preferred one, or of a custom resource the stored one."""
        return (*_first_versions(self.upstream), *self.custom)


async def served_kinds(objects: Objects, apiserver: Address, definitions: str) -> ServedKinds:
    """The kinds of an apiserver. ``definitions``: the path of a list of CustomResourceDefinitions. They are read by
    themselves, for an apiserver announces them only some time after it is ready. Raises Unavailable.
    """
    found = mapping(await objects.read(apiserver, definitions))
    custom = tuple(_custom(items(found.get("items"))))
    defined = {(each.group, each.plural) for each in custom}
    announced = (await objects.discover(apiserver)).resources
    return ServedKinds(tuple(each for each in announced if (each.group, each.plural) not in defined), custom)


def chosen_kind(kinds: ServedKinds, text: str, doing: str) -> ApiResource:
    """The kind that ``text`` names: its plural, singular or short name, or the kind, and behind a dot the group, or
    version and group, if it has to say which one. Upstream's kinds are meant rather than custom resources.

    Raises NotFound for an unknown type, and InvalidInput where several are meant.
    """
    word, _, group = text.lower().partition(".")
    for names in (_names, _short_names):
        for among in (kinds.upstream, kinds.custom):
            found = _first_versions(each for each in among if word in names(each) and _of_group(each, group))
            if len(found) > 1 and among is kinds.custom:
                choices = ", ".join(sorted(f"{each.plural}.{each.group}" for each in found))
                raise InvalidInput(doing, f"{text!r} may be each of {choices}", "write one of these as the type")
            if found:
                return found[0]
    raise NotFound(doing, f"there was no resource type {text!r} then", "write it as kubectl takes it, such as deploy")


def _names(kind: ApiResource) -> tuple[str, ...]:
    return (kind.plural, kind.singular, kind.kind.lower())


def _short_names(kind: ApiResource) -> tuple[str, ...]:
    return kind.short_names


def _of_group(kind: ApiResource, given: str) -> bool:
    return given in ("", kind.group, f"{kind.version}.{kind.group}")


def _first_versions(found: Iterable[ApiResource]) -> list[ApiResource]:
    """Each once, in the first of its versions: apiservers announce the preferred one first."""
    firsts: dict[tuple[str, str], ApiResource] = {}
    for each in found:
        firsts.setdefault((each.group, each.plural), each)
    return list(firsts.values())


def _custom(definitions: Iterable[Manifest]) -> Iterator[ApiResource]:
    """The kinds that definitions add, in the version in which they are stored: no other program has to convert it."""
    for each in definitions:
        spec = mapping(each.get("spec"))
        names = mapping(spec.get("names"))
        served = [version for version in items(spec.get("versions")) if version.get("served") is True]
        served.sort(key=lambda version: version.get("storage") is not True)
        if served:
            yield ApiResource(
                text_of(spec.get("group")),
                text_of(served[0].get("name")),
                text_of(names.get("kind")),
                text_of(names.get("plural")),
                spec.get("scope") == "Namespaced",
                singular=text_of(names.get("singular")),
                short_names=_texts(names.get("shortNames")),
            )


def _texts(value: JsonValue) -> tuple[str, ...]:
    return tuple(map(text_of, value)) if isinstance(value, list) else ()
