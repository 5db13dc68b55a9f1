"""The cipher of a sealed store: AES-256-GCM under a key that scrypt makes."""

from __future__ import annotations

import base64
import secrets

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from quarterdeck.errors import Corrupt

_PREFIX = "sealed:1:"
_NONCE = 12


class Cipher:
    """Closes and opens documents by ``secret``. ``n``, ``r`` and ``p`` are scrypt's cost."""

    def __init__(self, secret: bytes, salt: bytes, *, n: int, r: int, p: int) -> None:
        self._cipher = AESGCM(Scrypt(salt=salt, length=32, n=n, r=r, p=p).derive(secret))

    def close(self, kind: str, name: str, body: str) -> str:
        """A document in sealed form."""
        nonce = secrets.token_bytes(_NONCE)
        sealed = nonce + self._cipher.encrypt(nonce, body.encode(), f"{kind}/{name}".encode())
        return _PREFIX + base64.b64encode(sealed).decode()

    def open(self, kind: str, name: str, body: str) -> str:
        """The document that ``close`` sealed. Raises Corrupt."""
        try:
            if not body.startswith(_PREFIX):
                raise ValueError
            sealed = base64.b64decode(body.removeprefix(_PREFIX), validate=True)
            return self._cipher.decrypt(sealed[:_NONCE], sealed[_NONCE:], f"{kind}/{name}".encode()).decode()
        except (ValueError, InvalidTag):
            raise Corrupt(
                f"reading {kind} {name!r} from the store", "its seal is broken", "restore the store from a backup"
            ) from None
