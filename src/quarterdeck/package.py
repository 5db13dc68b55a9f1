"""Where this package is, for processes that are to find it whatever their working folder is."""

from __future__ import annotations

import os
import sys
from pathlib import Path

#: The folder that Python is to look in.
SOURCE = Path(__file__).absolute().parents[1]


def python_path() -> str:
    """``PYTHONPATH`` for such a process: first this package, then what this process was given."""
    return os.pathsep.join([str(SOURCE), *filter(None, [os.environ.get("PYTHONPATH")])])


def isolated(module: str, *argv: str) -> tuple[str, ...]:
    """How to run ``run`` of a module with this package and the standard library alone, whatever the environment: it
    starts fast. Compiled modules are kept where this process has them: a checkout may be read-only.
    """
    boot = f"import sys; sys.path.append(sys.argv.pop(1)); from {module} import run; run()"
    cache = f"pycache_prefix={sys.pycache_prefix or ''}"
    return (sys.executable, "-I", "-S", "-X", cache, "-c", boot, str(SOURCE), *argv)
