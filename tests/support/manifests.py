"""Manifests in files, and what kubectl reads in them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "fixtures" / "manifests"
CORPUS = tuple(sorted(FOLDER.glob("*.yaml")))


def objects_beside(file: Path) -> list[Any]:
    """The objects that kubectl reads in a manifest of the corpus."""
    found: list[Any] = _GO.decode(file.with_suffix(".json").read_text())
    return found


def exact(value: object) -> str:
    """A text that differs where values do: to Python 1 is 1.0 and True."""
    return json.dumps(value, sort_keys=True)


def _number(text: str) -> int | float:
    """Go writes a float without a fraction as an integer, and takes an integer that 64 bits do not hold for a float."""
    return int(text) if -(2**63) <= int(text) < 2**63 else float(text)


_GO = json.JSONDecoder(parse_int=_number)


def read_by_kubectl(program: Path, file: Path) -> tuple[list[Any] | None, str]:
    """The objects that kubectl reads in a file, or None and why it reads none. It asks no apiserver."""
    argv = [program, "patch", "--local", "--type=json", "-p", "[]", "-o", "json", "-f", file]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode != 0:
        return ([], "") if "no objects passed" in done.stderr else (None, done.stderr)
    found = []
    text = done.stdout.strip()
    while text:
        value, end = _GO.raw_decode(text)
        found.append(value)
        text = text[end:].lstrip()
    return found, ""
