"""The stored record of a unit, and the conditions under which a unit may be started.

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
    """A unit as its machine starts it. See ``UnitSpec`` for fields of the same name."""

    name: str
    #: All arguments.
    argv: tuple[str, ...]
    #: The number of leading arguments that always matter; those after them matter only at the first start.
    given: int
    env: tuple[tuple[str, str], ...]
    stop_timeout: float
    digest: str
    priority: Priority
    needs: str | None
    #: Whether it may start without data; never on a machine that has booted.
    fresh: bool
    owns: tuple[str, ...]
    writes: tuple[str, ...]
    #: The path and the hash (SHA-256) of each file that the unit was started with.
    files: tuple[tuple[str, str], ...]
    restart_pause: float
    low_ports: bool
    after: tuple[str, ...]
    note: str
    #: Whether it should run, also after a boot.
    wanted: bool = True
    #: The user, and group, that it runs as; None: those that its machine chooses.
    uid: int | None = None

    @classmethod
    def of(cls, spec: UnitSpec) -> UnitRecord:
        """The record of a unit that should run."""
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
        """Whether a spec is of the same program with the same arguments (except those of its first start)."""
        given = self.argv[: self.given]
        return (self.name, given, self.env, self.stop_timeout) == (spec.name, spec.argv, spec.env, spec.stop_timeout)

    def guarded(self, needs: str, boot_argv: tuple[str, ...]) -> UnitRecord:
        """The same unit, which never starts without ``needs``. ``boot_argv`` (``--flag=value``) replace those of the
        same flags.
        """
        given = len(without_flags(self.argv[: self.given], boot_argv))
        argv = without_flags(self.argv, boot_argv) + boot_argv
        return replace(self, argv=argv, given=given, needs=needs, fresh=False)

    def as_started(self, before: UnitRecord) -> UnitRecord:
        """The same unit, with the arguments of the first start of a running unit, and its data."""
        return replace(self, argv=self.argv[: self.given] + before.argv[before.given :], needs=before.needs)


def is_at_it(status: UnitStatus, known: UnitRecord | None, wanted: UnitRecord) -> bool:
    """Whether the unit runs as specified, or is being retried with exactly these arguments."""
    if status.digest != wanted.digest:
        return False
    if status.state is UnitState.RUNNING:
        return True
    if status.refused and wanted.fresh:
        return False  # a refused start is reported on request
    return status.state is UnitState.FAILED and known is not None and known.argv == wanted.argv


def refusal(needs: str, *, there: bool, had_data: bool, fresh: bool) -> str:
    """Why a unit must not be started now with the data that it ``needs``; "" when it may be.

    etcd that is started on an empty folder creates a new, empty cluster or joins one as if it had never voted: a member
    that lost its data must not come back like that. ``had_data``: the unit is known to have had some. ``fresh``: it may
    begin without data.
    """
    if there:
        return ""
    if had_data:
        return f"its data {needs} existed and is missing: restore it"
    return "" if fresh else f"it has no data yet at {needs}, and was not started as new"
