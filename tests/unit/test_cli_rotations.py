"""What rotations of authorities and keys print and ask for, of a plane that a test drives by the books alone."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from support.cli_lab import Cli
from support.fake_face import FakeFace, books
from support.golden import Golden

from quarterdeck.api.controlplane import ControlPlane, ControlPlaneSpec, Encryption
from quarterdeck.api.operation import OperationType
from quarterdeck.api.plane.certificates import AuthorityUse, Certificates, Signer
from quarterdeck.api.plane.keys import Keys, KeyUse
from quarterdeck.engine.preflight import key_rotations, secret_changes
from quarterdeck.engine.workspace import recorded
from quarterdeck.engine.workspace.home import Home
from quarterdeck.engine.workspace.secrets_in_use import settle_secrets
from quarterdeck.model.findings import Finding, Verdict
from quarterdeck.model.steps.plan import Plan
from quarterdeck.stores.port import amend

ROTATED = AuthorityUse(issuer=1, also=0)


@dataclass
class Lab:
    """Plane ``demo``."""

    cli: Cli

    def spec(self) -> ControlPlaneSpec:
        return self.cli.with_store(lambda home: recorded.existing(home.store, "demo")).spec

    def becomes(self, **changes: object) -> None:
        async def changed(home: Home) -> None:
            def other(plane: ControlPlane) -> ControlPlane:
                return plane.with_spec(**changes).with_status(revision="")

            await settle_secrets(home.store, await amend(home.store, ControlPlane, "demo", other))

        self.cli.with_store(changed)

    def types(self) -> list[OperationType]:
        return [each.spec.type for each in self.cli.with_store(lambda home: recorded.operations_of(home.store, "demo"))]


@pytest.fixture
def lab(cli: Cli, face: FakeFace, monkeypatch: pytest.MonkeyPatch) -> Lab:
    cli.plane()
    cli.with_store(books)

    async def tokens(*_: object) -> Finding:
        return Finding("tokens", Verdict.WARN, "the former ones are refused")

    monkeypatch.setattr(key_rotations, "_tokens", tokens)
    return Lab(cli)


@pytest.fixture(autouse=True)
def _durations(golden: Golden) -> None:
    golden.hide(r"(?m)(?<= in )\d[\d.]* m?s$", "TIME")
    golden.hide(r"demo-rotate-[0-9a-f]{6}", "demo-rotate-ID")


def test_all_authorities_are_replaced_and_the_former_ones_given_up(lab: Lab, golden: Golden) -> None:
    assert lab.cli("certs", "rotate-ca", "demo").code == 4, "there is nobody to ask"
    begun = lab.cli("certs", "rotate-ca", "demo", "--yes")
    assert begun.code == 0, begun
    golden(begun.out)
    assert lab.spec().certificates == Certificates(kubernetes=ROTATED, etcd=ROTATED, front_proxy=ROTATED)
    again = lab.cli("certs", "rotate-ca", "demo", "--yes")
    assert again.code == 4, again
    golden(again.err.rstrip())
    ended = lab.cli("certs", "rotate-ca", "demo", "--finish", "--yes")
    assert ended.code == 0, ended
    golden(" ".join(ended.err.split()).rpartition("! ")[2])
    assert [lab.spec().certificates.use(each) for each in Signer] == 3 * [AuthorityUse(issuer=1)]
    assert lab.types()[1:] == [OperationType.ROTATE, OperationType.ROTATE]


def test_one_authority_is_replaced_and_taken_back(lab: Lab) -> None:
    assert lab.cli("certs", "rotate-ca", "demo", "--ca", "etcd", "--yes").code == 0
    assert lab.spec().certificates == Certificates(etcd=ROTATED)
    assert lab.cli("certs", "rotate-ca", "demo", "--back", "--yes").code == 0
    assert lab.spec().certificates == Certificates()


@pytest.mark.parametrize("argv", [("certs", "rotate-ca", "demo"), ("keys", "rotate", "demo", "--key", "encryption")])
def test_without_a_rotation_there_is_nothing_to_finish(
    argv: tuple[str, ...], lab: Lab, monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    async def look(*_: object) -> SimpleNamespace:
        return SimpleNamespace(plan=Plan())

    monkeypatch.setattr(secret_changes.status, "look", look)
    for option in ("--finish", "--back"):
        result = lab.cli(*argv, option, "--yes")
        assert (result.code, len(lab.types())) == (0, 1), result
        golden(result.out.rstrip())
    refused = lab.cli(*argv, "--finish", "--back")
    assert refused.code == 2
    golden(refused.err.rstrip())


def test_the_encryption_key_is_replaced(lab: Lab, golden: Golden) -> None:
    rotate = ("keys", "rotate", "demo", "--key", "encryption", "--yes")
    begun = lab.cli(*rotate)
    assert begun.code == 0, begun
    golden(begun.out)
    assert lab.spec().keys == Keys(encryption=KeyUse(current=1, also=0))
    again = lab.cli(*rotate)
    assert again.code == 4, again
    golden(again.err.rstrip())
    assert lab.cli(*rotate, "--finish").code == 0
    assert lab.spec().keys == Keys(encryption=KeyUse(current=1))


def test_a_key_that_encrypts_nothing_is_not_rotated(lab: Lab, golden: Golden) -> None:
    lab.becomes(encryption=Encryption(secrets=False))
    refused = lab.cli("keys", "rotate", "demo", "--key", "encryption", "--yes")
    assert refused.code == 2, refused
    golden(refused.err.rstrip())


def test_a_key_that_signs_tokens_is_published_for_an_hour_before_it_signs(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    rotate = ("keys", "rotate", "demo", "--key", "service-account", "--yes")
    assert lab.cli(*rotate).code == 0
    assert lab.spec().keys == Keys(service_account=KeyUse(current=0, also=1))
    for options in ((), ("--finish",)):
        refused = lab.cli(*rotate, *options)
        assert refused.code == 4, refused
        golden(refused.err.rstrip())

    class Later(datetime):
        @classmethod
        def now(cls, tz: object = None) -> datetime:  # type: ignore[override]
            return datetime.now(UTC) + timedelta(minutes=61)

    monkeypatch.setattr(key_rotations, "datetime", Later)
    assert lab.cli(*rotate).code == 0
    assert lab.spec().keys == Keys(service_account=KeyUse(current=1, also=0))
    ended = lab.cli(*rotate, "--finish")
    assert ended.code == 0, ended
    golden(ended.err.splitlines()[-1])
    assert lab.spec().keys == Keys(service_account=KeyUse(current=1))


def test_a_published_key_is_taken_back(lab: Lab) -> None:
    rotate = ("keys", "rotate", "demo", "--key", "service-account", "--yes")
    assert lab.cli(*rotate).code == 0
    assert lab.cli(*rotate, "--back").code == 0
    assert lab.spec().keys == Keys()
