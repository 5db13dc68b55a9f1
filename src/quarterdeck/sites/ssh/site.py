"""The ssh driver: the user's own machines, each with quarterdeck's script and systemd."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import os
import statistics
import time
import zlib
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TypeVar

from typing_extensions import override

from quarterdeck.errors import (
    Conflict,
    LeaseLost,
    TimedOut,
    Unavailable,
)
from quarterdeck.files import on_disk
from quarterdeck.model.capabilities import (
    ClockOffset,
    DiskSync,
    Found,
    FreeMemory,
    Job,
    JobResult,
    Measure,
    RoundTrip,
    Search,
    found,
)
from quarterdeck.model.findings import Promise
from quarterdeck.model.seats import HostPort
from quarterdeck.model.units import (
    MachineState,
    Priority,
    Program,
    UnitFile,
    UnitSpec,
    UnitStatus,
    Volume,
)
from quarterdeck.sites.base.records import UnitRecord
from quarterdeck.sites.base.seats import SeatLedger, ledger_of, ledger_text
from quarterdeck.sites.kernel import listening_ends
from quarterdeck.sites.port import ChecksStorage, Holds
from quarterdeck.sites.ssh.attachment import SshAttaching
from quarterdeck.sites.ssh.connections import HostConnections
from quarterdeck.sites.ssh.faults import SshFaults
from quarterdeck.sites.ssh.host_queries import QUICK, SshAddresses, root_of
from quarterdeck.sites.ssh.hosts import SshHost, SshSettings
from quarterdeck.sites.ssh.limits import require_instances
from quarterdeck.sites.ssh.looks import read_look, read_volumes
from quarterdeck.sites.ssh.programs import Errand, Sender, is_program
from quarterdeck.sites.ssh.sending import Addressee
from quarterdeck.sites.ssh.unit_archive import UNITS, WEIGHT, files_archive, kept_record, unit_archive, unit_of
from quarterdeck.sites.ssh.volume_files import VolumeParcel
from quarterdeck.sites.ssh.wire import parsing

T = TypeVar("T")

_START = 90.0
_DELETE = 300.0
_SEARCH = 120.0
#: zlib's parameter for gzip's format.
_GZIP = 31
#: Writes of a disk measurement; the median counts.
_SYNCS = 9
#: Attempts to change seats, while other processes do.
_TRIES = 5


class SshSite(SshAttaching, SshFaults, SshAddresses, Holds, ChecksStorage):
    """A site of hosts; implements the ports Site, Holds, Floats, Leads and Faults. The state of units and volumes is on
    the hosts.
    """

    @override
    def folder(self, machine: str, unit: str) -> PurePosixPath:
        self.host(machine)
        return UNITS / unit / "files"

    @override
    async def units(self, machine: str) -> tuple[UnitStatus, ...]:
        doing = f"reading the units of machine {machine}"
        answer = await self._ask(self.host(machine), "look", "-", doing=doing, deadline=QUICK)
        look = read_look(doing, answer)
        if look.state is not MachineState.UP:
            raise Unavailable(doing, f"it is {'off' if look.state is MachineState.DOWN else 'frozen'}")
        return look.units_of(machine)

    @override
    async def install(self, machine: str, program: Program) -> PurePosixPath:
        """See Site: a file of this host is sent there, once."""
        doing = f"installing {program.name} on machine {machine}"
        host = self.host(machine)
        path = self._file_of(doing, program)
        if not await asyncio.to_thread(is_program, path):
            raise Unavailable(doing, f"{path} is not a program")
        errand = Errand(
            doing=doing,
            to=self._addressee(host),
            program=program,
            file=Path(path),
            plane=self._fence.plane if self._fence is not None else "",
        )
        return await self._sender.install(errand, fetch=self._settings.fetch_on_host)

    @override
    async def start_unit(self, machine: str, spec: UnitSpec) -> None:
        host, role = self._machine(machine)
        async with self._unit_locks[machine, spec.name]:
            await self._ask(
                host,
                "start",
                spec.name,
                "fresh" if spec.fresh else "again",
                doing=f"starting {spec.name} on machine {machine}",
                deadline=_START + spec.stop_timeout,
                body=unit_archive(machine, role, UnitRecord.of(spec), spec.files),
            )

    @override
    async def reload_unit(self, machine: str, spec: UnitSpec) -> None:
        host, role = self._machine(machine)
        doing = f"reloading {spec.name} on machine {machine}"
        async with self._unit_locks[machine, spec.name]:
            kept = await self._kept(host, spec.name, doing)
            if kept is None:
                raise Conflict(doing, "its running unit has another specification")
            body = unit_archive(machine, role, UnitRecord.of(spec).as_started(kept), spec.files)
            await self._ask(host, "reload", spec.name, doing=doing, deadline=QUICK, body=body)

    @override
    async def stop_unit(self, machine: str, unit: str, *, kill: bool = False) -> None:
        host, how = self.host(machine), "kill" if kill else "term"
        # no lock: a kill must not wait for the stop that takes too long
        await self._ask(host, "stop", unit, how, doing=f"stopping {unit} on machine {machine}", deadline=_DELETE)

    @override
    async def set_priority(self, machine: str, unit: str, priority: Priority) -> None:
        doing = f"changing the priority of {unit} on machine {machine}"
        weight = str(WEIGHT[priority])
        await self._ask(self.host(machine), "priority", unit, weight, doing=doing, deadline=QUICK)

    @override
    async def hold_unit(self, machine: str, unit: str, seconds: float) -> None:
        """See Holds: a timer of the host resumes it."""
        doing = f"pausing {unit} on machine {machine}"
        await self._ask(self.host(machine), "hold", unit, f"{seconds:.3f}", doing=doing, deadline=QUICK)

    @override
    async def let_go_unit(self, machine: str, unit: str) -> None:
        doing = f"resuming {unit} on machine {machine}"
        with suppress(LeaseLost):  # an older driver may resume it as well: that helps the waiting clients
            await self._ask(self.host(machine), "let-go", unit, doing=doing, deadline=QUICK)

    @override
    async def guard_unit(self, machine: str, unit: str, needs: PurePosixPath, boot_argv: tuple[str, ...] = ()) -> None:
        (host, role), doing = self._machine(machine), f"guarding {unit} on machine {machine}"
        async with self._unit_locks[machine, unit]:
            kept = await self._kept(host, unit, doing)
            if kept is not None and (guarded := kept.guarded(str(needs), boot_argv)) != kept:
                body = unit_archive(machine, role, guarded)
                await self._ask(host, "keep", unit, doing=doing, deadline=QUICK, body=body)

    async def _kept(self, host: SshHost, unit: str, doing: str) -> UnitRecord | None:
        answer = await self._ask(host, "spec", unit, doing=doing, deadline=QUICK)
        return kept_record(doing, answer) if answer else None

    @override
    async def remove_unit(self, machine: str, unit: str) -> None:
        async with self._unit_locks[machine, unit]:
            doing = f"removing {unit} from machine {machine}"
            await self._ask(self.host(machine), "remove", unit, doing=doing, deadline=_DELETE)

    @override
    async def run_job(self, machine: str, job: Job) -> JobResult:
        """See Site: as the user of etcd members."""
        host, doing = self.host(machine), f"running job {job.name} on machine {machine}"
        words = (*(f"{key}={value}" for key, value in job.env), *job.argv)
        body = b"".join(each.encode() + b"\0" for each in words)
        await self._ask(host, "admit", doing=doing, deadline=QUICK)
        try:
            answer = await self._ask(
                host,
                "job",
                f"{job.deadline + QUICK:.3f}",
                str(job.most_output),
                doing=doing,
                deadline=job.deadline,
                body=body,
                cancels=True,
            )
        except TimedOut:
            raise TimedOut(doing, f"not done within {job.deadline:g} s: it was killed") from None
        output, _, code = answer.rpartition(b"\n")
        cut = len(output) > job.most_output
        with parsing(doing, code) as text:
            number = int(text)
        return JobResult(
            exit_code=128 - number if number > 128 else number,
            output=output[-job.most_output :].decode(errors="replace") if cut else output.decode(errors="replace"),
            cut=cut,
        )

    @override
    async def write_files(self, machine: str, files: tuple[UnitFile, ...]) -> None:
        host, doing = self.host(machine), f"writing files on machine {machine}"
        await self._ask(host, "files", machine, doing=doing, deadline=QUICK, body=files_archive(files))

    @override
    async def remove_files(self, machine: str, paths: tuple[PurePosixPath, ...]) -> None:
        host, doing = self.host(machine), f"removing files from machine {machine}"
        lines = "".join(f"{unit} {path}\n" for unit, path in map(unit_of, paths))
        await self._ask(host, "remove-files", doing=doing, deadline=QUICK, body=lines.encode())

    @override
    async def logs(self, machine: str, unit: str, *, lines: int = 200) -> str:
        """See Site: of its journal."""
        doing = f"reading the log of {unit} on machine {machine}"
        answer = await self._ask(self.host(machine), "logs", unit, str(lines), doing=doing, deadline=QUICK)
        return answer.decode(errors="replace")

    @override
    async def create_volume(self, machine: str, name: str, storage_class: str) -> Volume:
        host, doing = self.host(machine), f"creating volume {name} on machine {machine}"
        wanted = self.storage_class(doing, storage_class)
        there = next((each for each in await self.volumes(machine) if each.name == name), None)
        if there is not None and there.storage_class != storage_class:
            raise Conflict(doing, f"it exists, of storage class {there.storage_class}")
        if wanted.commands is not None:
            return there or await self._create_attached(machine, name, wanted)
        answer = await self._ask(host, "create", root_of(wanted), name, doing=doing, deadline=QUICK)
        return read_volumes(doing, answer)[0]

    @override
    async def volumes(self, machine: str) -> tuple[Volume, ...]:
        host, doing = self.host(machine), f"listing the volumes of machine {machine}"
        return read_volumes(doing, await self._ask(host, "volumes", *self._roots(host), doing=doing, deadline=QUICK))

    @override
    async def list_volume(self, machine: str, name: str, below: str = "") -> tuple[str, ...]:
        host, doing = self.host(machine), f"listing volume {name} on machine {machine}"
        answer = await self._ask(host, "entries", name, below or "-", *self._roots(host), doing=doing, deadline=QUICK)
        return tuple(sorted(answer.decode(errors="replace").splitlines()))

    @override
    async def search_volume(self, machine: str, name: str, wanted: Search) -> Found:
        host, doing = self.host(machine), f"searching volume {name} on machine {machine}"
        words = ("search", name, wanted.files, str(int(wanted.since)), str(wanted.most), *self._roots(host))
        body = "".join(f"{each}\n" for each in wanted.texts).encode()
        answer = await self._ask(host, *words, doing=doing, deadline=_SEARCH, body=body)
        with parsing(doing, answer) as text:
            packed = base64.b64decode(text, validate=True)
            unpacked = zlib.decompressobj(wbits=_GZIP).decompress(packed, wanted.most + 1)
        return found(unpacked, wanted.most)

    @override
    async def delete_volume(self, machine: str, name: str) -> None:
        host, doing = self.host(machine), f"deleting volume {name} on machine {machine}"
        if self.reattachable:
            await self._delete_attached(host, name)
        await self._ask(host, "delete", name, *self._local_roots(host), doing=doing, deadline=_DELETE)

    @override
    async def fill_volume(self, machine: str, name: str, file: str, source: Path) -> PurePosixPath:
        host, doing = self.host(machine), f"filling volume {name} on machine {machine}"
        to = self._addressee(host)
        parcel = VolumeParcel(
            doing=doing,
            to=to.at,
            ask=partial(self._ask, host),
            volume=name,
            file=file,
            source=source,
            digest=await self._sender.digest(doing, source),
            length=await on_disk("this host", os.path.getsize, source),
            roots=self._roots(host),
        )
        async with to.at.locks[f"volume {name}"]:
            come = await parcel.come()
            volume = await self._volume_with_room(doing, machine, name, 0 if come is None else parcel.size - come)
            if come is not None:
                await self._sender.files.send(parcel, to, come)
        return volume.path / file

    def _addressee(self, host: SshHost) -> Addressee:
        return Addressee(at=self._hosts.at(host.login), host=f"{host.name} of {self.name}")

    @override
    async def free_bytes(self, machine: str, storage_class: str) -> int:
        host, doing = self.host(machine), f"reading the free space of machine {machine}"
        wanted = self.storage_class(doing, storage_class)
        answer = await self._ask(host, "free", root_of(wanted), doing=doing, deadline=QUICK)
        with parsing(doing, answer) as text:
            free, used = map(int, text.split())
        return free if wanted.limit_bytes is None else max(0, min(free, wanted.limit_bytes - used))

    @override
    async def require_room(self, doing: str, replicas: int) -> str:
        """See Site: each host has its own limits, which are tested there."""
        return await require_instances(self, self._settings, doing, replicas)

    @override
    async def _listening(self, machine: str, hosts: tuple[str, ...]) -> frozenset[HostPort]:
        doing = f"reading the listening ports of machine {machine}"
        answer = await self._ask(self.host(machine), "listening", doing=doing, deadline=QUICK)
        with parsing(doing, answer) as text:
            return listening_ends(text, hosts)

    @override
    async def _ledger(self, machine: str) -> SeatLedger:
        doing = f"reading the seats of machine {machine}"
        answer = await self._ask(self.host(machine), "ledger", doing=doing, deadline=QUICK)
        return ledger_of(doing, machine, answer) if answer else SeatLedger()

    @override
    async def _changed(self, machine: str, doing: str, change: Callable[[SeatLedger], tuple[SeatLedger, T]]) -> T:
        """The ledger keeps the fences as well; the host writes it only in place of the version that was changed."""
        host = self.host(machine)
        for _ in range(_TRIES):
            answer = await self._ask(host, "ledger", doing=doing, deadline=QUICK)
            before = ledger_of(doing, machine, answer) if answer else SeatLedger()
            after, result = change(before.admitting(self._fence))
            if after == before:
                return result
            known = hashlib.sha256(answer).hexdigest() if answer else "-"
            try:
                await self._ask(host, "keep-ledger", known, doing=doing, deadline=QUICK, body=ledger_text(after))
            except LeaseLost:
                raise
            except Conflict:
                continue
            return result
        raise TimedOut(doing, f"other processes changed it {_TRIES} times in the meantime")

    @override
    async def measure(self, machine: str, what: Measure) -> float:
        host, doing = self.host(machine), f"measuring machine {machine}"
        match what:
            case RoundTrip():
                words: tuple[str, ...] = ("round-trip", what.address, str(what.port))
            case DiskSync():
                words = ("sync", root_of(self.storage_class(doing, what.storage_class)), str(_SYNCS))
            case FreeMemory():
                words = ("memory",)
            case ClockOffset():
                words = ("clock",)
        before = time.time()
        answer = await self._ask(host, *words, doing=doing, deadline=QUICK)
        halfway = (before + time.time()) / 2
        with parsing(doing, answer) as text:
            match what:
                case RoundTrip():
                    return statistics.median(map(int, text.split())) / 1e6
                case DiskSync():
                    return statistics.median(map(float, text.split()))
                case FreeMemory():
                    return 1024.0 * int(text)
                case ClockOffset():
                    return float(text) - halfway

    @override
    def check_storage(self, storage_class: str, volume: str, first: str, second: str) -> AsyncIterator[Promise]:
        from quarterdeck.sites.ssh.storage_check import check_storage  # rarely used

        return check_storage(self, self, storage_class, volume, first, second)

    @override
    async def destroy(self) -> None:
        """See Site: everything on its machines; on a host that is another site's machine as well the rest stays."""
        await asyncio.gather(*(self._destroyed(each) for each in self._settings.hosts))

    async def _destroyed(self, host: SshHost) -> None:
        machines = ",".join(host.machine(role) for role in host.roles)
        doing = f"clearing host {host.name}"
        await self._ask(host, "destroy", machines, *self._local_roots(host), doing=doing, deadline=_DELETE)
        if self.reattachable:
            await self._destroy_attached(host)
        await self._hosts.at(host.login).close()  # its script accepts no further request of an earlier session


def open_ssh_site(settings: SshSettings, hosts: HostConnections, sender: Sender | None = None) -> SshSite:
    """The site as it is declared. No IO."""
    return SshSite(settings, hosts, sender or Sender())
