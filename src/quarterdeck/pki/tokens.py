"""Bootstrap tokens: what a node shows before it has a certificate."""

from __future__ import annotations

import re
import secrets as entropy
import string
from dataclasses import dataclass, field

_ALPHABET = string.ascii_lowercase + string.digits
_ID, _SECRET = 6, 16  # kubernetes: cluster-bootstrap/token/api


@dataclass(frozen=True, slots=True)
class BootstrapToken:
    """A token: its ``id``, by which everybody may call it, and what nobody else may know."""

    id: str
    secret: str = field(repr=False)

    @property
    def text(self) -> str:
        """As a node shows it: for the one who asked for it alone."""
        return f"{self.id}.{self.secret}"


def create_token() -> BootstrapToken:
    """A new one, at random: 31 bits of id, 83 of secret."""
    return BootstrapToken(_random(_ID), _random(_SECRET))


def is_token_id(text: str) -> bool:
    """Whether that may be the id of a token."""
    return re.fullmatch(rf"[a-z0-9]{{{_ID}}}", text) is not None


def _random(length: int) -> str:
    return "".join(entropy.choice(_ALPHABET) for _ in range(length))
