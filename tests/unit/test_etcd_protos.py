"""The committed stubs are those that scripts/protos makes from the committed .proto files."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = Path("quarterdeck/etcd/rpc")


def test_the_committed_stubs_are_what_the_script_makes(tmp_path: Path) -> None:
    subprocess.run(
        [ROOT / "scripts/protos", tmp_path],
        check=True,
        timeout=60,
        env={**os.environ, "QD_PYTHON": sys.executable},
    )
    made = {path.name: path.read_text() for path in (tmp_path / FOLDER).iterdir()}
    committed = {
        path.name: path.read_text()
        for path in (ROOT / "src" / FOLDER).iterdir()
        if "_pb2" in path.name and path.suffix in {".py", ".pyi"}
    }
    assert made.keys() == committed.keys()
    assert made == committed, "run scripts/protos"
