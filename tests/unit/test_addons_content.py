"""What add-ons say, before anything is applied: read, checked, ordered and compared."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest
from support.addons_lab import addon, config_map, namespace, text
from support.golden import Golden
from support.resources import with_spec

from quarterdeck.addons import content
from quarterdeck.addons.applyset import ApplySetParent, ours, parent_of
from quarterdeck.addons.content import Content, changes, contents, decoded, gone_with_a_namespace
from quarterdeck.addons.manifests import parsed
from quarterdeck.addons.objects import GroupKind, items, mapping
from quarterdeck.addons.order import has_ready, services
from quarterdeck.api.controlplane import ControlPlane, new_control_plane
from quarterdeck.api.documents import parse
from quarterdeck.api.plane.addons import Addon
from quarterdeck.engine.workspace import addon_sources, addons
from quarterdeck.errors import InvalidInput, PreconditionFailed


def plane(*wanted: Addon) -> ControlPlane:
    made = new_control_plane("demo", site="east")
    return with_spec(made, addons=wanted)


def made(name: str, *manifests: dict[str, Any], within: str = "default") -> Content:
    return contents([(name, within, manifests)], "demo")[0]


# manifests


def test_yaml_is_read_as_kubernetes_reads_it() -> None:
    (found,) = parsed(
        "apiVersion: v1\nkind: X\nmetadata: {name: a, uid: b}\ndata: {x: =, time: 12:30, z: 2020-01-01}", "f"
    )
    assert found["data"] == {"x": "=", "time": "12:30", "z": "2020-01-01"}
    assert found["metadata"] == {"name": "a"}, "what the apiserver writes is no wish"


def test_a_list_and_empty_documents_are_what_is_in_them() -> None:
    listed = "---\n---\nkind: List\napiVersion: v1\nitems: [{apiVersion: v1, kind: A, metadata: {name: a}}]\n---\n# end"
    assert [each["kind"] for each in parsed(listed, "f")] == ["A"]


def test_what_has_items_and_a_name_is_an_object_of_a_kind_of_somebody() -> None:
    kind = "apiVersion: example.com/v1\nkind: AllowList\nmetadata: {name: a}\n"
    for listed in ("[a, b]", "[{host: a}]", "{a: 1}", "null"):
        (found,) = parsed(f"{kind}items: {listed}\n", "f")
        assert found["kind"] == "AllowList"


def test_lists_in_lists_are_what_is_in_them(golden: Golden) -> None:
    inner = "{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: A, metadata: {name: a}}]}"
    (found,) = parsed(f"apiVersion: v1\nkind: List\nmetadata: {{name: x}}\nitems: [{inner}]\n", "f")
    assert found["metadata"] == {"name": "a"}
    with golden.raises(InvalidInput):
        parsed("apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: List, items: []}, {apiVersion: v1}]", "f")


@pytest.mark.parametrize(
    "bad",
    [
        "apiVersion: v1\nkind: A\nmetadata: {name: a}\n---\nb: [",
        "apiVersion: v1\nmetadata: {name: a}",
        "kind: A\nmetadata: {name: a}",
        "\n\napiVersion: v1\nkind: A",
        "apiVersion: v1\nkind: A\nmetadata: {generateName: a}",
        "apiVersion: v1\nkind: A\nmetadata: {name: 7}",
        "- 1",
        "a: !!binary /w==",
    ],
)
def test_what_is_no_manifest_is_said_with_document_and_line_in_one_line(bad: str, golden: Golden) -> None:
    with golden.raises(InvalidInput) as error:
        parsed(bad, "f")
    assert "\n" not in str(error.value)


# what is in add-ons


@pytest.mark.parametrize(
    "read",
    [
        [("a", [])],
        [("a", [config_map("x"), config_map("x", "default")])],
        [("a", [config_map("x")]), ("b", [config_map("x")])],
        [("a", [config_map("x", a="y" * 1_500_000)])],
        [(f"a{n}", [config_map(f"x{n}{m}", a="y" * 1_400_000) for m in range(4)]) for n in range(3)],
    ],
)
def test_what_could_never_be_applied_is_refused(read: list[tuple[str, list[dict[str, Any]]]], golden: Golden) -> None:
    with golden.raises(InvalidInput):
        contents([(name, "default", manifests) for name, manifests in read], "demo")


def test_content_that_was_kept_is_what_it_was() -> None:
    found = made("a", config_map("x", a="ä"), namespace("n"), within="elsewhere")
    assert decoded("a", found.encoded()) == found
    assert {str(each) for each in found.refs} == {"ConfigMap elsewhere/x", "Namespace n"}


def test_a_kind_of_a_definition_beside_it_is_in_a_namespace_if_that_says_so() -> None:
    for scope, named in (("Namespaced", "Thing.example.com default/one"), ("Cluster", "Thing.example.com one")):
        definition = {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "things.example.com"},
            "spec": {"group": "example.com", "names": {"kind": "Thing"}, "scope": scope},
        }
        thing = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "one"}}
        assert named in {str(each) for each in made("a", definition, thing).refs}


def test_a_namespace_may_not_go_while_anything_in_it_is_wanted(golden: Golden) -> None:
    before = made("a", namespace("n"), config_map("x", "n"))
    lost = gone_with_a_namespace(before.refs, [made("b", config_map("x", "n"))])
    golden(lost)
    assert gone_with_a_namespace(before.refs, [made("b", config_map("x", "m"))]) == ()
    with golden.raises(InvalidInput):
        addons.require_possible(plane(), [before], [made("a", config_map("x", "n"))])


def test_a_change_is_told_by_the_names_of_objects_and_never_by_what_they_say() -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"word": "before"}}
    before = [made("a", config_map("x"), secret), made("b", config_map("y"))]
    after = [made("a", {**secret, "stringData": {"word": "after"}}, config_map("z"))]
    first, second = changes(before, after)
    assert [[*map(str, refs)] for refs in (first.added, first.changed, first.removed)] == [
        ["ConfigMap default/z"], ["Secret default/s"], ["ConfigMap default/x"],
    ]  # fmt: skip
    assert (second.addon, second.words) == ("b", "1 removed")
    assert "before" not in repr((first, second))
    assert changes(before, before) == ()


def test_a_parent_is_read_as_it_was_written_and_its_id_is_what_kubectl_makes() -> None:
    parent = ApplySetParent("dns").widened(made("dns", config_map("x", "n"), namespace("n")).refs)
    metadata: Any = parent.manifest()["metadata"]
    assert parent_of(metadata["labels"], metadata["annotations"]) == parent
    assert parent.id == "applyset-8MZb34B7grAfi8ZPj2q5q_OFnWbOQcpxEs59y2LK2BY-v1"
    assert (
        parent_of(metadata["labels"], {**metadata["annotations"], "applyset.kubernetes.io/tooling": "kubectl/v1"})
        is None
    )
    assert GroupKind.parse(str(GroupKind("apps", "Deployment"))) == GroupKind("apps", "Deployment")


def test_only_fields_that_were_set_before_are_ours() -> None:
    before = {
        "metadata": {"labels": {"app.kubernetes.io/name": "x"}},
        "spec": {"ports": [{"containerPort": 53}], "containers": [{"name": "a", "image": "i"}], "list": ["p"]},
    }
    assert ours(
        (
            ".metadata.labels.app.kubernetes.io/name",
            '.spec.ports[containerPort=53,protocol="UDP"]',
            '.spec.containers[name="a"].image',
            '.spec.list[="p"]',
        ),
        before,
    )
    others = ('.spec.containers[name="b"].image', ".spec.replicas", '.spec.list[="q"]', ".spec.ports[containerPort=54]")
    for other in others:
        assert not ours((".spec.list", other), before)
    assert not ours((".spec.list",), None)


def test_only_webhooks_that_would_refuse_are_waited_for_until_an_endpoint_is_ready() -> None:
    service = {"clientConfig": {"service": {"namespace": "n", "name": "s"}}}
    hook: dict[str, Any] = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "webhooks": [service, {**service, "failurePolicy": "Ignore"}, {"clientConfig": {"url": "https://x"}}],
    }
    assert services(hook) == (("n", "s"),)
    assert not has_ready({"items": [{"endpoints": [{"conditions": {"ready": False}}]}, {"endpoints": None}]})
    assert has_ready({"items": [{"endpoints": [{"conditions": {"ready": False}}, {"addresses": ["a"]}]}]})
    assert (items(None), mapping("x")) == ([], {})


# sources


@pytest.mark.parametrize(
    "spec",
    [
        {"name": "a"},
        {"name": "a", "inline": "x", "file": "/y"},
        {"name": "A", "inline": "x"},
        {"name": "a", "inline": " "},
        {"name": "a", "file": "y"},
        {"name": "a", "helm": {"chart": "nginx"}},
        {"name": "a", "helm": {"chart": "/x", "repository": "https://y"}},
        {"name": "a", "helm": {"chart": "--post-renderer"}},
    ],
)
def test_an_add_on_that_makes_no_sense_is_refused_by_path(spec: dict[str, Any], golden: Golden) -> None:
    document = {"metadata": {"name": "demo"}, "spec": {"placement": {"site": "east"}, "addons": [spec]}}
    with golden.raises(InvalidInput):
        parse(ControlPlane, document, "reading it")


def test_two_add_ons_of_one_name_are_refused(golden: Golden) -> None:
    twice = [{"name": "a", "inline": "x"}] * 2
    document: Any = {"metadata": {"name": "demo"}, "spec": {"placement": {"site": "east"}, "addons": twice}}
    with golden.raises(InvalidInput):
        parse(ControlPlane, document, "reading it")


async def test_a_folder_is_all_its_manifests_by_name_and_nothing_below_it(tmp_path: Path) -> None:
    (tmp_path / "b.yaml").write_text(text(config_map("b")))
    (tmp_path / "a.json").write_text('{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}')
    (tmp_path / "README.md").write_text("no manifest")
    (tmp_path / ".c.yaml").write_text("hidden")
    (tmp_path / "sub.d").mkdir()
    wanted = Addon(name="x", folder=tmp_path)
    found = await addon_sources.read(plane(wanted), wanted)
    assert [mapping(each["metadata"])["name"] for each in found] == ["a", "b"]


async def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    (tmp_path / "binary.yaml").write_bytes(b"\xff")
    (tmp_path / "empty").mkdir()
    os.mkfifo(tmp_path / "pipe.yaml")
    cases = [
        (
            Addon(name="x", file=tmp_path / "none.yaml"),
            r"spec.addons\[x\].file: .*none.yaml: No such file",
        ),
        (Addon(name="x", file=tmp_path / "binary.yaml"), "it is not text: byte 1 is not UTF-8"),
        (
            Addon(name="x", folder=tmp_path / "empty"),
            r"spec.addons\[x\].folder: .*there is no file that ends with .yaml",
        ),
        (Addon(name="x", folder=tmp_path / "none"), "No such file or directory"),
        (Addon(name="x", file=tmp_path / "pipe.yaml"), r"spec.addons\[x\].file: .*pipe.yaml: it is a pipe, not a file"),
        (Addon(name="x", file=tmp_path), "it is a directory, not a file"),
    ]
    for wanted, says in cases:
        with pytest.raises(InvalidInput, match=says):
            await addon_sources.read(plane(wanted), wanted)


HELM = """#!/bin/sh
echo "$@" > {log}
for each; do last=$each; done
stat -c %a "$(dirname "$last")" >> {log}
[ -f {fail} ] && {{ echo "noise"; echo "Error: could not look up charts.example: no such host" >&2; exit 1; }}
printf '{{"apiVersion": "v1", "kind": "Secret", "metadata": {{"name": "made"}}, "stringData": %s}}' "$(cat "$last")"
"""


async def test_a_chart_is_rendered_by_the_helm_on_the_path_and_its_last_words_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    wanted = parse_addon(
        {"name": "web", "namespace": "web", "helm": {"chart": "/charts/web", "values": {"word": "hidden-word"}}}
    )
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    with golden.raises(PreconditionFailed):
        await addon_sources.read(plane(wanted), wanted)
    log, fail, program = tmp_path / "log", tmp_path / "fail", tmp_path / "helm"
    program.write_text(HELM.format(log=log, fail=fail))
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    (found,) = await addon_sources.read(plane(wanted), wanted)
    assert found["stringData"] == {"word": "hidden-word"}
    arguments = log.read_text()
    assert arguments.startswith(
        "template web /charts/web --namespace web --kube-version v1.37.2 --include-crds --no-hooks"
    )
    assert "hidden-word" not in arguments, "values are no part of what everybody sees of a process"
    assert arguments.endswith("700\n")
    fail.touch()
    with golden.raises(InvalidInput):
        await addon_sources.read(plane(wanted), wanted)


def parse_addon(spec: dict[str, Any]) -> Addon:
    document: Any = {"metadata": {"name": "demo"}, "spec": {"placement": {"site": "east"}, "addons": [spec]}}
    return parse(ControlPlane, document, "reading it").spec.addons[0]


def test_the_bound_is_what_an_etcd_takes_by_default() -> None:
    assert content.OBJECT_MAX < 1.5 * 2**20
    assert addon("a", config_map("x")).inline
