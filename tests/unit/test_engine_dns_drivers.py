"""Which DNS driver an endpoint asks for, and the file that its key is in."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.golden import Golden

from quarterdeck.api.plane.endpoint import Endpoint
from quarterdeck.api.site import AddressSpace
from quarterdeck.drivers.endpoints import Hub, open_dns
from quarterdeck.endpoint.dns.rfc2136 import Rfc2136Dns
from quarterdeck.errors import InvalidInput
from quarterdeck.sites.local.loopback import open_loopback
from quarterdeck.sites.local.settings import LocalSiteSettings
from quarterdeck.sites.local.site import open_local_site


def hub(home: Path) -> Hub:
    settings = LocalSiteSettings(name="hub-loopback", zones=("a",), machines_per_zone=1)
    return Hub(open_local_site(home, settings, open_loopback(home)), AddressSpace.LOOPBACK)


def endpoint(secret: Path) -> Endpoint:
    tsig = {"keyName": "quarterdeck", "secretFile": str(secret)}
    return Endpoint.model_validate(
        {"mode": "rfc2136", "rfc2136": {"server": "127.0.0.1", "zone": "planes.test", "tsig": tsig}}, strict=False
    )


async def test_a_key_that_only_its_owner_may_read_is_used(tmp_path: Path) -> None:
    file = tmp_path / "tsig.key"
    file.write_text("c2VjcmV0\n")
    file.chmod(0o600)
    made = await open_dns(endpoint(file), hub(tmp_path / "home"))
    assert isinstance(made, Rfc2136Dns)
    assert made.key.secret == "c2VjcmV0"


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o644, 0o666])
async def test_a_key_that_others_may_use_is_refused_and_says_what_to_do(
    tmp_path: Path, mode: int, golden: Golden
) -> None:
    file = tmp_path / "tsig.key"
    file.write_text("c2VjcmV0\n")
    file.chmod(mode)
    with golden.raises(InvalidInput) as refused:
        await open_dns(endpoint(file), hub(tmp_path / "home"))
    assert "c2VjcmV0" not in str(refused.value)


async def test_a_key_that_is_not_there_or_no_text_is_named(tmp_path: Path, golden: Golden) -> None:
    file = tmp_path / "tsig.key"
    with golden.raises(InvalidInput):
        await open_dns(endpoint(file), hub(tmp_path / "home"))
    file.write_bytes(b"\xff\xfe")
    file.chmod(0o600)
    with golden.raises(InvalidInput):
        await open_dns(endpoint(file), hub(tmp_path / "home"))
