"""What a lab should look like, and the delay line, without a kernel."""

from __future__ import annotations

from ipaddress import ip_address

import pytest

from quarterdeck.errors import Conflict, Corrupt, InvalidInput, NotFound
from quarterdeck.sites.netns.forwarder import DelayLine
from quarterdeck.sites.netns.layout import (
    MOST_SEATS,
    OUTSIDE,
    Cut,
    LabMachine,
    LabSite,
    Layout,
    Link,
    Way,
    address,
    floating_address,
    seat_addresses,
    site_of,
)

EAST, WEST = LabSite(name="east", number=1), LabSite(name="west", number=2)
EAST_1 = LabMachine(site="east", name="east-1", number=1)
LAYOUT = Layout().with_site(EAST).with_site(WEST).with_machine(EAST_1)


def test_addresses_of_all_numbers_differ() -> None:
    numbers = range(1, 255)
    assert len({address(site, machine) for site in numbers for machine in numbers}) == 254 * 254


def test_the_addresses_of_seats_are_nobody_elses_and_say_which_site_they_lead_to() -> None:
    numbers = (1, 2, 3, 63, 64, 127, 128, 253, 254)
    found = {(site, each): None for site in numbers for machine in numbers for each in seat_addresses(site, machine)}
    assert len({each for _, each in found}) == len(found) == len(numbers) ** 2 * MOST_SEATS
    assert all(site_of(ip_address(each).packed) == site for site, each in found)
    assert all(site_of(ip_address(address(site, 254)).packed) == site for site in numbers)


def test_addresses_that_float_are_of_an_edge_and_say_which_site_they_lead_to() -> None:
    found = {floating_address(site, edge): site for site in (1, 2, 127, 128, 254) for edge in range(247, 255)}
    assert len(found) == 5 * 8
    assert all(site_of(ip_address(str(each)).packed) == site for each, site in found.items())
    assert floating_address(1, 246) is None, "that is no edge"


@pytest.mark.parametrize("numbers", [(0, 1), (1, 0), (255, 1), (1, 255)])
def test_a_number_without_an_address_is_refused(numbers: tuple[int, int]) -> None:
    with pytest.raises(InvalidInput):
        address(*numbers)


def test_a_layout_comes_back_from_its_file() -> None:
    layout = LAYOUT.with_way("east", OUTSIDE, Way(12.5)).with_way("west", "east", Way(cut=True))
    assert Layout.from_json(layout.to_json()) == layout


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"sites": [{"name": "east"}], "machines": [], "ways": []}'])
def test_a_broken_file_is_named_corrupt(content: bytes) -> None:
    with pytest.raises(Corrupt):
        Layout.from_json(content)


def test_what_is_there_stays_as_it_is() -> None:
    assert LAYOUT.with_site(EAST).with_machine(EAST_1) == LAYOUT


@pytest.mark.parametrize("site", [LabSite(name="east", number=3), LabSite(name="north", number=1)])
def test_a_name_and_a_number_belong_to_one_site(site: LabSite) -> None:
    with pytest.raises(Conflict):
        LAYOUT.with_site(site)


@pytest.mark.parametrize("site", [LabSite(name=OUTSIDE, number=3), LabSite(name="north", number=0)])
def test_what_cannot_be_a_site_is_refused(site: LabSite) -> None:
    with pytest.raises(InvalidInput):
        LAYOUT.with_site(site)


@pytest.mark.parametrize(
    "machine", [LabMachine(site="east", name="east-1", number=2), LabMachine(site="east", name="east-2", number=1)]
)
def test_a_machine_keeps_its_number_and_shares_it_with_none(machine: LabMachine) -> None:
    with pytest.raises(Conflict):
        LAYOUT.with_machine(machine)


def test_a_site_goes_with_its_last_machine_and_takes_its_ways_along() -> None:
    layout = LAYOUT.with_way("east", "west", Way(5.0)).with_way("west", OUTSIDE, Way(cut=True))
    assert layout.without_machine("east", "east-1") == Layout(sites=(WEST,), ways=(("west", OUTSIDE, Way(cut=True)),))


def test_a_way_needs_two_sites_and_time_that_passes() -> None:
    with pytest.raises(NotFound):
        LAYOUT.with_way("east", "north", Way())
    with pytest.raises(InvalidInput):
        LAYOUT.with_way("east", "east", Way(1.0))
    with pytest.raises(InvalidInput):
        LAYOUT.with_way("east", "west", Way(-1.0))


def test_a_way_that_does_nothing_is_not_kept() -> None:
    assert LAYOUT.with_way("east", "west", Way(1.0)).with_way("east", "west", Way()) == LAYOUT


@pytest.mark.parametrize(
    ("there", "back", "cut"),
    [(True, True, Cut.BOTH), (True, False, Cut.A_TO_B), (False, True, Cut.B_TO_A), (False, False, Cut.NONE)],
)
def test_a_link_says_which_directions_are_cut(there: bool, back: bool, cut: Cut) -> None:
    assert Link(Way(cut=there), Way(cut=back)).cut is cut


def packet(source: int, target: int, text: str) -> bytes:
    """A frame as the ring gives it: virtio header, Ethernet header, IPv4 header with the two addresses, content."""
    return bytes(10 + 14 + 12) + bytes((10, 89, source, 1, 10, 89, target, 1)) + text.encode()


def texts(line: DelayLine, now: int) -> list[str]:
    return [each[44:].decode() for each in line.due(now)]


def test_a_packet_waits_for_the_delay_of_its_own_way() -> None:
    line = DelayLine({(1, 2): 100, (2, 1): 50})
    line.put(1000, packet(1, 2, "slow"))
    line.put(1000, packet(2, 1, "fast"))
    line.put(1000, packet(1, 3, "free"))
    assert line.next_due() == 1000
    assert texts(line, 1000) == ["free"]
    assert texts(line, 1049) == []
    assert texts(line, 1050) == ["fast"]
    assert line.next_due() == 1100
    assert texts(line, 1100) == ["slow"]
    assert line.next_due() is None


def test_packets_of_one_way_keep_their_order_when_the_delay_is_shortened() -> None:
    line = DelayLine({(1, 2): 100})
    line.put(1000, packet(1, 2, "first"))
    line.delays = {(1, 2): 10}
    line.put(1001, packet(1, 2, "second"))
    assert texts(line, 1050) == []
    assert texts(line, 1100) == ["first", "second"]


def test_a_full_line_loses_what_comes_on_top() -> None:
    line = DelayLine({(1, 2): 100})
    large = packet(1, 2, "x" * (1 << 20))
    for _ in range(300):
        line.put(1000, large)
    assert len(list(line.due(1100))) == (256 << 20) // len(large)
    line.put(1200, large)
    assert len(list(line.due(1300))) == 1
