"""The location of this package, for processes that must find it in any working folder."""

from __future__ import annotations

import os
import sys
from pathlib import Path

#: The folder that Python must search.
SOURCE = Path(__file__).absolute().parents[1]


def python_path() -> str:
    """``PYTHONPATH`` for such a process: first this package, then this process's own value."""
    return os.pathsep.join([str(SOURCE), *filter(None, [os.environ.get("PYTHONPATH")])])


def isolated(module: str, *argv: str) -> tuple[str, ...]:
    """The command that runs ``run`` of a module with this package and the standard library alone, whatever the
    environment: it starts fast. Compiled modules are kept where this process has them: a checkout may be read-only.
    """
    boot = f"import sys; sys.path.append(sys.argv.pop(1)); from {module} import run; run()"
    cache = f"pycache_prefix={sys.pycache_prefix or ''}"
    return (sys.executable, "-I", "-S", "-X", cache, "-c", boot, str(SOURCE), *argv)
