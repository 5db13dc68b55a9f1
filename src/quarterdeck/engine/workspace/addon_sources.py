"""Reading the sources of add-ons: text, files, folders and charts, once, when a plane is created or applied."""

from __future__ import annotations

import asyncio
import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from quarterdeck.addons.content import TOTAL_MAX
from quarterdeck.addons.manifests import parsed
from quarterdeck.addons.objects import Manifest
from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.plane.addons import Addon, Chart
from quarterdeck.errors import InvalidInput, PreconditionFailed, TimedOut
from quarterdeck.files import file_errors
from quarterdeck.input_files import UnreadableFileError, read_text
from quarterdeck.runner import ProcessResult, run, start

#: Seconds for ``helm``, which may have to download the chart.
_RENDERING = 120.0
_FILES = (".yaml", ".yml", ".json")
#: Characters of the last output of ``helm``.
_LAST_WORDS = 300


async def read(plane: ControlPlane, addon: Addon) -> tuple[Manifest, ...]:
    """The present objects of an add-on's source.

    Raises InvalidInput (by path, with document and line), PreconditionFailed without ``helm``, TimedOut when it does
    not end.
    """
    where = f"spec.addons[{addon.name}]"
    if addon.helm is not None:
        source = f"{where}.helm: what {addon.helm.chart} renders"
        return await asyncio.to_thread(parsed, await _rendered(plane, addon, addon.helm), source)
    return await asyncio.to_thread(_read, addon, where)


def _read(addon: Addon, where: str) -> tuple[Manifest, ...]:
    if addon.inline is not None:
        return parsed(addon.inline, f"{where}.inline")
    if addon.file is not None:
        path = Path(addon.file)
        return parsed(_text(path, f"{where}.file"), f"{where}.file: {path}")
    found = (parsed(_text(each, f"{where}.folder"), f"{where}.folder: {each}") for each in _files(addon, where))
    return tuple(manifest for manifests in found for manifest in manifests)


def _files(addon: Addon, where: str) -> Iterator[Path]:
    """The files of a folder, by name, without subfolders, as with ``kubectl apply -f``."""
    folder = Path(addon.folder or "")
    try:
        names = sorted(each for each in folder.iterdir() if each.suffix in _FILES and not each.name.startswith("."))
    except OSError as error:
        raise _unusable(f"{where}.folder", folder, str(error.strerror)) from error
    if not names:
        raise _unusable(f"{where}.folder", folder, f"there is no file that ends with {', '.join(_FILES)}")
    yield from names


def _text(path: Path, where: str) -> str:
    try:
        return read_text(path, TOTAL_MAX)
    except UnreadableFileError as error:
        raise _unusable(where, path, str(error)) from error


def _unusable(where: str, path: Path, seen: str) -> InvalidInput:
    return InvalidInput(f"reading {where}", f"{path}: {seen}", "create it, or name another one")


async def _rendered(plane: ControlPlane, addon: Addon, chart: Chart) -> str:
    """The output of ``helm template`` for a chart. Hooks and tests are left out: nothing would run them."""
    doing = f"rendering spec.addons[{addon.name}].helm"
    program = shutil.which("helm")
    if program is None:
        raise PreconditionFailed(doing, "there is no program 'helm' on the path", "install it, or use plain manifests")
    argv = [program, "template", chart.release or addon.name, chart.chart]
    argv += ["--namespace", addon.namespace, "--kube-version", plane.spec.kubernetes_version]
    argv += ["--include-crds", "--no-hooks", "--skip-tests"]
    argv += ["--repo", chart.repository] if chart.repository is not None else []
    argv += ["--version", chart.version] if chart.version is not None else []
    # Values may contain passwords: a folder with mode 0700, and not the command line.
    with file_errors(doing), tempfile.TemporaryDirectory(prefix="quarterdeck-") as folder:
        values = Path(folder) / "values.json"
        values.write_text(json.dumps(chart.values))
        try:
            by = start(folder=Path(folder))
            done = await run([*argv, "--values", str(values)], doing=doing, deadline=_RENDERING, by=by)
        except TimedOut as error:
            raise TimedOut(
                doing, f"helm did not end in {_RENDERING:.0f} s", "check that its repository is reachable"
            ) from error
    if done.code != 0:
        raise InvalidInput(doing, f"helm failed: {_last_words(done)}", "fix the chart or its values")
    if len(done.output) > TOTAL_MAX:
        raise InvalidInput(doing, f"it renders more than {TOTAL_MAX // 2**20} MiB")
    return done.output


def _last_words(done: ProcessResult) -> str:
    words = " ".join((done.errors or done.output).split())
    return (words or f"exit code {done.code}")[-_LAST_WORDS:]
