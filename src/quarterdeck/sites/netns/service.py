"""The keeper's requests: each makes the lab match its layout."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from pyroute2.netlink.exceptions import NetlinkError  # type: ignore[import-untyped]

from quarterdeck.errors import InvalidInput, NotFound, Unavailable
from quarterdeck.files import write_atomic
from quarterdeck.linux import calls
from quarterdeck.sites.netns.layout import SHARED, LabMachine, LabSite, Layout, Way, seat_addresses
from quarterdeck.sites.netns.wiring import Wiring

Answer = tuple[str, tuple[int, ...]]
"""Text, and descriptors that the service keeps."""


class LabService:
    """The lab itself, in the process that holds it. ``file`` keeps the layout."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._forwarder: Forwarder | None = None
        self._layout = Layout()
        with suppress(FileNotFoundError):
            self._layout = Layout.from_json(file.read_bytes())
        with _kernel("building the network of the lab"):
            self._user = calls.open_namespace("self", "user")
            self._wiring = Wiring()
            self._wiring.add_site(0)
            for number in SHARED.values():
                self._wiring.add_host(0, number)
            for site in self._layout.sites:
                self._wiring.add_site(site.number)
            for machine in self._layout.machines:
                self._add_host(self._layout, machine)
            self._set_ways(self._layout)

    @property
    def forwarder_ends(self) -> int | None:
        """A descriptor that is readable when the forwarder has ended; None while there is none."""
        return self._forwarder.descriptor if self._forwarder else None

    def replace_forwarder(self) -> None:
        """Start another forwarder for one that has ended. Until then its packets are lost, never undelayed."""
        assert self._forwarder is not None
        sys.stderr.write(f"the forwarder (process {self._forwarder.pid}) has ended; starting another\n")
        self._drop_forwarder()
        try:
            self._set_delays(self._layout)
        except Unavailable as error:
            sys.stderr.write(f"{error}\n")

    def carry_out(self, words: Sequence[str]) -> Answer:
        """Carry out a request; every request may be repeated. Raises the error for the caller."""
        match words:
            case ["ping"] | ["end"]:
                return "", ()
            case ["layout"]:
                return self._layout.to_json().decode(), ()
            case ["enter", where]:
                return "", (self._user, self._namespace(where))
            case ["site", name, number]:
                self._site(LabSite(name=name, number=int(number)))
            case ["machine", site, name, number]:
                self._machine(LabMachine(site=site, name=name, number=int(number)))
            case ["addresses", site, name]:
                place = self._layout.number(site), self._known(site, name).number
                return " ".join(seat_addresses(*place)), ()
            case ["unplug", site, name]:
                self._plug(self._known(site, name), plugged=False)
            case ["deafen", site, name]:
                self._plug(self._known(site, name), plugged=True, deaf=True)
            case ["plug", site, name]:
                self._plug(self._known(site, name), plugged=True)
            case ["remove", site, name]:
                self._remove(site, name)
            case ["way", source, target, delay_ms, cut]:
                self._way(source, target, Way(float(delay_ms), cut == "cut"))
            case _:
                raise InvalidInput("carrying out a request to the keeper of the lab", f"it does not know {list(words)}")
        return "", ()

    def _namespace(self, where: str) -> int:
        if where in SHARED:
            return self._wiring.namespace(0, SHARED[where])
        site, _, name = where.partition("/")
        return self._wiring.namespace(self._layout.number(site), self._known(site, name).number)

    def _known(self, site: str, name: str) -> LabMachine:
        machine = self._layout.machine(site, name)
        if machine is None:
            raise NotFound("looking up a machine of the lab", f"site {site!r} has no machine {name!r}")
        return machine

    def _site(self, site: LabSite) -> None:
        layout = self._layout.with_site(site)
        if layout != self._layout:
            with _kernel(f"making site {site.name}"):
                self._wiring.add_site(site.number)
            self._save(layout)

    def _machine(self, machine: LabMachine) -> None:
        known = self._layout.machine(machine.site, machine.name)
        layout = self._layout.with_machine(machine)
        if known is None:
            with _kernel(f"making machine {machine.name}"):
                self._add_host(layout, machine)
            self._save(layout)
        else:
            self._plug(known, plugged=True)

    def _add_host(self, layout: Layout, machine: LabMachine) -> None:
        site = layout.number(machine.site)
        self._wiring.add_host(site, machine.number)
        self._wiring.plug(site, machine.number, plugged=machine.plugged)
        if machine.deaf:
            self._wiring.deafen(site, machine.number, deaf=True)

    def _plug(self, machine: LabMachine, *, plugged: bool, deaf: bool = False) -> None:
        if (machine.plugged, machine.deaf) == (plugged, deaf):
            return
        site = self._layout.number(machine.site)
        with _kernel(f"plugging machine {machine.name} {'in' if plugged else 'out'}"):
            if machine.plugged != plugged:
                self._wiring.plug(site, machine.number, plugged=plugged)
            if machine.deaf != deaf:
                self._wiring.deafen(site, machine.number, deaf=deaf)
        self._save(self._layout.with_machine(machine.with_cable(plugged=plugged, deaf=deaf)))

    def _remove(self, site: str, name: str) -> None:
        machine = self._layout.machine(site, name)
        if machine is None:
            return
        number = self._layout.number(site)
        layout = self._layout.without_machine(site, name)
        with _kernel(f"removing machine {name}"):
            self._wiring.remove_host(number, machine.number)
            if all(each.name != site for each in layout.sites):
                for source, target, _way in self._layout.ways:
                    if site in (source, target):
                        self._set_way(self._layout, source, target, Way())
                self._wiring.remove_site(number)
        self._save(layout)

    def _way(self, source: str, target: str, way: Way) -> None:
        layout = self._layout.with_way(source, target, way)
        with _kernel(f"changing the way from {source} to {target}"):
            self._set_delays(layout)
            self._set_way(layout, source, target, way)
        self._save(layout)

    def _set_ways(self, layout: Layout) -> None:
        self._set_delays(layout)
        for source, target, way in layout.ways:
            self._set_way(layout, source, target, way)

    def _set_way(self, layout: Layout, source: str, target: str, way: Way) -> None:
        numbers = layout.number(source), layout.number(target)
        self._wiring.set_way(*numbers, cut=way.cut, delayed=way.delay_ms > 0)

    def _set_delays(self, layout: Layout) -> None:
        """Give the forwarder the delays before the first packet is sent to it."""
        delays = {(layout.number(a), layout.number(b)): way.delay_ms for a, b, way in layout.ways if way.delay_ms}
        if self._forwarder is None:
            if not delays:
                return
            self._wiring.add_delay_line()
            self._forwarder = Forwarder()
        try:
            self._forwarder.set(delays)
        except Unavailable:
            self._drop_forwarder()
            raise

    def _drop_forwarder(self) -> None:
        assert self._forwarder is not None
        self._forwarder.close()
        self._forwarder = None

    def _save(self, layout: Layout) -> None:
        write_atomic(self._file, layout.to_json(), mode=0o600)
        self._layout = layout


@contextmanager
def _kernel(doing: str) -> Iterator[None]:
    """Name the action when the kernel refuses."""
    try:
        yield
    except (OSError, NetlinkError) as error:
        raise Unavailable(doing, str(error), "does this host allow network namespaces?") from error


# The keeper's handle of its forwarder process.

_PATIENCE = 10.0


class Forwarder:
    """The forwarder as a child process of the keeper, started in the namespace that the keeper is in."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "quarterdeck.sites.netns.forwarder"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.descriptor = os.pidfd_open(self._process.pid)
        """Readable when the forwarder has ended."""

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def set(self, delays: Mapping[tuple[int, int], float]) -> None:
        """Set these delays (milliseconds by (from site, to site)); raises Unavailable if it does not answer.

        They hold for every packet that comes once this has returned.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        line = json.dumps({f"{source}-{target}": delay for (source, target), delay in delays.items()})
        try:
            self._process.stdin.write(f"{line}\n".encode())
            self._process.stdin.flush()
        except BrokenPipeError as error:
            raise Unavailable("setting the delays of the lab", "the forwarder has ended") from error
        readable, _, _ = select.select([self._process.stdout], [], [], _PATIENCE)
        if not readable or self._process.stdout.readline() != b"ok\n":
            raise Unavailable("setting the delays of the lab", "the forwarder does not answer")

    def close(self) -> None:
        """Reap one that has ended, or end it."""
        self._process.kill()
        self._process.communicate()
        os.close(self.descriptor)
