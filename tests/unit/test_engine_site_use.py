"""What of a site may not change as long as a plane uses it."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from support.golden import Golden
from support.host_sites import host, host_site
from support.resources import with_status

from quarterdeck.api.controlplane import ControlPlane, new_control_plane
from quarterdeck.api.plane.memory import MemoryStatus, MomentStatus, ReplicaStatus, SlotStatus
from quarterdeck.api.site import Site
from quarterdeck.engine.workspace.site_use import require_safe_change, require_unused, sites_of
from quarterdeck.errors import Conflict


def site(**spec: Any) -> Site:
    whole = {"storageClasses": [{"name": "standard"}, {"name": "fast", "path": "/fast"}], **spec}
    return Site.model_validate_json(json.dumps({"metadata": {"name": "east"}, "spec": whole}))


def plane(at: str = "east", **memory: Any) -> ControlPlane:
    made = new_control_plane("alpha", site=at)
    return with_status(made, memory=MemoryStatus(**memory))


@pytest.mark.parametrize(
    "spec",
    [
        {"zones": ["a", "b"]},
        {"zones": ["b", "a", "c"]},
        {"zones": ["x", "a", "b", "c"]},
        {"machinesPerZone": 1},
        {"storageClasses": [{"name": "standard"}]},
        {"storageClasses": [{"name": "standard"}, {"name": "fast", "path": "/slow"}]},
        {"storageClasses": [{"name": "fast", "path": "/fast"}, {"name": "standard"}]},
        {"isolation": "netns"},
        {"isolation": "netns", "floatingAddresses": True},
    ],
)
def test_what_a_plane_stands_on_is_not_taken_away_and_the_plane_is_named(spec: dict[str, Any], golden: Golden) -> None:
    with golden.raises(Conflict):
        require_safe_change(site(), site(**spec), [plane()])
    require_safe_change(site(), site(**spec), [plane(at="west")])
    require_safe_change(site(), site(**spec), [])


def test_the_edges_of_a_site_in_use_may_become_more_and_not_fewer(golden: Golden) -> None:
    require_safe_change(site(), site(edges=2), [plane()])
    with golden.raises(Conflict):
        require_safe_change(site(edges=2), site(), [plane()])


def test_edges_between_which_addresses_float_stay_as_many_as_they_are(golden: Golden) -> None:
    before, after = (site(edges=count, isolation="netns", floatingAddresses=True) for count in (2, 3))
    with golden.raises(Conflict):
        require_safe_change(before, after, [plane()])


def test_what_leads_clients_to_a_site_of_hosts_stays_while_a_plane_uses_it() -> None:
    hosts = host("one1", roles=["control"]), host("two2", roles=["edge"]), host("three3", roles=["edge"])
    own, floats = {"external": {"addresses": ["192.0.2.9"]}}, {"floatingAddresses": ["192.0.2.100"]}
    plain, floating = host_site(*hosts), host_site(*hosts, edge=floats)
    outside = host_site(hosts[0], edge=own)
    elsewhere = host_site(hosts[0], edge={"external": {"addresses": ["192.0.2.8"]}})
    used = [plane("rack")]
    for before, after, says in (
        (plain, floating, "spec.edge.floatingAddresses: must stay empty"),
        (floating, plain, "spec.edge.floatingAddresses: must stay 192.0.2.100"),
        (outside, elsewhere, "spec.edge.external: its addresses must stay 192.0.2.9"),
        (outside, host_site(hosts[0]), "spec.edge.external: its addresses must stay 192.0.2.9"),
        (host_site(hosts[0]), outside, "spec.edge.external: must stay unset"),
    ):
        with pytest.raises(Conflict, match=re.escape(says)):
            require_safe_change(before, after, used)
        require_safe_change(before, after, [])
    by_command = host_site(hosts[0], edge={"external": {**own["external"], "command": ["/usr/bin/lb"]}})
    require_safe_change(outside, by_command, used)


def test_a_site_in_use_may_grow() -> None:
    classes = [{"name": "standard", "limitBytes": 2**30}, {"name": "fast", "path": "/fast"}, {"name": "new"}]
    wanted = site(zones=["a", "b", "c", "d"], machinesPerZone=3, storageClasses=classes)
    require_safe_change(site(), wanted, [plane()])


def test_a_plane_uses_every_site_that_it_may_have_something_at() -> None:
    slot = SlotStatus(site="north", zone="a")
    replicas = (ReplicaStatus(name="north-1", slot=slot, machine="north-a1"),)
    held = (MomentStatus(name="south", time=1.0),)
    used = plane("east", replicas=replicas, held=held, served_site="west", unsettled=("far",))
    assert sites_of(used) == {"east", "north", "south", "west", "far"}
    for name in sites_of(used):
        with pytest.raises(Conflict, match="in use by alpha"):
            require_unused(name, [used])
    require_unused("other", [used])
