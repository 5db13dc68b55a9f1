"""Files that a person names on the command line."""

from __future__ import annotations

from pathlib import Path

from quarterdeck.errors import InvalidInput
from quarterdeck.input_files import PIPE_SILENCE_S, UnreadableFileError, read_standard_input, read_text

#: Inline add-ons are in it; see ``quarterdeck.addons.content.TOTAL_MAX``.
_LARGEST_BYTES = 32 * 2**20


def text_of(file: Path) -> str:
    """What a file or a pipe says, or standard input for ``-``. Raises InvalidInput for what is no text."""
    try:
        if str(file) == "-":
            return read_standard_input(_LARGEST_BYTES)
        return read_text(file, _LARGEST_BYTES, pipe_silence_s=PIPE_SILENCE_S)
    except UnreadableFileError as error:
        raise InvalidInput(f"reading {file}", str(error), "name a file with YAML or JSON that can be read") from error
