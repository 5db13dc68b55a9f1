"""The network between machines: the lab of isolation netns, with a bridge of it for each zone."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import TypeVar

from quarterdeck.linux import calls
from quarterdeck.sites.netns import control
from quarterdeck.sites.netns.lab import Lab
from quarterdeck.sites.netns.layout import CLIENT, OUTSIDE, Cut, address, inside

Result = TypeVar("Result")

#: The router loses what one machine sends another: between zones it is routed, within one it is bridged.
_CUTS = "\n".join(
    f"""
table {family} lab {{
  set cut {{ type ipv4_addr . ipv4_addr; }}
  chain lost {{ type filter hook forward priority 0; ip saddr . ip daddr @cut drop; }}
}}"""
    for family in ("inet", "bridge")
)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a machine is. ``numbers`` are those of its zone and of itself in it."""

    site: str
    zone: str
    machine: str
    numbers: tuple[int, int]

    @property
    def bridge(self) -> str:
        """What the zone is called in the lab of networks."""
        return f"{self.site}.{self.zone}"

    @property
    def address(self) -> str:
        """10.89.ZONE.MACHINE."""
        return address(*self.numbers)


@dataclass
class Network:
    """All of it. Ways between zones are kept here as well: a zone is gone, for a moment, while its last machine is
    replaced.
    """

    folder: Path
    _bridges: dict[str, str] = field(default_factory=dict)  # to its site
    _ways: dict[tuple[str, str], tuple[float, Cut]] = field(default_factory=dict)

    @property
    def _lab(self) -> Lab:
        return Lab(self.folder)

    def open(self) -> None:
        """Start what holds it."""
        done(Lab.open(self.folder))
        self._route(_CUTS)

    def close(self) -> None:
        """End it."""
        done(self._lab.close())

    def replace(self, place: Place) -> None:
        """Have a machine on the network, with a namespace that nobody has used."""
        done(self._lab.remove_machine(place.bridge, place.machine))
        self.plug(place)

    def plug(self, place: Place) -> None:
        """Have a machine on the network, new or as it was before."""
        fresh = place.bridge not in {each.name for each in done(self._lab.layout()).sites}
        done(self._lab.add_site(place.bridge, place.numbers[0]))
        done(self._lab.add_machine(place.bridge, place.machine, place.numbers[1]))
        self._bridges[place.bridge] = place.site
        if fresh:
            for (a, b), (delay, cut) in self._ways.items():
                if place.bridge in (a, b):
                    self._set(a, b, delay, cut)

    def unplug(self, place: Place) -> None:
        """Pull its cable out: nobody hears of it any more, nor it of anybody."""
        done(self._lab.cut_machine(place.bridge, place.machine))

    def cut(self, source: str, target: str, *, lost: bool) -> None:
        """Lose what goes from one address to another, or let it through again."""
        for verb in ("add",) if lost else ("add", "delete"):  # nothing can be deleted that is not there
            rules = (f"{verb} element {each} lab cut {{ {source} . {target} }}" for each in ("inet", "bridge"))
            self._route("\n".join(rules))

    def between(self, a: str, b: str, *, rtt_ms: float | None = None, cut: Cut | None = None) -> None:
        """Set how far apart two sites are (or ``OUTSIDE`` and a site), and which ways are cut; None: as before."""
        for way in product(self._zones(a), self._zones(b)):
            delay, before = self._ways.get(way, (0.0, Cut.NONE))
            self._ways[way] = (delay if rtt_ms is None else rtt_ms / 2, before if cut is None else cut)
            self._set(*way, *self._ways[way])

    def descriptor(self, place: Place | None = None) -> int:
        """A descriptor on a machine's namespace, or on that of clients; the caller closes it."""
        where = CLIENT if place is None else inside(place.bridge, place.machine)
        user, network = control.ask_descriptors(control.lab_folder(self.folder), "enter", where)
        os.close(user)
        return network

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """Have this thread, and those that it starts, be a client in the network. Sockets stay where they were made."""
        before = calls.open_namespace("thread-self", "net")
        try:
            network = self.descriptor()
            try:
                calls.setns(network, calls.CLONE_NEWNET)
            finally:
                os.close(network)
            try:
                yield
            finally:
                calls.setns(before, calls.CLONE_NEWNET)
        finally:
            os.close(before)

    def enter_argv(self) -> tuple[str, ...]:
        """What to put before an argv to run it as a client in the network."""
        return self._lab.enter_argv(CLIENT)

    def _zones(self, site: str) -> list[str]:
        if site == OUTSIDE:
            return [OUTSIDE]
        found = [bridge for bridge, of in self._bridges.items() if of == site]
        assert found, f"the lab has no site {site}"
        return found

    def _set(self, a: str, b: str, delay: float, cut: Cut) -> None:
        known = {OUTSIDE, *(each.name for each in done(self._lab.layout()).sites)}
        if {a, b} <= known:
            done(self._lab.set_link(a, b, delay_ms=delay, cut=cut))

    def _route(self, rules: str) -> None:
        """Have the router keep to these rules."""
        ids = json.loads((control.lab_folder(self.folder) / control.KEEPER_FILE).read_bytes())
        argv = ("nsenter", f"--target={ids['keeper']['pid']}", "--net", "nft", "-f", "-")
        done = subprocess.run(argv, input=rules, text=True, capture_output=True, check=False)
        assert done.returncode == 0, f"nft refuses {rules!r}: {done.stderr}"


def done(call: Coroutine[None, None, Result]) -> Result:
    """What a call comes to, waited for by whoever is in a loop of its own already, too."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, call).result()
