"""The type that a stored value names."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as some
from support.secretbox import seal
from support.stored_values import protobuf

from quarterdeck.census.value_types import StoredType, UnknownType, type_of, types_of

KEY, NONCE = b"k" * 32, b"n" * 24
DEPLOYMENT = StoredType("apps/v1", "Deployment")
names = some.text(min_size=1, max_size=150)


def encrypted(message: bytes, *, name: str = "key1", key: bytes = KEY) -> bytes:
    return b"k8s:enc:secretbox:v1:" + name.encode() + b":" + seal(key, NONCE, message)


@given(names, names, some.binary(max_size=50))
def test_protobuf_of_any_type_is_read(version: str, kind: str, rest: bytes) -> None:
    assert type_of(protobuf(version, kind, rest)) == StoredType(version, kind)


@given(some.sampled_from([("apps/v1", "Deployment"), ("x" * 90 + "/v1", "Kind" * 20)]), some.integers(0, 300))
def test_protobuf_that_is_cut_is_of_its_type_or_of_an_unknown_one(of: tuple[str, str], length: int) -> None:
    value = protobuf(*of, b"content")
    found = type_of(value[:length])
    assert isinstance(found, UnknownType) or found == StoredType(*of)
    assert isinstance(found, StoredType) == (length >= len(value) - len(b"content") - 2)


@given(some.sampled_from([b"", b"k8s\0", b"k8s\0\n", b"k8s\0\n\x10", b"{", b'{"kind":', b"k8s:enc:"]), some.binary())
def test_no_value_whatsoever_ends_in_an_error(prefix: bytes, rest: bytes) -> None:
    assert isinstance(type_of(prefix + rest), StoredType | UnknownType)
    assert len(types_of([prefix + rest, encrypted(prefix + rest)], {"key1": KEY})) == 2


@given(some.data())
def test_damaged_values_end_in_no_error(data: some.DataObject) -> None:
    good = data.draw(
        some.sampled_from(
            [protobuf("apps/v1", "Deployment", b"x"), b'{"kind":"Pod","apiVersion":"v1"}', encrypted(b"{}"), b"[" * 9]
        )
    )
    damaged = bytearray(good)
    for _ in range(data.draw(some.integers(1, 4))):
        damaged[data.draw(some.integers(0, len(good) - 1))] = data.draw(some.integers(0, 255))
    assert len(types_of([bytes(damaged)], {"key1": KEY})) == 1


@given(some.permutations(["kind", "apiVersion", "about", "spec"]), some.sampled_from([None, 1]))
def test_json_is_read_in_any_order_of_its_fields(order: list[str], indent: int | None) -> None:
    fields: Mapping[str, object] = {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "about": {"kind": "Other", "apiVersion": "v9"},
        "spec": ['"kind":"Other"'],
    }
    value = json.dumps({each: fields[each] for each in order}, indent=indent).encode()
    assert type_of(value) == StoredType("example.com/v1", "Widget")


def test_json_with_escapes_is_read() -> None:
    assert type_of(b'{"apiVersion":"v1","kind":"\\u0050od"}') == StoredType("v1", "Pod")


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (b"", "empty"),
        (b"1002", "neither protobuf nor JSON"),
        (b"\x00\x01", "neither protobuf nor JSON"),
        (b"k8s\0", "protobuf without a type"),
        (b"k8s\0\n\x00", "protobuf without a type"),
        (b"k8s\0\n\x02\n\x00", "protobuf without a type"),
        (protobuf("", "Pod", b""), "protobuf without a type"),
        (protobuf("v1", "", b""), "protobuf without a type"),
        (b"k8s\0\x12\x03abc", "protobuf without a type"),
        (b"k8s\0\x08\x01", "protobuf without a type"),
        (b"k8s\0\n" + b"\xff" * 20, "protobuf without a type"),
        (b"{}", "JSON without a type"),
        (b'{"kind":"Pod","kind":"Pod"}', "JSON without a type"),
        (b'{"kind":7,"apiVersion":"v1"}', "JSON without a type"),
        (b'{"kind":"","apiVersion":"v1"}', "JSON without a type"),
        (b'{"about":1,"kind":"Po', "JSON that cannot be parsed"),
        (b'{"about":' + b"[" * 100_000, "JSON that cannot be parsed"),
        (b'{"kind":"\xff","apiVersion":"v1"}', "JSON that cannot be parsed"),
        (b"\xd9\xd9\xf7\xa1", "CBOR, which apiservers store with the feature gate CBORServingAndStorage"),
        (b"k8s:enc:aescbc:v1:key1:x", "encrypted by a provider that quarterdeck does not configure (aescbc)"),
        (encrypted(b"", name="key9"), "encrypted with a key that the plane does not have (key9)"),
    ],
)
def test_what_cannot_be_read_says_why(value: bytes, why: str) -> None:
    assert types_of([value], {"key1": KEY}) == [UnknownType(why)]


def test_encrypted_values_are_read_with_their_own_keys_among_others() -> None:
    other = b"o" * 32
    values = [
        encrypted(protobuf("v1", "Secret", b"x" * 500)),
        protobuf("apps/v1", "Deployment", b""),
        encrypted(b'{"kind":"Secret","apiVersion":"v1","data":{}}', name="key2", key=other),
        encrypted(protobuf("v1", "Secret", b""), name="key2"),
        encrypted(b"")[:-1],
    ]
    secret, wrong = StoredType("v1", "Secret"), "not what key {} encrypted"
    assert types_of(values, {"key1": KEY, "key2": other}) == [
        secret,
        DEPLOYMENT,
        secret,
        UnknownType(wrong.format("key2")),
        UnknownType(wrong.format("key1")),
    ]
