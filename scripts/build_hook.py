"""Writes the commit into what is built from a checkout, so that ``quarterdeck --version`` knows it there as well."""

from __future__ import annotations

import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from typing_extensions import override

#: Where the file is, by what is built: ``src/quarterdeck/version.py`` reads it beside itself.
_PLACES = {"wheel": "quarterdeck/commit.txt", "sdist": "src/quarterdeck/commit.txt"}


class CommitHook(BuildHookInterface[Any]):
    """Adds ``commit.txt`` to the wheel and to the source distribution."""

    @override
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the file outside the checkout, and have it included. An editable installation asks git itself."""
        commit = _commit(Path(self.root))
        if version == "editable" or not commit:
            return
        self._folder = TemporaryDirectory()
        file = Path(self._folder.name) / "commit.txt"
        file.write_text(f"{commit}\n")
        build_data["force_include"][str(file)] = _PLACES[self.target_name]

    @override
    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove it again."""
        if hasattr(self, "_folder"):
            self._folder.cleanup()


def _commit(root: Path) -> str:
    """The commit of the checkout; "" without a checkout or without git."""
    if not (root / ".git").exists():
        return ""
    try:
        git = ("git", "-C", str(root), "rev-parse", "--short=7", "HEAD")
        return subprocess.run(git, check=True, capture_output=True, text=True, timeout=30).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""
