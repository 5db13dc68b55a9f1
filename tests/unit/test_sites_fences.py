"""What a machine remembers of who may change it, and machines whose supervisor knows nothing of that yet."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from xmlrpc.client import Fault

import pytest
from support.golden import Golden

from quarterdeck.errors import InvalidInput, LeaseLost, Unavailable
from quarterdeck.model.units import Fence
from quarterdeck.sites.local.supervisor import client as supervisor_client
from quarterdeck.sites.local.supervisor.client import SupervisorClient
from quarterdeck.sites.local.supervisor.fences import FENCED, Fences, off_the_wire, on_the_wire


def test_a_fence_only_grows_and_is_remembered(tmp_path: Path) -> None:
    folder = tmp_path / "fences"
    assert Fences(folder).admit(Fence("alpha", 7))
    assert Fences(folder).admit(Fence("alpha", 7))
    assert not Fences(folder).admit(Fence("alpha", 6))
    assert Fences(folder).admit(Fence("beta", 1))
    assert Fences(folder).newest("alpha") == 7
    assert sorted(each.name for each in folder.iterdir()) == ["alpha", "beta"]


def test_a_fence_leads_out_of_no_folder(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput):
        Fences(tmp_path / "fences").admit(Fence("../elsewhere", 7))


def test_a_fence_is_the_same_at_the_other_end() -> None:
    assert off_the_wire(on_the_wire(Fence("alpha", 1_800_000_000_000))) == Fence("alpha", 1_800_000_000_000)


class Answering(SupervisorClient):
    """A client whose supervisor answers as ``answer`` does."""

    def __init__(self, folder: Path, answer: Callable[[str], bytes]) -> None:
        super().__init__("east-a1", folder, 1.0)
        self.asked: list[str] = []
        self._answer = answer

    async def _exchange(self, body: bytes) -> bytes:
        self.asked.append(body.decode())
        return b"HTTP/1.0 200 OK\r\n\r\n" + self._answer(body.decode())


def fault(code: int, text: str = "") -> bytes:
    return supervisor_client.xmlrpc.client.dumps(Fault(code, text), methodresponse=True).encode()


async def test_a_refusal_for_an_older_fence_ends_the_driver_and_any_other_does_not(
    tmp_path: Path, golden: Golden
) -> None:
    with golden.raises(LeaseLost):
        await Answering(tmp_path, lambda _: fault(FENCED, "UNKNOWN: token 8")).stop(
            "unit", Fence("alpha", 7), kill=False, stop_timeout=1.0
        )
    with pytest.raises(Unavailable, match="STILL_RUNNING"):
        await Answering(tmp_path, lambda _: fault(91, "STILL_RUNNING")).forget("unit", Fence("alpha", 7))
