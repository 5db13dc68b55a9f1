"""The type that a value of kube-apiserver names, read from its first bytes, encrypted or not. Pure.

Upstream: k8s.io/apimachinery pkg/runtime/serializer (protobuf, json), k8s.io/apiserver pkg/storage/value.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeAlias

from typing_extensions import override

from quarterdeck.census.secretbox import beginnings

_PROTOBUF: Final = b"k8s\0"
#: The tag of CBOR that says of itself that it is CBOR (RFC 8949, 3.4.6).
_CBOR: Final = b"\xd9\xd9\xf7"
_ENCRYPTED, _SECRETBOX = b"k8s:enc:", b"k8s:enc:secretbox:v1:"
#: How upstream's JSON begins: of built-in types with both fields, of custom resources with the first key in order.
_JSON: Final = re.compile(
    rb'\s*\{\s*"(kind|apiVersion)"\s*:\s*"([^"\\\x00-\x1f]+)"\s*,\s*"(kind|apiVersion)"\s*:\s*"([^"\\\x00-\x1f]+)"\s*[,}]'
)
#: Tags of protobuf's fields 1 and 2 with bytes: of runtime.Unknown its type, and of that apiVersion and kind.
_FIRST, _SECOND = 0x0A, 0x12
_NO_TYPE: Final = "protobuf without a type"
#: How many characters of a name out of a value are repeated in a reason.
_SHOWN: Final = 40


@dataclass(frozen=True, slots=True)
class StoredType:
    """The version of an API and the kind in which a value is stored."""

    api_version: str
    kind: str

    @property
    def group(self) -> str:
        """The group of the API; "" for the core."""
        return self.api_version.rpartition("/")[0]

    @override
    def __str__(self) -> str:
        return f"{self.api_version} {self.kind}"


@dataclass(frozen=True, slots=True)
class UnknownType:
    """The type of a value cannot be told. ``why``: as what the value "is", such as "empty"."""

    why: str


ValueType: TypeAlias = StoredType | UnknownType


def types_of(values: Sequence[bytes], keys: Mapping[str, bytes]) -> list[ValueType]:
    """The type of each value. ``keys``: by name, those with which values may be encrypted (32 bytes each)."""
    found: list[ValueType] = []
    encrypted: defaultdict[str, list[int]] = defaultdict(list)
    for number, value in enumerate(values):
        if (name := encrypting_key(value)) is not None and name in keys:
            encrypted[name].append(number)
        found.append(type_of(value))  # of those with a key it is replaced below
    for name, numbers in encrypted.items():
        begins = len(_SECRETBOX) + len(name.encode()) + 1
        opened = beginnings(keys[name], [values[number][begins:] for number in numbers])
        for number, beginning in zip(numbers, opened, strict=True):
            found[number] = UnknownType(f"not what key {name} encrypted") if beginning is None else type_of(beginning)
    return found


def type_of(value: bytes) -> ValueType:
    """The type that a value names which is not encrypted. Its first bytes do."""
    if value.startswith(_PROTOBUF):
        return _of_protobuf(value)
    if value.lstrip(b" \t\r\n")[:1] == b"{":
        return _of_json(value)
    if value.startswith(_ENCRYPTED):
        return UnknownType(_of_encrypted(value))
    if value.startswith(_CBOR):
        return UnknownType("CBOR, which apiservers store with the feature gate CBORServingAndStorage")
    return UnknownType("neither protobuf nor JSON" if value else "empty")


def _of_protobuf(value: bytes) -> ValueType:
    # A short length is one byte. Upstream always writes the type first.
    if len(value) > 6 and value[4] == _FIRST and value[5] < 0x80:
        meta = value[6 : 6 + value[5]]
        return _of_type_meta(meta) if len(meta) == value[5] else UnknownType(_NO_TYPE)
    try:
        tag, meta = next(_fields(value[len(_PROTOBUF) :]))
    except (StopIteration, ValueError):
        return UnknownType(_NO_TYPE)
    return _of_type_meta(meta) if tag == _FIRST else UnknownType(_NO_TYPE)


@lru_cache(maxsize=1024)
def _of_type_meta(meta: bytes) -> ValueType:
    try:
        fields = dict(_fields(meta))
        found = StoredType(fields[_FIRST].decode(), fields[_SECOND].decode())
    except (KeyError, ValueError):
        return UnknownType(_NO_TYPE)
    return found if found.api_version and found.kind else UnknownType(_NO_TYPE)


def _fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """The tags and the contents of the fields of a message, all of them bytes. Raises ValueError for other ones."""
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        length, at = _varint(message, at)
        if tag & 7 != 2 or at + length > len(message):
            raise ValueError("it is cut, or has other fields")
        yield tag, message[at : at + length]
        at += length


def _varint(message: bytes, at: int) -> tuple[int, int]:
    """A number, and where it ends."""
    number = 0
    for place in range(5):
        if at + place >= len(message):
            break
        byte = message[at + place]
        number |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return number, at + place + 1
    raise ValueError("it is cut, or no number of 32 bits")


def _of_json(value: bytes) -> ValueType:
    match = _JSON.match(value)
    try:
        # A custom resource may have another field that comes before both in the order of keys: then all is parsed.
        if match and match[1] != match[3]:
            fields = {match[1].decode(): match[2].decode(), match[3].decode(): match[4].decode()}
        else:
            fields = json.loads(value)
        version, kind = fields.get("apiVersion"), fields.get("kind")
    except (ValueError, RecursionError):
        return UnknownType("JSON that cannot be parsed")
    if not (isinstance(version, str) and isinstance(kind, str) and version and kind):
        return UnknownType("JSON without a type")
    return StoredType(version, kind)


def encrypting_key(value: bytes) -> str | None:
    """The name of the key that encrypted a value; None for a value that is not encrypted with such a key."""
    return _key_name(value) if value.startswith(_SECRETBOX) else None


def _key_name(value: bytes) -> str:
    return value[len(_SECRETBOX) :].partition(b":")[0].decode(errors="replace")


def _of_encrypted(value: bytes) -> str:
    """Why an encrypted value cannot be read, to which no key belongs."""
    if value.startswith(_SECRETBOX):
        return f"encrypted with a key that the plane does not have ({_key_name(value)[:_SHOWN]})"
    provider = value[len(_ENCRYPTED) :].partition(b":")[0].decode(errors="replace")
    return f"encrypted by a provider that quarterdeck does not configure ({provider[:_SHOWN]})"
