"""Beginnings of messages that were sealed with NaCl's secretbox."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as some
from support.secretbox import seal

from quarterdeck.census.secretbox import BEGINNING, beginnings

# "Cryptography in NaCl" (D. J. Bernstein, 2009), section 10: the key, the nonce, the message and its box.
KEY = bytes.fromhex("1b27556473e985d462cd51197a9a46c76009549eac6474f206c4ee0844f68389")
NONCE = bytes.fromhex("69696ee955b62b73cd62bda875fc73d68219e0036b7a0b37")
MESSAGE = bytes.fromhex(
    "be075fc53c81f2d5cf141316ebeb0c7b5228c52a4c62cbd44b66849b64244ffce5ecbaaf33bd751a1ac728d45e6c61296cdc3c0123"
    "3561f41db66cce314adb310e3be8250c46f06dceea3a7fa1348057e2f6556ad6b1318a024a838f21af1fde048977eb48f59ffd4924"
    "ca1c60902e52f0a089bc76897040e082f937763848645e0705"
)
BOX = bytes.fromhex(
    "f3ffc7703f9400e52a7dfb4b3d3305d98e993b9f48681273c29650ba32fc76ce48332ea7164d96a4476fb8c531a1186ac0dfc17c98"
    "dce87b4da7f011ec48c97271d2c20f9b928fe2270d6fb863d51738b48eeee314a7cc8ab932164548e526ae90224368517acfeabd6b"
    "b3732bc0e9da99832b61ca01b6de56244a9e88d5f9b37973f622a43d14a6599b1f654cb45a74e355a5"
)

keys = some.binary(min_size=32, max_size=32)
nonces = some.binary(min_size=24, max_size=24)


def test_the_published_example_is_opened() -> None:
    assert beginnings(KEY, [NONCE + BOX]) == [MESSAGE[:BEGINNING]]
    assert seal(KEY, NONCE, MESSAGE) == NONCE + BOX, "and tests seal as it does"


@given(keys, some.lists(some.tuples(nonces, some.binary(max_size=200)), max_size=12))
def test_each_of_many_messages_is_opened(key: bytes, messages: list[tuple[bytes, bytes]]) -> None:
    sealed = [seal(key, nonce, message) for nonce, message in messages]
    assert beginnings(key, sealed) == [message[:BEGINNING] for _, message in messages]


@given(some.binary(max_size=150), some.data())
def test_a_message_that_was_changed_or_cut_is_not_opened_and_those_beside_it_are(
    message: bytes, data: some.DataObject
) -> None:
    whole = seal(KEY, NONCE, message)
    at = data.draw(some.integers(0, len(whole) - 1))
    changed = bytearray(whole)
    changed[at] ^= 1 << data.draw(some.integers(0, 7))
    opened = message[:BEGINNING]
    assert beginnings(KEY, [whole, bytes(changed), whole[:at], whole]) == [opened, None, None, opened]


def test_another_key_opens_nothing() -> None:
    assert beginnings(bytes(32), [NONCE + BOX]) == [None]
    assert beginnings(KEY, []) == []
