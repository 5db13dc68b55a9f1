"""A unit in the form of a host's script: an archive with its record, its program, its environment and its
files. Pure.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import tarfile
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import PurePosixPath

from quarterdeck.components.traffic.keepalived import is_keepalived
from quarterdeck.errors import InvalidInput
from quarterdeck.model.units import MachineRole, Priority, UnitFile
from quarterdeck.sites.base.records import UnitRecord
from quarterdeck.sites.ssh.wire import parsing

UNITS = PurePosixPath("/var/lib/quarterdeck/units")
#: cgroup v2's CPUWeight, of which 100 is the default: controllers yield, and keep their leases on a busy host.
WEIGHT: Mapping[Priority, int] = {Priority.SERVING: 100, Priority.BACKGROUND: 33}
_PLAIN = re.compile(r"[A-Za-z0-9_./:=,@+-]+")
#: Seconds before an ended unit is restarted, at least.
_PAUSE = 0.25


def unit_archive(machine: str, role: MachineRole, record: UnitRecord, files: Iterable[UnitFile] = ()) -> bytes:
    """A unit of a machine in this role. Raises InvalidInput for a file that is not below the unit's folder."""
    members = [
        (PurePosixPath("record"), _lines(machine, role, record).encode(), 0o600),
        (PurePosixPath("spec.json"), json.dumps(asdict(record), indent=1).encode(), 0o600),
        (PurePosixPath("exec"), " ".join(map(quoted, record.argv)).encode(), 0o600),
        (PurePosixPath("env"), "".join(f"{key}={_value(value)}\n" for key, value in record.env).encode(), 0o600),
    ]
    folder = UNITS / record.name / "files"
    members += [("files" / _below(folder, each.path), each.content, each.mode) for each in files]
    return _tar(members)


def kept_record(doing: str, stored: bytes) -> UnitRecord:
    """A host's record of a unit. Raises Corrupt."""
    with parsing(doing, stored, "start the unit again") as text:
        return UnitRecord.from_fields(json.loads(text))


def account_of(role: MachineRole, record: UnitRecord) -> str:
    """The user of a unit: one for etcd members, one for the rest of control planes, one for edges, and one for units
    that may change the host's network.
    """
    if is_keepalived(record.name):
        return "quarterdeck-vrrp"
    if role is not MachineRole.CONTROL:
        return "quarterdeck-edge"
    return "quarterdeck-etcd" if record.needs is not None else "quarterdeck-api"


def _lines(machine: str, role: MachineRole, record: UnitRecord) -> str:
    program = json.dumps([record.name, record.argv[: record.given], record.env, record.stop_timeout])
    lines = [
        f"machine {machine}",
        f"account {account_of(role, record)}",
        f"digest {record.digest}",
        f"program {hashlib.sha256(program.encode()).hexdigest()}",
        f"weight {WEIGHT[record.priority]}",
        f"stop {record.stop_timeout:g}",
        f"pause {max(record.restart_pause, _PAUSE):g}",
        *([f"needs {record.needs}"] if record.needs is not None else []),
        *(["low-ports yes"] if record.low_ports else []),
        *(f"owns {each}" for each in (*record.owns, *record.writes)),
        *(f"after {each}" for each in record.after),
        *([f"note {record.note}"] if record.note else []),
        *(f"file {known} {path}" for path, known in record.files),
    ]
    return "\n".join(lines) + "\n"


def files_archive(files: Iterable[UnitFile]) -> bytes:
    """Files that units watch, in a folder for each unit. Raises InvalidInput for one that is below no unit's."""
    placed = [(unit_of(each.path), each) for each in files]
    return _tar((PurePosixPath(unit) / path, each.content, each.mode) for (unit, path), each in placed)


def unit_of(path: PurePosixPath) -> tuple[str, PurePosixPath]:
    """The unit of a file, and the file's path below that unit's folder. Raises InvalidInput."""
    inside = path.relative_to(UNITS).parts if path.is_relative_to(UNITS) else ()
    if len(inside) < 3 or inside[1] != "files" or ".." in path.parts:
        raise InvalidInput("writing the files of a unit", f"{path} is not below the folder of a unit")
    return inside[0], PurePosixPath(*inside[2:])


def _below(folder: PurePosixPath, path: PurePosixPath) -> PurePosixPath:
    if not path.is_relative_to(folder) or ".." in path.parts or path == folder:
        raise InvalidInput("writing the files of a unit", f"{path} is not below {folder}")
    return path.relative_to(folder)


def _tar(members: Iterable[tuple[PurePosixPath, bytes, int]]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for path, content, mode in members:
            head = tarfile.TarInfo(str(path))
            head.size, head.mode = len(content), mode
            tar.addfile(head, io.BytesIO(content))
    return out.getvalue()


def quoted(argument: str) -> str:
    """An argument as systemd reads it in ExecStart (systemd.service: COMMAND LINES). Raises InvalidInput for one that
    is invalid in a unit file.
    """
    if "\0" in argument:
        raise InvalidInput("starting a unit", "an argument contains a zero byte")
    plain = (
        argument.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("%", "%%").replace("$", "$$")
    )
    return plain if _PLAIN.fullmatch(plain) else f'"{plain}"'


def _value(text: str) -> str:
    """A value as systemd reads it in a file of an environment (systemd.exec: EnvironmentFile)."""
    if "\0" in text:
        raise InvalidInput("starting a unit", "a variable contains a zero byte")
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$").replace("`", "\\`") + '"'
