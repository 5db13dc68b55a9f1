"""What all models of output share.

Names are camelCase in JSON, times are RFC 3339 in UTC, and numbers are in base units that their names end with
(``Seconds``, ``Bytes``). Text for people is only in fields called ``message``, ``reason``, ``reasons`` and
``nextStep``. Each field has one ``#:`` comment, from which its line in the documentation is made.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from pydantic import AfterValidator, AwareDatetime, BaseModel
from typing_extensions import override

from quarterdeck.api.base import STRICT


def _in_utc(moment: datetime) -> datetime:
    return moment.astimezone(UTC)


#: A moment in time. In JSON it ends with ``Z``.
Instant = Annotated[AwareDatetime, AfterValidator(_in_utc)]


class OutputModel(BaseModel):
    """A fact that commands print."""

    model_config = STRICT


class NamedOutput(OutputModel):
    """A fact about a thing that has a name."""

    name: str

    @property
    def full_name(self) -> str:
        """What ``-o name`` prints, such as ``site/east``."""
        raise NotImplementedError(f"{type(self).__name__} says what its name is")


class Message(OutputModel):
    """A message about a plane."""

    #: A sentence for people.
    message: str

    @override
    def __str__(self) -> str:
        """The sentence."""
        return self.message


def messages(texts: tuple[str, ...] | list[str]) -> tuple[Message, ...]:
    """Each sentence as a ``Message``."""
    return tuple(Message(message=each) for each in texts)
