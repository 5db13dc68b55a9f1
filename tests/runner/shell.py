"""Has shellcheck look at every shell script. ``python -m runner.shell FOLDER``: what is in pieces is joined there."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from quarterdeck.sites import vrrp
from quarterdeck.sites.ssh import wire

ROOT = Path(__file__).parents[2]
#: Folders with pieces of scripts: what one of them sets another one reads.
PIECES = ("src/quarterdeck/sites/ssh/host", "src/quarterdeck/sites/ssh/drill", "src/quarterdeck/sites/vrrp")
_SHELLS = (b"/sh", b"/bash", b" sh", b" bash")
_FOLDERS = ("src", "tests", "bench", "examples", ".ci")


def scripts(root: Path = ROOT) -> Iterator[Path]:
    """All but pieces: what is called .sh, and what begins as shell scripts do."""
    pieces = [root / each for each in PIECES]
    folders = [each for name in _FOLDERS for each in (root / name).rglob("*")]
    for path in sorted((*root.iterdir(), *(root / "scripts").iterdir(), *folders)):
        if path.is_file() and path.parent not in pieces and is_shell(path):
            yield path


def is_shell(path: Path) -> bool:
    """Whether a file is a shell script."""
    with path.open("rb") as file:
        first = file.readline(100).rstrip()
    return path.suffix == ".sh" or (first.startswith(b"#!") and first.endswith(_SHELLS))


def main(folder: Path) -> int:
    """The exit code of shellcheck: 0 if it finds nothing."""
    folder.mkdir(parents=True, exist_ok=True)
    joined = {folder / "host.sh": wire.script() + b"\n" + wire.faults(), folder / "vrrp.sh": vrrp.script()}
    for path, text in joined.items():
        path.write_bytes(text)
    argv = ["shellcheck", "--external-sources", "--source-path=SCRIPTDIR", *map(str, (*joined, *scripts()))]
    return subprocess.run(argv, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
