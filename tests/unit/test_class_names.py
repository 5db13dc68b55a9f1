"""A class name means one thing: no two modules have a public class of the same name."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import quarterdeck

PACKAGE = Path(quarterdeck.__file__).parent


def twice(package: Path) -> dict[str, list[str]]:
    """The modules of each public class name that occurs twice. Generated modules are left out."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted(package.rglob("*.py")):
        if not path.stem.endswith(("_pb2", "_pb2_grpc")):
            for node in ast.parse(path.read_text()).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    found[node.name].append(str(path.relative_to(package)))
    return {name: modules for name, modules in found.items() if len(modules) > 1}


def test_no_class_name_occurs_twice() -> None:
    assert twice(PACKAGE) == {}


def test_a_name_that_occurs_twice_is_found(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text("class Entry: ...\nclass _Part: ...\n")
    (tmp_path / "two.py").write_text("class Entry: ...\nclass _Part: ...\n")
    assert twice(tmp_path) == {"Entry": ["one.py", "two.py"]}
