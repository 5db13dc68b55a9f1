"""The guests of the door: for each plane a name, a secret and its only target.

The commands that print kubeconfigs write the file, and the door reads it at each connection: a new or deleted plane
needs no restart, which would cut the sessions of all others.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import json
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from filelock import FileLock

from quarterdeck.errors import Corrupt
from quarterdeck.files import write_secret

_LOCKING = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Guest:
    """A client with ``secret`` may connect to ``host`` (lower case, no last dot) at ``port``. ``uid`` is the plane's: a
    later plane of the same name is another guest.
    """

    uid: str
    host: str
    port: int
    secret: str = field(repr=False)


def guests_file(home: Path, network: str) -> Path:
    """The file with the guests of the door to a network."""
    return home / "doors" / f"{network}.json"


def read_guests(file: Path) -> Mapping[str, Guest]:
    """The guests by name; none if there is no file. Raises Corrupt, OSError."""
    try:
        found = json.loads(file.read_bytes())
        return {
            str(name): Guest(
                uid=str(each["uid"]), host=str(each["host"]), port=int(each["port"]), secret=str(each["secret"])
            )
            for name, each in found.items()
        }
    except FileNotFoundError:
        return {}
    except (ValueError, KeyError, TypeError, AttributeError):
        raise Corrupt(
            f"reading {file}", "it does not contain the door's guests", "delete it, then print kubeconfigs again"
        ) from None


def add_guest(file: Path, name: str, *, uid: str, host: str, port: int) -> Guest:
    """The guest of that name, with its existing secret if it is the same plane's. May block for a moment."""
    with _changing(file):
        guests = dict(read_guests(file))
        before = guests.get(name)
        secret = before.secret if before is not None and before.uid == uid else secrets.token_urlsafe(24)
        guest = Guest(uid=uid, host=plain_host(host), port=port, secret=secret)
        if guest != before:
            _write(file, {**guests, name: guest})
        return guest


def remove_guest(file: Path, name: str) -> None:
    """Remove a guest. Nothing happens if there is none."""
    if not file.exists():
        return
    with _changing(file):
        guests = dict(read_guests(file))
        if guests.pop(name, None) is not None:
            _write(file, guests)


def known_guest(guests: Mapping[str, Guest], authorization: bytes) -> Guest | None:
    """The guest whose name and secret a ``Proxy-Authorization`` header has (RFC 7617), compared in constant time."""
    scheme, _, encoded = authorization.partition(b" ")
    if scheme.lower() != b"basic":
        return None
    try:
        name, _, secret = base64.b64decode(encoded.strip(), validate=True).partition(b":")
    except binascii.Error:
        return None
    guest = guests.get(name.decode(errors="replace"))
    right = guest.secret if guest is not None else secrets.token_urlsafe(24)
    return guest if hmac.compare_digest(secret, right.encode()) else None


def plain_host(host: str) -> str:
    """A host in the form that is compared."""
    return host.lower().removesuffix(".")


def _changing(file: Path) -> FileLock:
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    return FileLock(f"{file}.lock", timeout=_LOCKING)


def _write(file: Path, guests: Mapping[str, Guest]) -> None:
    write_secret(file, json.dumps({name: asdict(each) for name, each in sorted(guests.items())}, indent=1).encode())
