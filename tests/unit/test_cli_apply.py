"""What ``apply`` says of what it was given, before and when it is asked for."""

from __future__ import annotations

import pytest
from support.cli_lab import Cli
from support.fake_face import FakeFace
from support.golden import Golden

PLANE = """
apiVersion: quarterdeck.dev/v1alpha1
kind: ControlPlane
metadata: {name: demo}
spec:
  placement: {site: east}
  addons:
    - name: policy
      inline: |
        apiVersion: admissionregistration.k8s.io/v1
        kind: ValidatingWebhookConfiguration
        metadata: {name: everything}
        webhooks:
          - name: all.example.com
            clientConfig: {service: {namespace: policy, name: policy}}
            rules: [{apiGroups: ["*"], apiVersions: ["*"], operations: ["*"], resources: ["*"]}]
"""
WORDS = (
    "! add-on policy: webhook all.example.com of ValidatingWebhookConfiguration everything is called for every write of"
)


@pytest.mark.parametrize("argv", [["--dry-run"], ["--detach"]])
def test_an_add_on_whose_webhook_is_called_for_leases_is_warned_of(
    cli: Cli, face: FakeFace, argv: list[str], monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    monkeypatch.setattr("quarterdeck.cli.commands.planes.detach", lambda *_: None)
    result = cli("apply", "-f", "-", *argv, stdin=PLANE)
    assert result.code == 0, result
    assert WORDS in result.out
    golden(result.out)


def test_a_version_with_known_flaws_is_warned_of_and_accepted(
    cli: Cli, face: FakeFace, monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    monkeypatch.setattr("quarterdeck.cli.commands.planes.detach", lambda *_: None)
    spec = "{placement: {site: east}, etcd: {version: 3.6.13}}"
    document = f"apiVersion: quarterdeck.dev/v1alpha1\nkind: ControlPlane\nmetadata: {{name: demo}}\nspec: {spec}\n"
    result = cli("apply", "-f", "-", "--detach", stdin=document)
    assert result.code == 0, result
    assert "! versions: etcd 3.6.13 has flaws that 3.6.14 does not have" in result.out
    golden(result.out)
