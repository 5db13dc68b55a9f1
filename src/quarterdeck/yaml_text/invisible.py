"""Characters that an editor does not show: errors name them."""

from __future__ import annotations

import re
import unicodedata

_NAMES = {"\ufeff": "byte order mark", "\t": "tab", "\r": "carriage return", "\x00": "NUL"}
#: Spaces other than U+0020, formatting characters, separators of lines and paragraphs, control characters.
_CATEGORIES = frozenset({"Zs", "Cf", "Zl", "Zp", "Cc", "Cs"})
_INDENTATION = re.compile(r"[ \t]*")


def is_invisible(character: str) -> bool:
    """Whether it is invisible, or looks like a space and is not one."""
    return character not in " \t\n" and unicodedata.category(character) in _CATEGORIES


def named(character: str) -> str:
    """Such as ``U+00A0 (no-break space)``."""
    name = _NAMES.get(character) or unicodedata.name(character, "control character").lower()
    return f"U+{ord(character):04X} ({name})"


def visible(text: str) -> str:
    """A text in which each invisible character is replaced by its name."""
    if text.isprintable():
        return text
    return "".join(f"<{named(each)}>" if is_invisible(each) else each for each in text)


def first_in(line: str) -> tuple[int, str] | None:
    """The first invisible character of a line: its column, from 1, and its name. A tab counts in the indentation."""
    for column, character in enumerate(line, start=1):
        if is_invisible(character) and not (character == "\r" and column == len(line)):
            return column, named(character)
    indentation = _INDENTATION.match(line)
    tab = indentation[0].find("\t") if indentation else -1
    return (tab + 1, named("\t")) if tab >= 0 else None
