"""A unit as a host's script takes it: an archive with its record, its program, its environment and its files. Pure."""

from __future__ import annotations

import hashlib
import io
import json
import re
import tarfile
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import PurePosixPath

from quarterdeck.components.traffic.keepalived import KEEPALIVED
from quarterdeck.errors import InvalidInput
from quarterdeck.model.units import MachineRole, Priority, UnitFile, UnitSpec, hashes_of, without_flags
from quarterdeck.sites.ssh.parsing import parsing

UNITS = PurePosixPath("/var/lib/quarterdeck/units")
#: cgroup v2's CPUWeight, of which 100 is usual: controllers give way, and keep their leases on a busy host.
WEIGHT: Mapping[Priority, int] = {Priority.SERVING: 100, Priority.BACKGROUND: 33}
_PLAIN = re.compile(r"[A-Za-z0-9_./:=,@+-]+")
#: Seconds before a unit that ended by itself is started again, at least.
_PAUSE = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What a host keeps of a unit, so that it can be told again with a change. Of ``argv`` all but the first ``given``
    matter only at the first start.
    """

    machine: str
    role: MachineRole
    name: str
    argv: tuple[str, ...]
    given: int
    env: tuple[tuple[str, str], ...]
    stop_timeout: float
    digest: str
    weight: int
    needs: str | None
    owns: tuple[str, ...]
    files: tuple[tuple[str, str], ...]
    restart_pause: float
    low_ports: bool
    after: tuple[str, ...]

    @classmethod
    def of(cls, machine: str, role: MachineRole, spec: UnitSpec) -> Kept:
        """A unit of a machine in this role."""
        return cls(
            machine=machine,
            role=role,
            name=spec.name,
            argv=spec.argv + spec.boot_argv,
            given=len(spec.argv),
            env=spec.env,
            stop_timeout=spec.stop_timeout,
            digest=spec.digest,
            weight=WEIGHT[spec.priority],
            needs=None if spec.needs is None else str(spec.needs),
            owns=tuple(map(str, (*spec.owns, *spec.writes))),
            files=hashes_of(spec.files),
            restart_pause=spec.restart_pause,
            low_ports=spec.low_ports,
            after=spec.after,
        )

    @classmethod
    def read(cls, doing: str, said: bytes) -> Kept:
        """What was kept. Raises Corrupt."""
        with parsing(doing, said, "start the unit again") as text:
            found = json.loads(text)
            return cls(
                machine=found["machine"],
                role=MachineRole(found["role"]),
                name=found["name"],
                argv=tuple(found["argv"]),
                given=found["given"],
                env=tuple((key, value) for key, value in found["env"]),
                stop_timeout=found["stop_timeout"],
                digest=found["digest"],
                weight=found["weight"],
                needs=found["needs"],
                owns=tuple(found["owns"]),
                files=tuple((path, known) for path, known in found["files"]),
                restart_pause=found["restart_pause"],
                low_ports=found["low_ports"],
                after=tuple(found["after"]),
            )

    def guarded(self, needs: str, boot_argv: tuple[str, ...]) -> Kept:
        """The same unit, which never starts without ``needs``; see ``Site.guard_unit``."""
        given = len(without_flags(self.argv[: self.given], boot_argv))
        return replace(self, argv=without_flags(self.argv, boot_argv) + boot_argv, given=given, needs=needs)

    def as_started(self, before: Kept) -> Kept:
        """The same unit, started as one that runs is: with the arguments of that one's first start, and its data."""
        return replace(self, argv=self.argv[: self.given] + before.argv[before.given :], needs=before.needs)

    @property
    def account(self) -> str:
        """The user that it runs as: one for members of etcd, one for the rest of control planes, one for edges, and one
        for what may change the host's network.
        """
        if self.name == KEEPALIVED:
            return "quarterdeck-vrrp"
        if self.role is not MachineRole.CONTROL:
            return "quarterdeck-edge"
        return "quarterdeck-etcd" if self.needs is not None else "quarterdeck-api"

    def archive(self, files: Iterable[UnitFile] = ()) -> bytes:
        """The archive. Raises InvalidInput for a file that is not below its folder."""
        members = [
            (PurePosixPath("record"), self._record().encode(), 0o600),
            (PurePosixPath("spec.json"), json.dumps(asdict(self), indent=1).encode(), 0o600),
            (PurePosixPath("exec"), " ".join(map(quoted, self.argv)).encode(), 0o600),
            (PurePosixPath("env"), "".join(f"{key}={_value(value)}\n" for key, value in self.env).encode(), 0o600),
        ]
        folder = UNITS / self.name / "files"
        members += [("files" / _below(folder, each.path), each.content, each.mode) for each in files]
        return _tar(members)

    def _record(self) -> str:
        program = json.dumps([self.name, self.argv[: self.given], self.env, self.stop_timeout])
        lines = [
            f"machine {self.machine}",
            f"account {self.account}",
            f"digest {self.digest}",
            f"program {hashlib.sha256(program.encode()).hexdigest()}",
            f"weight {self.weight}",
            f"stop {self.stop_timeout:g}",
            f"pause {max(self.restart_pause, _PAUSE):g}",
            *([f"needs {self.needs}"] if self.needs is not None else []),
            *(["low-ports yes"] if self.low_ports else []),
            *(f"owns {each}" for each in self.owns),
            *(f"after {each}" for each in self.after),
            *(f"file {known} {path}" for path, known in self.files),
        ]
        return "\n".join(lines) + "\n"


def files_archive(files: Iterable[UnitFile]) -> bytes:
    """Files that units watch, in a folder for each unit. Raises InvalidInput for one that is below no unit's."""
    placed = [(whose(each.path), each) for each in files]
    return _tar((PurePosixPath(unit) / path, each.content, each.mode) for (unit, path), each in placed)


def whose(path: PurePosixPath) -> tuple[str, PurePosixPath]:
    """The unit whose file that is, and where below that one's folder. Raises InvalidInput."""
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
    no unit file can have.
    """
    if "\0" in argument:
        raise InvalidInput("starting a unit", "an argument has a zero in it")
    plain = (
        argument.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("%", "%%").replace("$", "$$")
    )
    return plain if _PLAIN.fullmatch(plain) else f'"{plain}"'


def _value(text: str) -> str:
    """A value as systemd reads it in a file of an environment (systemd.exec: EnvironmentFile)."""
    if "\0" in text:
        raise InvalidInput("starting a unit", "a variable has a zero in it")
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$").replace("`", "\\`") + '"'
