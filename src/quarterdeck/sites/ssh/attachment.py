"""Volumes of classes with users' commands: each belongs to one host at a time, and moves to another with its content.

A host has a claim of each volume that is its own; a claimed volume that is not mounted there is on its way, as after a
boot, or after an interrupted attach (``VolumeFacts.arriving``). To take a volume from a host: the other one gets a
claim, so that its target is visible; the former one, if it answers, starts nothing with it any more, and refuses if
something uses it; it is detached there; and it is attached. Each of these steps can be repeated.

When the former host does not answer, and this process has never observed it, the class of a volume is unknown. Then
each re-attachable class is tried: its commands report whether such a volume exists.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from contextlib import suppress
from enum import StrEnum

from typing_extensions import override

from quarterdeck.errors import Conflict, LeaseLost, NotFound, PreconditionFailed, QuarterdeckError, Unavailable
from quarterdeck.model.units import MachineRole, Volume
from quarterdeck.sites.ssh.host_queries import QUICK, SshHosts, root_of
from quarterdeck.sites.ssh.hosts import SshHost, SshStorageClass, VolumeRequest, run_command
from quarterdeck.sites.ssh.looks import read_look, read_volumes
from quarterdeck.sites.ssh.wire import parsing

#: Seconds to delete the content of a volume.
_DELETE = 300.0


class VolumeState(StrEnum):
    """The relation of a volume to a host."""

    LOCAL = "local"
    ATTACHED = "attached"
    CLAIMED = "claimed"  # it must be attached there
    AWAY = "away"  # the disk of its class is not mounted: unknown


#: By storage class: what a host has under one name.
Stands = Mapping[str, VolumeState]
_HAS = (VolumeState.LOCAL, VolumeState.ATTACHED)


class SshAttaching(SshHosts):
    """Creates, moves and deletes volumes that users' commands attach."""

    @override
    async def attach_volume(self, machine: str, name: str, source: str) -> Volume:
        doing = f"attaching volume {name} to machine {machine}"
        here, there = self.host(machine), self.host(source)
        await self._ask(here, "admit", doing=doing, deadline=QUICK)
        async with self._unit_locks["", name]:
            stands = await self._stands_of(doing, name, here)
            own, former = stands[here.name] or {}, stands[there.name]
            if any(each in _HAS for each in own.values()):
                if there is not here and any(each in _HAS for each in (former or {}).values()):
                    seen = f"machine {source} also has a volume of that name"
                    raise Conflict(doing, seen, "find out which of them has the data; nothing was changed")
                return await self._volume(doing, here, name)
            for other, held in stands.items():
                if other not in (here.name, there.name) and VolumeState.ATTACHED in (held or {}).values():
                    raise NotFound(doing, f"machine {source} has no such volume: host {other} has it")
            for storage_class in self._candidates(doing, name, source, own, former):
                volume = await self._moved(doing, storage_class, name, here, there, answers=former is not None)
                if volume is not None:
                    return volume
        raise NotFound(doing, f"machine {source} has no such volume")

    def _candidates(
        self, doing: str, name: str, source: str, own: Stands, former: Stands | None
    ) -> tuple[SshStorageClass, ...]:
        """The possible classes of a volume. Raises NotFound, Unavailable, PreconditionFailed for a local one."""
        known = {**(former or {}), **own}
        if former is None and not own and (seen := self._seen_classes.get((source, name))):
            known = {seen: VolumeState.CLAIMED if seen in self.reattachable else VolumeState.LOCAL}
        if former is not None and not known:
            raise NotFound(doing, f"machine {source} has no such volume")
        for storage_class, stand in known.items():
            if stand is VolumeState.LOCAL:
                raise PreconditionFailed(doing, f"volumes of storage class {storage_class} are local to their machine")
        found = tuple(each for each, stand in known.items() if stand is not VolumeState.AWAY)
        if known and not found:
            raise Unavailable(
                doing, f"the disk of storage class {next(iter(known))} is not mounted on machine {source}"
            )
        if not self.reattachable:
            raise PreconditionFailed(
                doing, f"the volumes of site {self.name} are local", "another member takes its place"
            )
        return tuple(self._classes[each] for each in found or sorted(self.reattachable))

    async def _moved(
        self, doing: str, storage_class: SshStorageClass, name: str, here: SshHost, there: SshHost, *, answers: bool
    ) -> Volume | None:
        """The volume, taken from ``there``; None where no such volume is of that class."""
        root = root_of(storage_class)
        await self._claimed(doing, root, name, here)
        if there is not here:
            if answers:
                await self._released(doing, root, name, here, there)
            if not await self.command(doing, storage_class, "detach", name, there):
                await self._disclaimed(doing, root, name, here)
                return None
            await self._ask(here, "admit", doing=doing, deadline=QUICK)
        if not await self.command(doing, storage_class, "attach", name, here):
            await self._disclaimed(doing, root, name, here)
            return None
        answer = await self._ask(here, "settle", root, name, doing=doing, deadline=QUICK)
        self._seen_classes[here.name, name] = storage_class.name
        if answers and there is not here:
            await self._disclaimed(doing, root, name, there)
        return read_volumes(doing, answer)[0]

    async def _released(self, doing: str, root: str, name: str, here: SshHost, there: SshHost) -> None:
        """Nothing starts with it any more at its former host."""
        try:
            await self._ask(there, "release", root, name, doing=doing, deadline=QUICK)
        except LeaseLost:
            raise
        except Conflict:
            await self._disclaimed(doing, root, name, here)
            raise Conflict(doing, f"machine {there.name} answers, and uses it") from None

    async def _claimed(self, doing: str, root: str, name: str, host: SshHost) -> None:
        now = str(int(time.time() * 1000))
        await self._ask(host, "claim", root, name, now, doing=doing, deadline=QUICK)

    async def _disclaimed(self, doing: str, root: str, name: str, host: SshHost) -> None:
        await self._ask(host, "disclaim", root, name, doing=doing, deadline=QUICK)

    async def command(
        self, doing: str, storage_class: SshStorageClass, which: str, name: str, host: SshHost, **more: object
    ) -> bool:
        """Run a class's command about a volume. Whether the volume exists. Raises Unavailable, TimedOut."""
        commands = storage_class.commands
        assert commands is not None
        argv: tuple[str, ...] = getattr(commands, which)
        asked = VolumeRequest(
            volume=name,
            storage_class=storage_class.name,
            host=host.name,
            address=host.address,
            path=str(storage_class.folder / name),
            **more,  # type: ignore[arg-type]
        )
        return await run_command(f"{doing}: {which} of storage class {storage_class.name}", argv, asked)

    async def snapshot_volume(self, machine: str, name: str, snapshot: str) -> None:
        """Create a consistent copy of a volume's current content, with the name ``snapshot``. Nothing happens if it
        exists.

        Raises NotFound where there is no such volume, PreconditionFailed for a class without snapshots, Unavailable,
        LeaseLost.
        """
        doing, host = f"taking snapshot {snapshot} of volume {name} on machine {machine}", self.host(machine)
        await self._ask(host, "admit", doing=doing, deadline=QUICK)
        held = await self.stands_at(doing, name, host)
        storage_class = next((self._classes[each] for each, stand in held.items() if stand in _HAS), None)
        if storage_class is None:
            raise NotFound(doing, "it has no such volume")
        if storage_class.commands is None or not storage_class.commands.snapshot:
            raise PreconditionFailed(doing, f"storage class {storage_class.name} has no command that takes snapshots")
        if not await self.command(doing, storage_class, "snapshot", name, host, snapshot=snapshot):
            raise NotFound(doing, f"the storage of class {storage_class.name} has no such volume")

    async def _create_attached(self, machine: str, name: str, storage_class: SshStorageClass) -> Volume:
        """See Site.create_volume: one that exists in the user's storage is attached, unless another host has it."""
        doing, host, root = f"creating volume {name} on machine {machine}", self.host(machine), root_of(storage_class)
        async with self._unit_locks["", name]:
            stands = await self._stands_of(doing, name, host)
            for other, held in stands.items():
                if other != host.name and any(
                    each in (VolumeState.ATTACHED, VolumeState.CLAIMED) for each in (held or {}).values()
                ):
                    raise Conflict(
                        doing, f"host {other} has it", "find out which of them has the data; nothing was changed"
                    )
            if (stands[host.name] or {}).get(storage_class.name) is VolumeState.ATTACHED:
                return await self._volume(doing, host, name)
            await self._claimed(doing, root, name, host)
            try:
                if not await self.command(doing, storage_class, "attach", name, host, make=True):
                    raise Unavailable(doing, f"attach of storage class {storage_class.name} created none")
            except Unavailable:
                with suppress(QuarterdeckError):  # its output says why it was not created
                    await self._disclaimed(doing, root, name, host)
                raise
            answer = await self._ask(host, "settle", root, name, doing=doing, deadline=QUICK)
        self._seen_classes[host.name, name] = storage_class.name
        return read_volumes(doing, answer)[0]

    async def _delete_attached(self, host: SshHost, name: str) -> None:
        """Delete the content of a volume, and detach it, if the host has it or a claim of it."""
        doing = f"deleting volume {name} on machine {host.name}"
        for each in await self.stands_at(doing, name, host):
            storage_class = self._classes[each]
            if storage_class.commands is None:
                continue
            async with self._unit_locks["", name]:
                if await self._is_whole(doing, storage_class, name, host):
                    root = root_of(storage_class)
                    await self._ask(host, "empty", root, name, doing=doing, deadline=_DELETE)
                    await self.command(doing, storage_class, "detach", name, host)
                await self._disclaimed(doing, root_of(storage_class), name, host)

    async def _destroy_attached(self, host: SshHost) -> None:
        """Delete the content of all volumes of which a host has a claim, and detach them."""
        if not self._roots(host):
            return
        doing = f"clearing host {host.name}"
        look = read_look(doing, await self._ask(host, "look", "-", *self._roots(host), doing=doing, deadline=QUICK))
        for volume in look.volumes:
            if volume.storage_class in self.reattachable:
                await self._delete_attached(host, volume.name)
        for each in sorted(self.reattachable):
            await self._ask(host, "forget-class", root_of(self._classes[each]), doing=doing, deadline=QUICK)

    async def _is_whole(self, doing: str, storage_class: SshStorageClass, name: str, host: SshHost) -> bool:
        """Attach a volume of which a host has a claim. False where another host has it, or none. Raises Unavailable
        where that is unknown.
        """
        stands = await self._stands_of(doing, name, host)
        if (stands[host.name] or {}).get(storage_class.name) is VolumeState.ATTACHED:
            return True
        if any(VolumeState.ATTACHED in (held or {}).values() for held in stands.values()):
            return False
        if silent := [other for other, held in stands.items() if held is None]:
            raise Unavailable(doing, f"host {silent[0]} does not answer, and may have it")
        if not await self.command(doing, storage_class, "attach", name, host):
            return False
        await self._ask(host, "settle", root_of(storage_class), name, doing=doing, deadline=QUICK)
        return True

    async def _volume(self, doing: str, host: SshHost, name: str) -> Volume:
        answer = await self._ask(host, "volumes", *self._roots(host), doing=doing, deadline=QUICK)
        return next(each for each in read_volumes(doing, answer) if each.name == name)

    async def _stands_of(self, doing: str, name: str, needed: SshHost) -> Mapping[str, Stands | None]:
        """What each host has of that name; None for one that does not answer, unless it is the ``needed`` one. A claim
        that is older than another host's attached volume is void: see ``_without_old_claims``.
        """
        hosts = [each for each in self._settings.hosts if MachineRole.CONTROL in each.roles]

        async def one(host: SshHost) -> Mapping[str, tuple[VolumeState, int]] | None:
            try:
                return await self._held_at(doing, name, host)
            except (Unavailable, PreconditionFailed):
                if host is needed:
                    raise
                return None

        found = await asyncio.gather(*map(one, hosts))
        attached = [since for held in found for stand, since in (held or {}).values() if stand is VolumeState.ATTACHED]
        newest = max(attached, default=0)
        return {
            host.name: None
            if held is None
            else {
                storage_class: stand
                for storage_class, (stand, since) in held.items()
                if storage_class not in self.reattachable or since >= newest
            }
            for host, held in zip(hosts, found, strict=True)
        }

    async def stands_at(self, doing: str, name: str, host: SshHost) -> Stands:
        """What a host has of that name. Raises Unavailable."""
        return {storage_class: stand for storage_class, (stand, _) in (await self._held_at(doing, name, host)).items()}

    async def _held_at(self, doing: str, name: str, host: SshHost) -> Mapping[str, tuple[VolumeState, int]]:
        """The same, each with the start of its claim."""
        answer = await self._ask(host, "where", name, *self._roots(host), doing=doing, deadline=QUICK)
        with parsing(f"{doing}, on host {host.name}", answer) as text:
            rows = (line.split() for line in text.splitlines())
            return {storage_class: (VolumeState(stand), int(*since or ("0",))) for storage_class, stand, *since in rows}
