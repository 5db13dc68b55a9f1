"""YAML as Kubernetes reads and writes it. The YAML library is loaded with the first text, not with this package."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from quarterdeck.yaml_text.invisible import is_invisible
from quarterdeck.yaml_text.scalars import resolved

if TYPE_CHECKING:
    import yaml

_WIDTH = 110


def dumped(document: object, *, sort_keys: bool = True) -> str:
    """A document as YAML. Files of replicas are written with it: another layout would be another revision."""
    import yaml

    return str(yaml.dump(document, Dumper=_dumper(), sort_keys=sort_keys))


def dumped_all(documents: Iterable[object]) -> str:
    """Documents as YAML for people, with ``---`` between them."""
    import yaml

    return str(yaml.dump_all(documents, Dumper=_dumper(), sort_keys=False, allow_unicode=True, width=_WIDTH))


def _dumper() -> type[yaml.SafeDumper]:
    """Quotes what Kubernetes would not read as text, such as ``1e3``, ``0o644`` and ``y``, which are text in YAML 1.1,
    and escapes invisible characters.
    """
    import yaml

    class Dumper(yaml.SafeDumper):
        pass

    def text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
        style = None if isinstance(resolved(value), str) else "'"
        if any(map(is_invisible, value)):
            style = '"'
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)

    Dumper.add_representer(str, text)
    return Dumper
