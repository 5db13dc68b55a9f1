"""Lists of objects, read page by page, of which only some fields are read."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Generic, TypeVar
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from quarterdeck.errors import Unavailable
from quarterdeck.kube.port import Address, Objects


class ObjectPart(BaseModel):
    """A part of an object; fields that it does not name are left out."""

    model_config = ConfigDict(extra="ignore", frozen=True)


Item = TypeVar("Item", bound=ObjectPart)


class _ListMetadata(ObjectPart):
    more: str = Field(default="", alias="continue")


class Page(ObjectPart, Generic[Item]):
    """A page of a list."""

    metadata: _ListMetadata = _ListMetadata()
    items: tuple[Item, ...] = ()


async def items(kube: Objects, apiserver: Address, path: str, kind: type[Page[Item]]) -> AsyncIterator[Item]:
    """The items of all pages of a list. ``path`` has a query. Raises Unavailable."""
    more = ""
    while True:
        page = _parsed(await kube.read(apiserver, path + (f"&continue={quote(more)}" if more else "")), path, kind)
        for each in page.items:
            yield each
        more = page.metadata.more
        if not more:
            return


def _parsed(answer: JsonValue, path: str, kind: type[Page[Item]]) -> Page[Item]:
    try:
        return kind.model_validate(answer if answer is not None else {})
    except ValidationError:  # it may contain secrets
        raise Unavailable(f"reading {path.partition('?')[0]}", "an apiserver's answer is not such a list") from None
