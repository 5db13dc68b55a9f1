"""Files that a person names."""

from __future__ import annotations

import sys
from pathlib import Path

from quarterdeck.errors import InvalidInput


def text_of(file: Path) -> str:
    """What a file says, or standard input for ``-``. Raises InvalidInput for what is no text."""
    doing = f"reading {file}"
    try:
        content = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    except OSError as error:
        raise InvalidInput(doing, str(error.strerror), "name a file that can be read") from error
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        seen = f"it is no text: byte {error.start + 1} is not UTF-8"
        raise InvalidInput(doing, seen, "name a file with YAML or JSON") from error
