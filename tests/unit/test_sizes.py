"""Modules, functions and folders stay small enough to be read. Generated code does not count."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "quarterdeck"
MODULE_LINES, FUNCTION_LINES, FOLDER_MODULES = 400, 40, 30


def modules() -> list[Path]:
    found = [each for each in SOURCE.rglob("*.py") if "_pb2" not in each.name]
    assert len(found) > 500, "they were found"
    return found


def test_modules_are_short() -> None:
    lengths = {str(each.relative_to(SOURCE)): len(each.read_text().splitlines()) for each in modules()}
    assert {name: lines for name, lines in lengths.items() if lines > MODULE_LINES} == {}


def test_functions_are_short() -> None:
    assert [each for module in modules() for each in long_functions(module)] == []


def long_functions(module: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno is not None:
            lines = node.end_lineno - node.lineno + 1
            if lines > FUNCTION_LINES:
                yield f"{module.relative_to(SOURCE)}: {node.name} has {lines} lines"


def test_folders_have_few_modules() -> None:
    counts = Counter(str(each.parent.relative_to(SOURCE)) for each in modules() if each.name != "__init__.py")
    assert {folder: count for folder, count in counts.items() if count > FOLDER_MODULES} == {}
