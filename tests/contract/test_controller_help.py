"""What the real programs say of their controllers is what quarterdeck goes by."""

from __future__ import annotations

import os

import pytest
from support.cloud import fake_ccm

from quarterdeck.api.plane.controllers import ControllerProgram
from quarterdeck.components.controller.names import KUBE_OFF, NODE_IPAM, names_of
from quarterdeck.engine.controller_sets.declarations import listed_by
from quarterdeck.upstream import Upstream, UpstreamProgram, Versions

PROGRAM = UpstreamProgram.KUBE_CONTROLLER_MANAGER
VERSION = Versions().kubernetes
MINOR = (VERSION.major, VERSION.minor)


async def test_a_kube_controller_manager_lists_what_is_known_of_its_version() -> None:
    programs = await Upstream.from_environment(os.environ).ensure([PROGRAM], Versions())
    listed = await listed_by(programs[PROGRAM])
    assert listed is not None
    assert listed.names == names_of(ControllerProgram.KUBE, MINOR)
    assert listed.off == KUBE_OFF


@pytest.mark.timeout(600)  # it is built once
async def test_a_stock_cloud_controller_manager_lists_what_is_linked_into_it() -> None:
    listed = await listed_by(await fake_ccm())
    assert listed is not None
    assert listed.names == tuple(sorted((*names_of(ControllerProgram.CLOUD, MINOR), NODE_IPAM)))
    assert listed.off == frozenset()
