"""The disk of a machine in memory: volumes, and how large the files in them are."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from quarterdeck.model.site_facts import VolumeFacts
from quarterdeck.model.units import Volume


@dataclass(slots=True)
class FakeDisk:
    """``volumes`` by name, as they were made. Sizes are in bytes, times in seconds since 1970; a file that a program
    wrote has no time. ``texts`` are what files say of which that matters, by their whole paths. ``full``: no program
    that has a volume can go on, for lack of room.
    """

    volumes: dict[str, Volume] = field(default_factory=dict)
    texts: dict[PurePosixPath, str] = field(default_factory=dict)
    full: bool = False
    _sizes: dict[PurePosixPath, int] = field(default_factory=dict)
    _written: dict[PurePosixPath, float] = field(default_factory=dict)

    def volume(self, name: str) -> Volume:
        """A volume with what is in it now; raises KeyError."""
        made = self.volumes[name]
        inside = self._inside(made.path)
        times = [self._written[path] for path in inside if path in self._written]
        return replace(made, used_bytes=sum(self._sizes[path] for path in inside), changed=max(times, default=None))

    def facts(self, below: str) -> tuple[VolumeFacts, ...]:
        """All volumes, with what is in their folders ``below``."""
        return tuple(
            VolumeFacts(name=each.name, storage_class=each.storage_class, entries=self.names(each.path / below))
            for each in self.volumes.values()
        )

    def names(self, folder: PurePosixPath) -> tuple[str, ...]:
        """What is in a folder: the names of its files and folders."""
        first = {str(path).removeprefix(f"{folder}/").partition("/")[0] for path in self._inside(folder)}
        return tuple(sorted(first))

    def sizes(self, volume: str) -> dict[str, int]:
        """How large the files in a volume are, by their paths in it. Raises KeyError."""
        folder = self.volumes[volume].path
        return {str(path.relative_to(folder)): self._sizes[path] for path in self._inside(folder)}

    def texts_in(self, volume: str, names: str, since: float) -> tuple[str, ...]:
        """What the files right in a volume say whose names are of that form, in their order; not those that were last
        written before. Raises KeyError.
        """
        folder = self.volumes[volume].path
        files = [path for path in sorted(self.texts) if path.parent == folder and fnmatchcase(path.name, names)]
        return tuple(self.texts[path] for path in files if self._written.get(path, since) >= since)

    def matches(self, pattern: PurePosixPath) -> bool:
        """Whether a file is there whose name, in the folder of the pattern, is of the pattern's form."""
        return any(path.parent == pattern.parent and fnmatchcase(path.name, pattern.name) for path in self._sizes)

    def delete(self, name: str) -> None:
        """Remove a volume with all that is in it; fine if there is none."""
        gone = self.volumes.pop(name, None)
        if gone is not None:
            for path in self._inside(gone.path):
                self.take(path)

    def adopt(self, name: str, other: FakeDisk, path: PurePosixPath) -> None:
        """Have a volume of another disk, with all that is in it, at that path. Raises KeyError."""
        made = other.volumes[name]
        for each in other._inside(made.path):
            self.put(path / each.relative_to(made.path), other._sizes[each], at=other._written.get(each))
        other.delete(name)
        self.volumes[name] = replace(made, path=path)

    def put(self, path: PurePosixPath, size: int, *, at: float | None = None) -> None:
        """Have a file there, written at that time."""
        self._sizes[path] = size
        if at is not None:
            self._written[path] = at

    def take(self, path: PurePosixPath) -> None:
        """Remove a file, or a folder with all that is in it."""
        for each in (path, *self._inside(path)):
            self._sizes.pop(each, None)
            self._written.pop(each, None)
            self.texts.pop(each, None)

    def _inside(self, folder: PurePosixPath) -> list[PurePosixPath]:
        return [path for path in self._sizes if str(path).startswith(f"{folder}/")]
