"""Objects of a backup as bytes and back, whole or not at all."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator

import pytest
from pyrage import x25519

from quarterdeck.backup import sealing
from quarterdeck.backup.sealing import Identities, Recipients, seal, unseal
from quarterdeck.errors import Corrupt, InvalidInput, PreconditionFailed

KEY, OTHER = x25519.Identity.generate(), x25519.Identity.generate()
FOR_KEY, WITH_KEY = Recipients((str(KEY.to_public()),)), Identities((str(KEY),))


async def parts(content: bytes, size: int) -> AsyncIterator[bytes]:
    for at in range(0, len(content), size):
        yield content[at : at + size]


async def stored(content: bytes, recipients: Recipients, size: int = 1000) -> bytes:
    return b"".join([each async for each in seal(parts(content, size), recipients)])


async def read(content: bytes, identities: Identities = WITH_KEY, size: int = 777) -> bytes:
    return b"".join([each async for each in unseal(parts(content, size), identities, "data/1")])


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sealing, "PART", 5000)


@pytest.mark.parametrize("recipients", [FOR_KEY, Recipients()], ids=["encrypted", "plain"])
@pytest.mark.parametrize("size", [0, 1, 4999, 5000, 5001, 40_000])
async def test_what_is_stored_is_read(recipients: Recipients, size: int) -> None:
    content = random.Random(size).randbytes(size)
    assert await read(await stored(content, recipients)) == content


async def test_each_recipient_can_read_it_and_nobody_else() -> None:
    both = Recipients(tuple(str(each.to_public()) for each in (KEY, OTHER)))
    assert await read(await stored(b"secret", both), Identities((str(OTHER),))) == b"secret"
    only = await stored(b"secret", FOR_KEY)
    assert b"secret" not in only
    with pytest.raises(PreconditionFailed, match="without it the data is lost"):
        await read(only, Identities((str(OTHER),)))
    with pytest.raises(PreconditionFailed, match="it is encrypted"):
        await read(only, Identities())


@pytest.mark.parametrize("recipients", [FOR_KEY, Recipients()], ids=["encrypted", "plain"])
async def test_an_object_that_was_cut_off_or_changed_is_never_read_as_a_whole_one(recipients: Recipients) -> None:
    content = b"".join(b"%d\n" % number for number in range(3000))
    whole = await stored(content, recipients)
    lots = random.Random(1)
    for _ in range(200):
        with pytest.raises(Corrupt):
            await read(whole[: lots.randrange(len(whole))])
        at = lots.randrange(len(whole))
        changed = bytearray(whole)
        changed[at] ^= 1 << lots.randrange(8)
        with pytest.raises((Corrupt, PreconditionFailed)):
            await read(bytes(changed))
    with pytest.raises(Corrupt):
        await read(whole + b"\0")


def test_what_is_no_key_is_refused_and_private_keys_are_not_shown() -> None:
    with pytest.raises(InvalidInput, match="age1"):
        Recipients(("age1nothing",)).parsed()
    with pytest.raises(InvalidInput) as refused:
        Identities(("AGE-SECRET-KEY-1NOTHING",)).parsed()
    assert "NOTHING" not in str(refused.value)
    assert str(KEY) not in repr(WITH_KEY)
