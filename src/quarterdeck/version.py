"""The version of this program, with the commit that it was built from or is checked out at."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

from quarterdeck import __version__, runner
from quarterdeck.errors import TimedOut
from quarterdeck.package import SOURCE

#: The build hook writes the commit to this file, beside the modules of the package (``scripts/build_hook.py``).
COMMIT_FILE = "commit.txt"
#: Seconds that git may take.
_GIT_DEADLINE_S = 5.0


def version_text(source: Path = SOURCE) -> str:
    """``0.1.0 (commit abc1234)``, or the version alone where the commit is not known. ``source``: the directory that
    the package is in.
    """
    commit = _built_from(source) or _checked_out(source.parent)
    return f"{__version__} (commit {commit})" if commit else __version__


def _built_from(source: Path) -> str:
    file = source / "quarterdeck" / COMMIT_FILE
    return file.read_text().strip() if file.is_file() else ""


def _checked_out(root: Path) -> str:
    """The commit of a checkout; "" where there is none, or git cannot tell."""
    if not (root / ".git").exists():  # an installed package can be inside the repository of another project
        return ""
    git = ("git", "-C", str(root), "rev-parse", "--short=7", "HEAD")
    with suppress(OSError, TimedOut):  # git is not installed, or hangs: the version is worth printing without it
        done = asyncio.run(runner.run(git, doing="asking git for the commit", deadline=_GIT_DEADLINE_S))
        return done.output.strip() if done.code == 0 else ""
    return ""
