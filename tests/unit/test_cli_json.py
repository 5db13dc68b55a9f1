"""What commands print for programs is what its models say, and each command has a model or a reason to have none."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import typer
import yaml
from pages import DOCS
from pages.declared import comments
from pages.json_reference import NO_FACTS, OUTPUTS, Printed
from pydantic import BaseModel, TypeAdapter
from support import printed_facts
from support.cli_lab import Cli
from support.fake_face import FakeFace, books
from typer.core import TyperCommand, TyperGroup

from quarterdeck.api.base import Resource
from quarterdeck.api.output import backups, base, controllers, operations, planes, sites, status
from quarterdeck.api.output.base import NamedOutput
from quarterdeck.cli.main import app
from quarterdeck.endpoint.dns.coredns import CoreDns
from quarterdeck.errors import Unavailable
from quarterdeck.model.endpoints import Sighting

PLANE = (
    "apiVersion: quarterdeck.dev/v1alpha1\nkind: ControlPlane\nmetadata: {name: demo}\n"
    "spec: {placement: {site: east}, replicas: 5}\n"
)
HOSTS = "hosts: [{name: cp-9, zone: a, address: 10.0.0.9, roles: [control]}]"
SET = ("--set", "ipam", "--from", "kube-controller-manager", "--to", "cloud-controller-manager")
#: How each command is called, by its words and by the options with which it prints another model.
ARGUMENTS: dict[tuple[str, str], tuple[str, ...]] = {
    ("create", ""): ("other",),
    ("apply", ""): ("-f", "plane.yaml"),
    ("apply", "--dry-run"): ("-f", "plane.yaml"),
    ("node list", ""): ("demo",),
    ("node approve", ""): ("demo",),
    ("node token create", ""): ("demo",),
    ("node token list", ""): ("demo",),
    ("node token delete", ""): ("demo", "abcdef"),
    ("plan", ""): ("demo", "--to", "west"),
    ("plan", "-f"): ("plane.yaml", "demo"),
    ("migrate", ""): ("demo", "--to", "west", "--yes"),
    ("scale", ""): ("demo", "--replicas", "5", "--yes"),
    ("upgrade run", ""): ("demo", "--to", "1.37.2", "--yes"),
    ("upgrade plan", ""): ("demo",),
    ("replica list", ""): ("demo",),
    ("replica replace", ""): ("demo", "--yes"),
    ("replica cordon", ""): ("demo", "east-1"),
    ("replica uncordon", ""): ("demo", "east-1"),
    ("certs list", ""): ("demo",),
    ("certs renew", ""): ("demo", "--yes"),
    ("certs rotate-ca", ""): ("demo", "--yes"),
    ("keys rotate", ""): ("demo", "--key", "encryption", "--yes"),
    ("controllers list", ""): ("demo",),
    ("controllers plan", ""): ("demo", *SET),
    ("controllers move", ""): ("demo", *SET, "--yes"),
    ("controllers rollback", ""): ("demo", "--set", "ipam", "--yes"),
    ("controllers verify", ""): ("demo",),
    ("pause", ""): ("demo",),
    ("resume", ""): ("demo",),
    ("delete", ""): ("demo", "--yes"),
    ("get", ""): (),
    ("status", ""): ("demo",),
    ("status", "--watch"): ("demo",),
    ("events", ""): (),
    ("probe", ""): ("demo", "--for", "3"),
    ("report", ""): ("demo",),
    ("history", ""): ("demo",),
    ("abort", ""): ("demo", "--yes"),
    ("recover", ""): ("demo", "--yes"),
    ("failover", ""): ("demo", "--to", "west", "--yes"),
    ("restore", ""): ("demo", "--yes"),
    ("backup create", ""): ("demo",),
    ("backup list", ""): ("demo",),
    ("backup verify", ""): ("demo",),
    ("backup diff", ""): ("demo", "--at", "1040"),
    ("backup get", ""): ("demo", "cm", "settings", "--at", "1040"),
    ("backup get", "--apply"): ("demo", "cm", "settings", "--at", "1040", "--yes"),
    ("backup key", ""): (),
    ("etcd check", ""): ("demo",),
    ("etcd remove-member", ""): ("demo", "77", "--yes"),
    ("etcd disarm", ""): ("demo", "--yes"),
    ("etcd disable-auth", ""): ("demo", "--yes"),
    ("drill run", ""): ("demo", "--fail", "unit", "--yes"),
    ("drill list", ""): ("demo",),
    ("site list", ""): (),
    ("site show", ""): ("east",),
    ("site add", ""): ("north",),
    ("site check", ""): ("east",),
    ("site test-storage", ""): ("east", "fast"),
    ("site remove", ""): ("west", "--yes"),
    ("site forget", ""): ("west", "--yes"),
    ("site cordon", ""): ("east", "east-a1"),
    ("site uncordon", ""): ("east",),
    ("site drain", ""): ("east", "east-a1", "--yes"),
    ("site machines list", ""): ("east",),
    ("site machines add", ""): ("rack", "--inventory", "hosts.yaml"),
    ("site machines remove", ""): ("rack", "cp-9", "--yes"),
    ("site machines replace", ""): ("rack", "cp-9", "--address", "10.0.0.8"),
    ("service install", ""): ("--user", "--yes"),
    ("service status", ""): ("--user",),
    ("service remove", ""): ("--user", "--yes"),
    ("home seal", ""): ("--make", "--yes"),
    ("home unseal", ""): ("--yes",),
    ("home rekey", ""): ("--to", "new.key", "--yes"),
    ("upstream list", ""): (),
    ("upstream fetch", ""): ("etcd",),
}
#: What has to be done before, so that a command has something to print.
BEFORE: dict[str, tuple[str, ...]] = {
    "abort": ("scale", "demo", "--replicas", "5", "--yes", "--detach"),
    "home unseal": ("home", "seal", "--make", "--yes"),
    "home rekey": ("home", "seal", "--make", "--yes"),
    "report": ("scale", "demo", "--replicas", "5", "--yes"),
    "resume": ("pause", "demo"),
}
CALLS = [
    pytest.param(words, printed, id=f"{words} {printed.when}".rstrip())
    for words, found in OUTPUTS.items()
    for printed in found
]
#: One command for each model that has a name.
NAMED = {
    each.model: (words, each)
    for words, found in OUTPUTS.items()
    for each in found
    if issubclass(each.model, NamedOutput | Resource) and not each.when
}


@pytest.fixture
def lab(cli: Cli, face: FakeFace, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Plane ``demo``, which is up to date, and answers for what nothing runs for."""

    async def unseen(self: CoreDns, name: str) -> Sighting:
        raise Unavailable("asking the DNS server", "nobody is there")

    assert face.findings
    cli.plane()
    cli.with_store(books)
    printed_facts.install(monkeypatch, cli)
    monkeypatch.setattr(CoreDns, "look", unseen)
    monkeypatch.setattr("quarterdeck.cli.work.subprocess.Popen", lambda *_, **__: None)
    monkeypatch.chdir(cli.folder)
    (cli.folder / "new.key").write_bytes(bytes(range(64)))
    (cli.folder / "new.key").chmod(0o600)
    (cli.folder / "plane.yaml").write_text(PLANE)
    (cli.folder / "hosts.yaml").write_text(HOSTS)
    return cli


def called(lab: Cli, words: str, printed: Printed, output: str) -> str:
    """What a command prints on standard output."""
    key = {"QUARTERDECK_KEY_FILE": str(lab.folder / "key")} if words.startswith("home ") else {}
    if words in BEFORE:
        assert lab(*BEFORE[words], **key).code == 0
    when = (printed.when,) if printed.when else ()
    result = lab(*words.split(), *when, *ARGUMENTS[words, printed.when], "-o", output, **key)
    assert result.code in (0, 1, 6), result
    assert result.out, result
    return result.out


@pytest.mark.parametrize(("words", "printed"), CALLS)
def test_the_json_of_a_command_is_what_its_model_says(lab: Cli, words: str, printed: Printed) -> None:
    text = called(lab, words, printed, "json")
    model = tuple[printed.model, ...] if printed.many else printed.model  # type: ignore[name-defined]
    TypeAdapter(model).validate_json(text, by_alias=True, by_name=False)
    document = json.loads(text)
    assert not printed.many or document, "an empty list says nothing of its items"
    for moment in re.findall(r'"\d{4}-\d\d-\d\dT[^"]*"', text):
        assert moment.endswith('Z"'), f"{moment} is not in UTC"


@pytest.mark.parametrize("words", ["status", "events", "site list", "plan"])
def test_the_yaml_of_a_command_has_the_same_fields(lab: Cli, words: str) -> None:
    printed = OUTPUTS[words][0]
    asked, read = (called(lab, words, printed, each) for each in ("json", "yaml"))
    assert shape(yaml.safe_load(read)) == shape(json.loads(asked))


def shape(document: object) -> object:
    """A document without its values."""
    if isinstance(document, dict):
        return {key: shape(value) for key, value in document.items()}
    return [shape(each) for each in document] if isinstance(document, list) else None


@pytest.mark.parametrize(("words", "printed"), [pytest.param(*each, id=each[0]) for each in NAMED.values()])
def test_the_name_of_what_a_command_prints_is_a_kind_and_a_name(lab: Cli, words: str, printed: Printed) -> None:
    lines = called(lab, words, printed, "name").splitlines()
    assert lines
    assert [each for each in lines if not re.fullmatch(r"[a-z]+(/[\w.-]+)+", each)] == []


def test_a_change_is_named_by_its_operation_and_one_without_by_what_it_changed(lab: Cli) -> None:
    assert lab("scale", "demo", "--replicas", "5", "--yes", "-o", "name").out.startswith("operation/demo-scale-")
    assert lab("pause", "demo", "-o", "name").out == "plane/demo\n"


def test_what_has_no_name_is_refused_as_any_other_word_that_is_no_choice(lab: Cli) -> None:
    result = lab("events", "-o", "name")
    assert result.code == 2
    assert "'name' is not one of" in result.err


def all_commands(group: TyperGroup, *path: str) -> dict[str, TyperCommand]:
    """Every command by its words."""
    found: dict[str, TyperCommand] = {}
    for name in group.list_commands(typer.Context(group)):
        command = group.get_command(typer.Context(group), name)
        if isinstance(command, TyperGroup):
            found |= all_commands(command, *path, name)
        else:
            assert isinstance(command, TyperCommand)
            found[" ".join((*path, name))] = command
    return found


def root() -> TyperGroup:
    found = typer.main.get_command(app)
    assert isinstance(found, TyperGroup)
    return found


def test_each_command_has_a_model_or_a_reason_to_have_none_and_only_then_no_option() -> None:
    commands = all_commands(root())
    assert commands.keys() == OUTPUTS.keys() | NO_FACTS.keys()
    assert OUTPUTS.keys() & NO_FACTS.keys() == set()
    with_option = {words for words, each in commands.items() if any("-o" in option.opts for option in each.params)}
    assert with_option == OUTPUTS.keys()


MODELS = [
    each
    for module in (backups, base, controllers, operations, planes, sites, status)
    for each in vars(module).values()
    if isinstance(each, type) and issubclass(each, base.OutputModel) and each.__module__ == module.__name__
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_each_field_of_a_model_is_explained_and_has_its_unit_in_its_name(model: type[BaseModel]) -> None:
    if model is not base.NamedOutput:
        assert model.model_fields.keys() - comments(model).keys() == set()
    for name, field in model.model_fields.items():
        if "float" in str(field.annotation):
            assert "_seconds" in name, name
        if "datetime" in str(field.annotation):
            assert re.fullmatch(r"(\w+_)?at|not_(before|after)|\w+_until", name), name


def test_the_names_of_a_dry_run_are_those_of_the_resources(lab: Cli) -> None:
    assert lab("apply", "--dry-run", "-f", "plane.yaml", "-o", "name").out == "plane/demo\n"


@pytest.mark.parametrize("page", sorted((DOCS / "reference").glob("json*.md")), ids=lambda page: page.name)
def test_a_page_of_the_reference_is_short(page: Path) -> None:
    assert len(page.read_bytes()) <= 25_000
