"""The keys of a plane: which one is used, and which one is accepted as well."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field, model_validator

from quarterdeck.api.base import Model
from quarterdeck.api.schema import refuse

#: Keys are counted; the first one of a plane has the number 0.
KeyNumber = Annotated[int, Field(ge=0)]


class KeyPurpose(StrEnum):
    """What a key is for."""

    #: It encrypts Secrets in etcd.
    ENCRYPTION = "encryption"
    #: It signs the tokens of service accounts.
    SERVICE_ACCOUNT = "service-account"

    @property
    def field(self) -> str:
        """The name of its field in ``Keys``."""
        return self.replace("-", "_")


class KeyUse(Model):
    """Which key is used, and which one is accepted as well. `quarterdeck keys rotate` writes it."""

    #: The number of the key that encrypts or signs.
    current: KeyNumber = 0
    #: The number of another key, of which what it encrypted or signed is accepted as well: the former or the next one.
    also: KeyNumber | None = None

    @model_validator(mode="after")
    def _are_two(self) -> KeyUse:
        if self.also == self.current:
            refuse(("also", f"is {self.also}, as current is; omit it"))
        return self

    @property
    def accepted(self) -> tuple[int, ...]:
        """The numbers of the accepted keys, that of the current one first."""
        return (self.current,) if self.also is None else (self.current, self.also)


#: What planes begin with.
FIRST_KEY = KeyUse()


class Keys(Model):
    """The keys of the plane."""

    #: The keys that encrypt Secrets in etcd; without it, the first one.
    encryption: KeyUse | None = None
    #: The keys that sign the tokens of service accounts; without it, the first one.
    service_account: KeyUse | None = None

    def use(self, purpose: KeyPurpose) -> KeyUse:
        """How the keys of one purpose are used."""
        found: KeyUse | None = getattr(self, purpose.field)
        return found or FIRST_KEY
