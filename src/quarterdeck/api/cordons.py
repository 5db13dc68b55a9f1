"""Cordons: what a person wants left alone, with who said so and when."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, AwareDatetime

from quarterdeck.api.base import Model
from quarterdeck.api.names import DNS_LABEL_MAX, dns_label
from quarterdeck.api.schema import label

Named = Annotated[str, AfterValidator(dns_label), label(DNS_LABEL_MAX)]


class Cordon(Model):
    """A machine of a site that is given no new replica; no ``machine``: none of the site is."""

    machine: Named | None = None
    by: str = ""
    since: AwareDatetime | None = None


class CordonedReplica(Model):
    """A replica that is left as it is: healing does not touch it, nor does anything that can wait."""

    replica: Named
    by: str = ""
    since: AwareDatetime | None = None


def told(cordon: Cordon | CordonedReplica) -> str:
    """Who said so, and when, in words."""
    who = f" by {cordon.by}" if cordon.by else ""
    when = f" since {cordon.since:%F %T %Z}" if cordon.since is not None else ""
    return f"cordoned{who}{when}"
