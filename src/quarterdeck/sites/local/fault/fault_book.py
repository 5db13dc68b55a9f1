"""The faults on the machines of a local site: recorded before they are made, one for each machine, so that a later
process can undo what its owner did not.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
from dataclasses import asdict, dataclass
from pathlib import Path

from quarterdeck import clocks
from quarterdeck.errors import Conflict, Corrupt
from quarterdeck.files import on_disk, sync_folder, write_temporary
from quarterdeck.model.faults import Fault, FaultKind
from quarterdeck.sites.local.fault.strace import let_go
from quarterdeck.sites.local.machine import LocalMachine
from quarterdeck.sites.local.volumes import put_back

#: Seconds that the process which must undo a fault has before others consider it dead.
_GRACE = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeFault:
    """A fault that is made, or about to be. ``until``: when it must end, on the clock of ``boot``. ``volume`` and
    ``aside``: the path of the volume whose data is lost, and that of its former content.
    """

    fault: Fault
    until: float
    boot: str
    volume: str = ""
    aside: str = ""

    @property
    def left(self) -> float:
        """Seconds until its time is over."""
        return self.until - clocks.steady() if self.boot == clocks.boot() else 0.0

    @property
    def forgotten(self) -> bool:
        """Whether its time was over a while ago and it was not undone, or the host has booted since."""
        return self.boot != clocks.boot() or self.left < -_GRACE

    def to_json(self) -> bytes:
        """Its file's content."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def from_json(cls, content: bytes, source: Path) -> MadeFault:
        """The fault in a file. Raises Corrupt."""
        try:
            read = json.loads(content)
            fault = read.pop("fault")
            return cls(fault=Fault(**{**fault, "kind": FaultKind(fault["kind"])}), **read)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            seen = f"it contains no fault ({error!r})"
            raise Corrupt(f"reading {source}", seen, "boot that machine, then delete the file") from error


@dataclass(frozen=True, slots=True)
class FaultBook:
    """The faults of one site, in files. Plain calls that may block."""

    folder: Path

    def all(self) -> tuple[MadeFault, ...]:
        """The current faults. Raises Corrupt."""
        try:
            names = sorted(os.listdir(self.folder))  # noqa: PTH208 - asked with each look: there hardly ever is one
        except (FileNotFoundError, NotADirectoryError):
            return ()
        found = (self.of(name) for name in names if not name.startswith("."))
        return tuple(each for each in found if each is not None)

    def of(self, machine: str) -> MadeFault | None:
        """That of a machine. Raises Corrupt."""
        path = self.folder / machine
        try:
            return MadeFault.from_json(path.read_bytes(), path)
        except FileNotFoundError:
            return None

    def begin(self, made: MadeFault) -> None:
        """Record one. Raises Conflict when its machine has one."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = self.folder / made.fault.machine
        temporary = write_temporary(path, made.to_json(), mode=0o600)
        try:
            os.link(temporary, path)
        except FileExistsError as error:
            known = self.of(made.fault.machine)
            seen = known.fault.words if known is not None else "another fault was just undone there"
            raise Conflict(
                f"making a fault ({made.fault.words})", seen, "one fault at a time on each machine"
            ) from error
        finally:
            temporary.unlink()
        sync_folder(self.folder)

    def end(self, machine: str) -> None:
        """It is undone. No error if that was recorded before."""
        (self.folder / machine).unlink(missing_ok=True)


async def undo(machine: LocalMachine, made: MadeFault) -> str:
    """Undo a fault, once or again. Returns what is left of it, as text ("": nothing)."""
    match made.fault.kind:
        case FaultKind.POWER_OFF:
            await machine.boot()
            await machine.rest()  # an unused machine needs no supervisor
        case FaultKind.FREEZE:
            await machine.thaw()
            await machine.rest()
        case FaultKind.CUT | FaultKind.DEAFEN:
            await machine.plug()
        case FaultKind.HANG_UNIT:
            await machine.ask(lambda client: client.let_go(made.fault.unit))
        case FaultKind.SLOW_DISK | FaultKind.FILL_DISK:
            await asyncio.to_thread(let_go, machine.mark)
        case FaultKind.LOSE_DATA:
            kept = await on_disk(machine.name, put_back, Path(made.volume), Path(made.aside))
            return f"the former content of volume {made.fault.volume} is kept in {kept}" if kept is not None else ""
        case _:
            raise NotImplementedError(made.fault.kind)
    return ""


def aside_of(volume: Path) -> Path:
    """The path for the content of a volume that is lost: next to it, with a name that no volume has."""
    return volume.with_name(f".aside-{volume.name}-{secrets.token_hex(4)}")
