"""Where this package is, for processes that are to find it whatever their working folder is."""

from __future__ import annotations

import os
from pathlib import Path

#: The folder that Python is to look in.
SOURCE = Path(__file__).absolute().parents[1]


def python_path() -> str:
    """``PYTHONPATH`` for such a process: first this package, then what this process was given."""
    return os.pathsep.join([str(SOURCE), *filter(None, [os.environ.get("PYTHONPATH")])])
