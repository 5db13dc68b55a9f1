"""What is kept of a unit where it runs, and when a unit may be started.

The record is enough to start the unit again after power loss, and to send it again with a change. Machines of local
sites read it in their supervisors, so this module needs the standard library only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from quarterdeck.model.units import Priority, UnitSpec, UnitState, UnitStatus, hashes_of, without_flags


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitRecord:
    """A unit as its machine starts it. See ``UnitSpec`` for what has the same name there.

    ``argv``: all arguments; those after the first ``given`` matter only at the first start. ``files``: the path and the
    hash (SHA-256) of each file that the unit was started with. ``wanted``: it should run, also after a boot. ``uid``:
    the user, and group, that it runs as; None: those that its machine chooses. A machine that has booted never begins
    without data, whatever ``fresh`` says.
    """

    name: str
    argv: tuple[str, ...]
    given: int
    env: tuple[tuple[str, str], ...]
    stop_timeout: float
    digest: str
    priority: Priority
    needs: str | None
    fresh: bool
    owns: tuple[str, ...]
    writes: tuple[str, ...]
    files: tuple[tuple[str, str], ...]
    restart_pause: float
    low_ports: bool
    after: tuple[str, ...]
    note: str
    wanted: bool = True
    uid: int | None = None

    @classmethod
    def of(cls, spec: UnitSpec) -> UnitRecord:
        """The record of a unit that is wanted to run."""
        return cls(
            name=spec.name,
            argv=spec.argv + spec.boot_argv,
            given=len(spec.argv),
            env=spec.env,
            stop_timeout=spec.stop_timeout,
            digest=spec.digest,
            priority=spec.priority,
            needs=None if spec.needs is None else str(spec.needs),
            fresh=spec.fresh,
            owns=tuple(map(str, spec.owns)),
            writes=tuple(map(str, spec.writes)),
            files=hashes_of(spec.files),
            restart_pause=spec.restart_pause,
            low_ports=spec.low_ports,
            after=spec.after,
            note=spec.note,
        )

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any]) -> UnitRecord:
        """The opposite of ``dataclasses.asdict``, also after JSON. Raises KeyError, TypeError, ValueError."""
        return cls(
            name=str(fields["name"]),
            argv=tuple(map(str, fields["argv"])),
            given=int(fields["given"]),
            env=tuple((str(key), str(value)) for key, value in fields["env"]),
            stop_timeout=float(fields["stop_timeout"]),
            digest=str(fields["digest"]),
            priority=Priority(fields["priority"]),
            needs=None if fields["needs"] is None else str(fields["needs"]),
            fresh=bool(fields["fresh"]),
            owns=tuple(map(str, fields["owns"])),
            writes=tuple(map(str, fields["writes"])),
            files=tuple((str(path), str(known)) for path, known in fields["files"]),
            restart_pause=float(fields["restart_pause"]),
            low_ports=bool(fields["low_ports"]),
            after=tuple(map(str, fields["after"])),
            note=str(fields["note"]),
            wanted=bool(fields["wanted"]),
            uid=None if fields["uid"] is None else int(fields["uid"]),
        )

    def differs_in_files_alone(self, spec: UnitSpec) -> bool:
        """Whether a spec is of the same program with the same arguments (those of its first start apart)."""
        given = self.argv[: self.given]
        return (self.name, given, self.env, self.stop_timeout) == (spec.name, spec.argv, spec.env, spec.stop_timeout)

    def guarded(self, needs: str, boot_argv: tuple[str, ...]) -> UnitRecord:
        """The same unit, which never starts without ``needs``. ``boot_argv`` (``--flag=value``) take the place of those
        of the same flags.
        """
        given = len(without_flags(self.argv[: self.given], boot_argv))
        argv = without_flags(self.argv, boot_argv) + boot_argv
        return replace(self, argv=argv, given=given, needs=needs, fresh=False)

    def as_started(self, before: UnitRecord) -> UnitRecord:
        """The same unit, started as one that runs is: with the arguments of that one's first start, and its data."""
        return replace(self, argv=self.argv[: self.given] + before.argv[before.given :], needs=before.needs)


def is_at_it(status: UnitStatus, known: UnitRecord | None, wanted: UnitRecord) -> bool:
    """Whether the unit runs as wanted, or is being tried again with exactly these arguments."""
    if status.digest != wanted.digest:
        return False
    if status.state is UnitState.RUNNING:
        return True
    if status.refused and wanted.fresh:
        return False  # what it may not do by itself is asked of it
    return status.state is UnitState.FAILED and known is not None and known.argv == wanted.argv


def refusal(needs: str, *, there: bool, had_data: bool, fresh: bool) -> str:
    """Why a unit must not be started now with the data that it ``needs``; "" when it may be.

    etcd that is started on an empty folder founds a new, empty cluster or joins one as if it had never promised
    anything: a member that lost its data must not come back as if nothing had been. ``had_data``: the unit is known to
    have had some. ``fresh``: it is to begin without data.
    """
    if there:
        return ""
    if had_data:
        return f"its data {needs} was there and is gone: put it back"
    return "" if fresh else f"it has no data yet at {needs}, and nobody asked it to begin without"
