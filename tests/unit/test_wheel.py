"""What is installed: the package, and nothing that only tests or the project itself need."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_wheel_has_the_package_and_no_fake_of_a_port(tmp_path: Path) -> None:
    build = (sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path))
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, timeout=120)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    parts = {name.partition("/")[0] for name in names}
    assert parts == {"quarterdeck", next(each for each in parts if each.endswith(".dist-info"))}
    assert {"quarterdeck/py.typed", "quarterdeck/stores/sqlite.py"} <= {*names}
    assert [name for name in names if "fake" in name.rpartition("/")[2]] == []
    fakes = {path.read_bytes() for path in (ROOT / "tests" / "fakes").glob("*.py")}
    with zipfile.ZipFile(wheel) as archive:
        assert not fakes & {archive.read(name) for name in names}
