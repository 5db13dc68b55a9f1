"""The files of a unit, gathered while its command line is written."""

from __future__ import annotations

from pathlib import PurePosixPath

from quarterdeck.model.units import UnitFile


class Folder:
    """A unit's folder. Each file is named where the flag that needs it is."""

    def __init__(self, path: PurePosixPath) -> None:
        self.path = path
        self._contents: dict[PurePosixPath, bytes] = {}

    def file(self, name: str, content: bytes | str) -> str:
        """Have ``content`` written to ``name``, 0600; returns the absolute path. The same content may come twice."""
        path = self.path / name
        encoded = content.encode() if isinstance(content, str) else content
        if self._contents.setdefault(path, encoded) != encoded:
            raise ValueError(f"two contents for {path}")
        return str(path)

    @property
    def files(self) -> tuple[UnitFile, ...]:
        """Every file that was named."""
        return tuple(UnitFile(path, self._contents[path]) for path in sorted(self._contents))
