"""The base of all parts of the report."""

from __future__ import annotations

from pydantic import ConfigDict

from quarterdeck.api.base import Model


class Part(Model):
    """A part of the report: camelCase in JSON. Unknown fields are dropped when one is read."""

    model_config = ConfigDict(use_attribute_docstrings=True, extra="ignore")
