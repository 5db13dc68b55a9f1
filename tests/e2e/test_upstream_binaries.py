"""The real programs: they are of the version that was asked for, from the cache and from a given folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from quarterdeck.errors import PreconditionFailed
from quarterdeck.upstream import CONTROL_PLANE, State, Upstream, UpstreamProgram, Versions
from quarterdeck.upstream.given_folder import read_version
from quarterdeck.upstream.upstream import version_of

pytestmark = pytest.mark.smoke


@pytest.fixture
def upstream() -> Upstream:
    environment = {name: value for name, value in os.environ.items() if name != "QUARTERDECK_BIN_DIR"}
    return Upstream.from_environment(environment)


async def test_every_program_says_the_version_that_was_asked_for(upstream: Upstream) -> None:
    paths = await upstream.ensure(CONTROL_PLANE, Versions())
    assert {program: read_version(program, path) for program, path in paths.items()} == {
        program: version_of(program, Versions()) for program in CONTROL_PLANE
    }


async def test_a_given_program_of_the_right_version_goes_before_the_cache(upstream: Upstream, tmp_path: Path) -> None:
    cached = await upstream.ensure([UpstreamProgram.ETCDCTL, UpstreamProgram.ETCDUTL], Versions())
    given = tmp_path / "etcdctl"
    given.symlink_to(cached[UpstreamProgram.ETCDCTL])
    door = Upstream.from_environment(os.environ, given=tmp_path)
    paths = await door.ensure([UpstreamProgram.ETCDCTL, UpstreamProgram.ETCDUTL], Versions())
    assert paths == {UpstreamProgram.ETCDCTL: given, UpstreamProgram.ETCDUTL: cached[UpstreamProgram.ETCDUTL]}


async def test_a_given_program_of_another_version_is_refused(upstream: Upstream, tmp_path: Path) -> None:
    cached = await upstream.ensure([UpstreamProgram.ETCDCTL], Versions())
    (tmp_path / "etcdctl").symlink_to(cached[UpstreamProgram.ETCDCTL])
    door = Upstream.from_environment({**os.environ, "QUARTERDECK_BIN_DIR": str(tmp_path)})
    with pytest.raises(PreconditionFailed, match=r"it is version 3\.7\.3, wanted is 3\.6\.12"):
        await door.ensure([UpstreamProgram.ETCDCTL], Versions.parse(etcd="3.6.12"))
    rows = [row for row in door.list(Versions.parse(etcd="3.6.12")) if row.program is UpstreamProgram.ETCDCTL]
    assert rows[0].state is State.BROKEN
