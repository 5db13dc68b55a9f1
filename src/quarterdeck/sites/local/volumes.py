"""Volumes of a local machine: folders by storage class. Plain calls that may block; run them in a thread."""

from __future__ import annotations

import os
import secrets
import statistics
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from quarterdeck.errors import Conflict, InvalidInput, NotFound, Unavailable
from quarterdeck.files import remove_folder
from quarterdeck.model.capabilities import Found, Search
from quarterdeck.model.site_facts import VolumeFacts
from quarterdeck.model.units import Volume
from quarterdeck.sites.local.class_roots import ClassRoot
from quarterdeck.sites.local.logs import search_folder
from quarterdeck.sites.local.settings import LocalStorageClass, require_entry_name

_DELETED = ".deleted-"
#: Volumes that were taken from another machine, and are not settled yet.
_ARRIVING = ".arriving-"
#: Number of measurements of the disk's sync time, and the bytes of each: as a log is written.
_SYNCS = 5
_SYNCED = 4096


class VolumesSeen(NamedTuple):
    """Volumes, and the storage classes that cannot be read now."""

    volumes: tuple[VolumeFacts, ...]
    away: tuple[str, ...]


class VolumeFolders:
    """The volumes of one machine. ``roots`` maps each storage class to the machine's own folder of that class.

    The content of a class's disk is not known while it is not mounted: then all that could be there raises Unavailable.
    """

    def __init__(self, machine: str, roots: Mapping[str, ClassRoot], limits: Mapping[str, int | None]) -> None:
        self._machine = machine
        self._roots = roots
        self._limits = limits

    @classmethod
    def of(
        cls, machine: str, own: Path, shared: PurePosixPath, classes: Mapping[str, LocalStorageClass]
    ) -> VolumeFolders:
        """Those of a machine: below its ``own`` folder, or for classes with a folder at ``shared`` below that."""
        roots = {
            name: ClassRoot(
                storage_class=name,
                folder=own / "volumes" / name if each.folder is None else each.folder / shared,
                disk=each.folder,
                note=own / "classes" / name,
            )
            for name, each in classes.items()
        }
        return cls(machine, roots, {name: each.limit_bytes for name, each in classes.items()})

    def create(self, name: str, storage_class: str) -> Volume:
        """See Site.create_volume."""
        doing = f"creating volume {name} on machine {self._machine}"
        require_entry_name(doing, name)
        root = self._root(doing, storage_class)
        there = self._find(doing, name)
        if there is not None and there.parent != root.folder:
            raise Conflict(doing, f"it exists with storage class {self._class_of(there)}, not {storage_class}")
        if there is None:
            root.make(doing)
            there = root.folder / name
            there.mkdir(mode=0o700, exist_ok=True)
        return self._seen(there)

    def all(self) -> tuple[Volume, ...]:
        """Every volume, by class and name."""
        doing = f"listing the volumes of machine {self._machine}"
        return tuple(
            self._seen(each)
            for root in self._roots.values()
            for each in sorted(root.folder.iterdir() if root.is_there(doing) else ())
            if not each.name.startswith(".")
        )

    def facts(self, below: str) -> VolumesSeen:
        """Every volume with the entries of its folder ``below``, and the classes that cannot be read. Raises
        OSError.
        """
        found: list[VolumeFacts] = []
        away: list[str] = []
        for storage_class, root in self._roots.items():
            try:
                there = root.is_there(f"reading the volumes of machine {self._machine}")
            except Unavailable:
                away.append(storage_class)
                continue
            found += (
                VolumeFacts(
                    name=name.removeprefix(_ARRIVING),
                    storage_class=storage_class,
                    entries=_names(root.folder / name / below),
                    arriving=name.startswith(_ARRIVING),
                )
                for name in (_names(root.folder) if there else ())
                if not name.startswith(".") or name.startswith(_ARRIVING)
            )
        return VolumesSeen(tuple(found), tuple(away))

    def entries(self, name: str, below: str) -> tuple[str, ...]:
        """See Site.list_volume."""
        doing = f"listing volume {name} on machine {self._machine}"
        volume = self._find(doing, name)
        if volume is None:
            raise NotFound(doing, "it has no such volume")
        if below.startswith("/") or ".." in PurePosixPath(below).parts:
            raise InvalidInput(doing, f"{below!r} is not a folder below it")
        return _names(volume / below)

    def search(self, name: str, wanted: Search) -> Found:
        """See Site.search_volume."""
        doing = f"searching volume {name} on machine {self._machine}"
        volume = self._find(doing, name)
        if volume is None:
            raise NotFound(doing, "it has no such volume")
        return search_folder(doing, volume, wanted)

    def delete(self, name: str) -> None:
        """See Site.delete_volume. It disappears at once, even if the deletion is interrupted."""
        doing = f"deleting volume {name} on machine {self._machine}"
        require_entry_name(doing, name)
        for volume in (self._find(doing, name), self._find(doing, _ARRIVING + name)):
            if volume is not None:
                volume.rename(volume.with_name(_DELETED + secrets.token_hex(6)))
        for root in self._roots.values():
            for left in root.folder.glob(f"{_DELETED}*"):
                remove_folder(left)

    def delete_all(self) -> None:
        """Remove all volumes, and the machine's folders of each class."""
        for root in self._roots.values():
            with suppress(Unavailable):
                if root.is_there(f"removing the volumes of machine {self._machine}"):
                    remove_folder(root.folder)
            root.note.unlink(missing_ok=True)

    def free(self, storage_class: str) -> int:
        """See Site.free_bytes."""
        doing = f"reading the free space of machine {self._machine}"
        seen = os.statvfs(self._root(doing, storage_class).space(doing))
        free = seen.f_bavail * seen.f_frsize
        limit = self._limits[storage_class]
        if limit is None:
            return free
        used = sum(each.used_bytes for each in self.all() if each.storage_class == storage_class)
        return max(0, min(free, limit - used))

    def sync_seconds(self, storage_class: str) -> float:
        """See ``measures.DiskSync``. Leaves nothing behind."""
        doing = f"measuring the disk of machine {self._machine}"
        times: list[float] = []
        with tempfile.TemporaryFile(dir=self._root(doing, storage_class).space(doing), buffering=0) as file:
            for _ in range(_SYNCS):
                since = time.monotonic()
                file.write(bytes(_SYNCED))
                os.fdatasync(file.fileno())
                times.append(time.monotonic() - since)
        return statistics.median(times)

    def folder_of(self, name: str) -> Path | None:
        """The path of a volume; None if there is none."""
        return self._find(f"looking for volume {name} on machine {self._machine}", name)

    def class_of(self, name: str) -> str | None:
        """The storage class of a volume, also of one that is just arriving; None if there is none."""
        found = self.folder_of(name) or self.arriving(name)
        return None if found is None else self._class_of(found)

    def volume(self, name: str) -> Volume:
        """An existing volume; raises NotFound."""
        doing = f"looking for volume {name} on machine {self._machine}"
        found = self._find(doing, name)
        if found is None:
            raise NotFound(doing, "it has no such volume")
        return self._seen(found)

    def arriving(self, name: str) -> Path | None:
        """The path of a volume that was taken from another machine, and is not settled here; None if there is none."""
        return self._find(f"looking for volume {name} on machine {self._machine}", _ARRIVING + name)

    def take(self, name: str, storage_class: str, source: VolumeFolders) -> None:
        """Take a volume from another machine, which loses it at once. Nothing happens if another process was faster."""
        doing = f"attaching volume {name} to machine {self._machine}"
        require_entry_name(doing, name)
        root, there = self._root(doing, storage_class), source.folder_of(name) or source.arriving(name)
        root.make(doing)
        if there is not None:
            with suppress(FileNotFoundError):
                there.rename(root.folder / (_ARRIVING + name))

    def settle(self, name: str) -> None:
        """Make an arriving volume this machine's."""
        found = self.arriving(name)
        if found is not None:
            found.rename(found.with_name(name))

    def _root(self, doing: str, storage_class: str) -> ClassRoot:
        try:
            return self._roots[storage_class]
        except KeyError:
            offered = ", ".join(self._roots)
            raise NotFound(doing, f"storage class {storage_class} does not exist", f"choose of: {offered}") from None

    def _find(self, doing: str, name: str) -> Path | None:
        """The folder of a volume. Raises as ``ClassRoot.is_there`` does, unless it is found."""
        away: list[Unavailable] = []
        for root in self._roots.values():
            try:
                if root.is_there(doing) and (root.folder / name).is_dir():
                    return root.folder / name
            except Unavailable as error:
                away.append(error)
        if away:
            raise away[0]
        return None

    def _class_of(self, volume: Path) -> str:
        return next(name for name, root in self._roots.items() if root.folder == volume.parent)

    def _seen(self, volume: Path) -> Volume:
        used, changed = _measured(volume)
        return Volume(
            name=volume.name,
            storage_class=self._class_of(volume),
            path=PurePosixPath(volume),
            used_bytes=used,
            changed=changed,
        )


def set_aside(volume: Path, aside: Path) -> None:
    """Empty a volume at once: its content goes to ``aside``, on the same disk. Raises OSError."""
    seen = volume.stat()
    volume.rename(aside)
    volume.mkdir(mode=0o700)
    if (seen.st_uid, seen.st_gid) != (os.geteuid(), os.getegid()):
        os.chown(volume, seen.st_uid, seen.st_gid)


def put_back(volume: Path, aside: Path) -> Path | None:
    """Undo ``set_aside``, unless the volume has new content by now, or was deleted: then return where the old content
    is kept.
    """
    if not aside.is_dir():
        return None
    try:
        volume.rmdir()
    except OSError:
        return aside
    aside.rename(volume)
    return None


def _names(folder: Path) -> tuple[str, ...]:
    """The entries of a folder; empty if it does not exist."""
    try:
        return tuple(sorted(os.listdir(folder)))  # noqa: PTH208 - asked several times a second: no Path for each
    except (FileNotFoundError, NotADirectoryError):
        return ()


def _measured(folder: Path) -> tuple[int, float | None]:
    """The disk space of the files below ``folder``, in bytes, and the last modification time.

    Files may come and go during the call.
    """
    total, newest = 0, None
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                seen = (Path(parent) / name).lstat()
            except FileNotFoundError:
                continue
            total += seen.st_blocks * 512
            newest = max(newest or 0.0, seen.st_mtime)
    return total, newest
