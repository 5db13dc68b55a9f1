"""What all parts of the report have in common."""

from __future__ import annotations

from pydantic import ConfigDict

from quarterdeck.api.base import Model


class Part(Model):
    """A part of the report: camelCase in JSON. Fields that are not known yet are left out when one is read."""

    model_config = ConfigDict(use_attribute_docstrings=True, extra="ignore")
