"""Become nobody (uid 65534, no capabilities) and run the rest of the argv. To be started by root.

What nobody may not read on the way to the interpreter and to this checkout, say /root, is made readable in a mount
namespace of this process's own, by an overlay: the files themselves stay as they are.
"""

from __future__ import annotations

import ctypes
import os
import sys
import tempfile
from pathlib import Path

CLONE_NEWNS, MS_REC, MS_PRIVATE = 0x20000, 0x4000, 1 << 18
NOBODY = 65534


def mount(source: str, target: Path, kind: str, flags: int, options: str) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(source.encode(), bytes(target), kind.encode(), flags, options.encode()) < 0:
        raise OSError(ctypes.get_errno(), f"mount {target}: {os.strerror(ctypes.get_errno())}")


def closed_folders(paths: list[Path]) -> list[Path]:
    """The folders on the way to these that others may not pass, the upper ones first."""
    folders = {parent for path in paths for parent in (path, *path.parents)}
    return sorted((each for each in folders if not each.stat().st_mode & 0o001), key=lambda each: len(each.parts))


def main() -> None:
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNS) < 0:
        raise OSError(ctypes.get_errno(), "unshare")
    mount("none", Path("/"), "", MS_REC | MS_PRIVATE, "")
    needed = [Path(sys.executable).parent, Path(sys.prefix), Path(sys.base_prefix), Path(__file__).parent]
    scratch = Path(tempfile.gettempdir())
    layers = closed_folders(needed)
    if layers:
        mount("tmpfs", Path("/mnt"), "tmpfs", 0, "mode=0755")
        scratch = Path("/mnt")
    covered: list[Path] = []
    for folder in layers:
        if not any(each in folder.parents for each in covered):  # few overlays may lie on one another
            upper, work = scratch / f"upper{len(covered)}", scratch / f"work{len(covered)}"
            upper.mkdir()
            work.mkdir()
            mount("overlay", folder, "overlay", 0, f"lowerdir={folder},upperdir={upper},workdir={work}")
            covered.append(folder)
        folder.chmod(0o755)
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)
    os.environ |= {"HOME": "/nonexistent", "PYTHONDONTWRITEBYTECODE": "1"}
    os.execv(sys.executable, [sys.executable, *sys.argv[1:]])


if __name__ == "__main__":
    main()
