"""YAML for modules that are loaded whether or not anything is written: its library is loaded with the first text."""

from __future__ import annotations

from typing import Any


def dumped(document: object, *, sort_keys: bool = True) -> str:
    """A document as YAML."""
    import yaml

    return str(yaml.safe_dump(document, sort_keys=sort_keys))


def loaded(text: str) -> Any:
    """What a text says. Raises ValueError for what is no YAML, with where and why."""
    import yaml

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error
