"""What is said to hosts, and read of what they say."""

from __future__ import annotations

import io
import json
import tarfile
from dataclasses import replace
from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.golden import Golden

from quarterdeck.errors import Conflict, Corrupt, InvalidInput, LeaseLost, NotFound, PreconditionFailed, Unavailable
from quarterdeck.model.site_facts import VolumeFacts
from quarterdeck.model.units import Fence, MachineRole, Priority, UnitFile, UnitSpec, UnitState, UnitStatus
from quarterdeck.sites.base.records import UnitRecord
from quarterdeck.sites.ssh import wire
from quarterdeck.sites.ssh.hosts import Login, SshHost, SshSettings
from quarterdeck.sites.ssh.looks import read_look, read_volumes
from quarterdeck.sites.ssh.unit_archive import (
    UNITS,
    account_of,
    files_archive,
    kept_record,
    quoted,
    unit_archive,
    unit_of,
)

FOLDER = UNITS / "p-etcd" / "files"
SPEC = UnitSpec(
    name="p-etcd",
    argv=("/programs/etcd", "--name=a b", "--data-dir=/var/lib/quarterdeck/volumes/standard/p"),
    boot_argv=("--initial-cluster-state=new",),
    files=(UnitFile(FOLDER / "pki/key", b"secret"), UnitFile(FOLDER / "conf", b"public", 0o644)),
    env=(("KEY", 'a"b\\c $d'),),
    needs=PurePosixPath("/var/lib/quarterdeck/volumes/standard/p/member/wal/*.wal"),
    owns=(PurePosixPath("/var/lib/quarterdeck/volumes/standard/p"),),
    after=("p-other",),
)
RECORD = UnitRecord.of(SPEC)


def archived(record: UnitRecord = RECORD, files: tuple[UnitFile, ...] = ()) -> dict[str, tuple[bytes, int]]:
    return unpacked(unit_archive("m1", MachineRole.CONTROL, record, files))


def account(spec: UnitSpec = SPEC, role: MachineRole = MachineRole.CONTROL) -> str:
    return account_of(role, UnitRecord.of(spec))


def record_lines(record: UnitRecord, start: str) -> list[str]:
    return [each for each in archived(record)["record"][0].decode().splitlines() if each.startswith(start)]


def unpacked(archive: bytes) -> dict[str, tuple[bytes, int]]:
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        found = [(each, tar.extractfile(each)) for each in tar.getmembers()]
        return {each.name: (stream.read(), each.mode) for each, stream in found if stream is not None}


def test_a_request_says_who_asks_and_until_when() -> None:
    sent = wire.request(7, 12.9, Fence("alpha", 8), ("start", "unit", "fresh"), b"body")
    assert sent == b"7 12 alpha 8 4 start unit fresh\nbody"
    assert wire.request(8, 12.0, None, ("ping",), b"") == b"8 12 - 0 0 ping\n"


@pytest.mark.parametrize("word", ["", "a b", "a\nb", "a\tb", "\x00"])
def test_a_word_that_would_be_two_is_refused(word: str) -> None:
    with pytest.raises(InvalidInput):
        wire.request(1, 1.0, None, ("stop", word), b"")


def test_an_answer_is_read() -> None:
    assert wire.answer(b"7 0 55.31 a b\n") == wire.ReplyLine(id=7, code=0, uptime=55.31, text=b"a b")
    assert wire.answer(b"7 0 55.31 \n").text == b""
    assert wire.answer(b"7 - 55.31 a\n").code is None
    for line in (b"\n", b"7 0 120\n", b"seven 0 1 1\n"):
        with pytest.raises(ValueError, match=r"unpack|invalid literal"):
            wire.answer(line)


@given(st.binary())
def test_a_text_is_read_as_the_host_meant_it(text: bytes) -> None:
    written = text.replace(b"\\", b"\\\\").replace(b"\n", b"\\n")
    assert b"\n" not in written
    assert wire.text_of(written) == text


@pytest.mark.parametrize(
    ("code", "kind"),
    [(10, Unavailable), (11, LeaseLost), (12, Conflict), (13, NotFound), (15, PreconditionFailed), (16, InvalidInput)],
)
def test_what_a_host_refuses_is_an_error_of_its_kind(code: int, kind: type[Exception], golden: Golden) -> None:
    error = wire.refusal("stopping it", code, "some noise\nthe reason")
    assert type(error) is kind
    golden(str(error))
    golden(str(wire.refusal("stopping it", 1, "")))


def test_a_unit_is_an_archive_with_all_that_its_host_needs(golden: Golden) -> None:
    found = archived(files=SPEC.files)
    assert found["files/pki/key"] == (b"secret", 0o600)
    assert found["files/conf"] == (b"public", 0o644)
    golden(found["exec"][0].decode())
    assert found["env"][0].decode() == 'KEY="a\\"b\\\\c \\$d"\n'
    record = found["record"][0].decode().splitlines()
    assert {
        "machine m1",
        "account quarterdeck-etcd",
        f"digest {SPEC.digest}",
        f"needs {SPEC.needs}",
        "after p-other",
    } <= {*record}
    assert sum(each.startswith("file ") for each in record) == 2
    assert "secret" not in found["record"][0].decode()
    assert kept_record("reading it", found["spec.json"][0]) == UnitRecord.of(SPEC)


def test_a_file_that_is_not_below_its_unit_is_refused() -> None:
    for path in (FOLDER / "../../other/record", PurePosixPath("/etc/passwd"), FOLDER):
        with pytest.raises(InvalidInput):
            archived(files=(UnitFile(path, b""),))
        with pytest.raises(InvalidInput):
            files_archive((UnitFile(path, b""),))
    assert unit_of(FOLDER / "eds/one") == ("p-etcd", PurePosixPath("eds/one"))
    assert [*unpacked(files_archive((UnitFile(FOLDER / "eds/one", b"1"),)))] == ["p-etcd/eds/one"]


def test_who_a_unit_runs_as_depends_on_what_it_is() -> None:
    assert account() == "quarterdeck-etcd"
    assert account(replace(SPEC, needs=None)) == "quarterdeck-api"
    assert account(replace(SPEC, needs=None), MachineRole.EDGE) == "quarterdeck-edge"
    assert account(role=MachineRole.DNS) == "quarterdeck-edge"


def test_what_gives_way_has_a_smaller_weight() -> None:
    serving, behind = (UnitRecord.of(replace(SPEC, priority=each)) for each in (Priority.SERVING, Priority.BACKGROUND))
    assert record_lines(serving, "weight") == ["weight 100"]
    assert record_lines(behind, "weight") == ["weight 33"]


def test_a_guarded_unit_has_other_arguments_at_its_next_start_and_is_the_same_program() -> None:
    needs = "/var/lib/quarterdeck/volumes/standard/p/other/*"
    record = RECORD
    guarded = record.guarded(needs, ("--initial-cluster-state=existing", "--more=1"))
    assert guarded.argv == (*SPEC.argv, "--initial-cluster-state=existing", "--more=1")
    assert (guarded.needs, guarded.digest) == (needs, SPEC.digest)
    assert record_lines(guarded, "program") == record_lines(record, "program") != []
    again = UnitRecord.of(replace(SPEC, boot_argv=(), needs=None)).as_started(guarded)
    assert (again.argv, again.needs) == (guarded.argv, needs)


def test_a_record_of_a_unit_that_cannot_be_parsed_is_shown(golden: Golden) -> None:
    for stored in (b"", b"{}", b"[1]", json.dumps({"machine": 1}).encode()):
        with golden.raises(Corrupt):
            kept_record("reading it", stored)


def systemd_reads(text: str) -> str:
    """A word as systemd.syntax(7) and systemd.service(5) say that it is read."""
    quoted_word = text.startswith('"')
    body, out, at = text[1:-1] if quoted_word else text, "", 0
    while at < len(body):
        two = body[at : at + 2]
        known = {"\\\\": "\\", '\\"': '"', "\\n": "\n", "\\t": "\t", "%%": "%", "$$": "$"} if quoted_word else {}
        out += known.get(two, body[at])
        at += 2 if two in known else 1
    return out


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",))))
def test_an_argument_survives_a_unit_file(text: str) -> None:
    written = quoted(text)
    assert "\n" not in written
    assert systemd_reads(written) == text


def test_a_look_is_read(golden: Golden) -> None:
    output = (
        "unit\tm1\tp-etcd\trunning\tabc\t41\t-9\t1\tno\t7 12 one\t\n"
        "unit\tm1-edge\tp-envoy\tfailed\tdef\t\t3\t0\tyes\t\tits data is gone\n"
        "files\tm1-edge\tq-envoy\n"
        "volume\tstandard\tp\tno\tb.wal\ta.wal\nvolume\tshared\tq\tyes\naway\tfast\n"
    )
    seen = read_look("looking", output.encode())
    assert seen.units_of("m1") == (
        UnitStatus(
            name="p-etcd", state=UnitState.RUNNING, digest="abc", pid=41, exit_code=-9, restarts=1, note="7 12 one"
        ),
    )
    edge, other = seen.units_of("m1-edge")
    assert other == UnitStatus(name="q-envoy", state=UnitState.STOPPED, files_only=True)
    assert (edge.state, edge.pid, edge.exit_code, edge.altered) == (UnitState.FAILED, None, 3, True)
    golden(edge.refused)
    assert seen.volumes == (
        VolumeFacts(name="p", storage_class="standard", entries=("a.wal", "b.wal")),
        VolumeFacts(name="q", storage_class="shared", arriving=True),
    )
    assert seen.away == ("fast",)
    assert read_look("looking", b"").units == ()
    for wrong in (b"what\tever\n", b"unit\tm1\n", b"files\tm1\n", b"unit\tm1\tu\tsleeping\t\t\t\t0\tno\t\t\n"):
        with pytest.raises(Corrupt):
            read_look("looking", wrong)


def test_volumes_are_read() -> None:
    (seen,) = read_volumes("looking", b"data\tsmall\t/srv/data\t8192\t1700000000.5\n")
    assert (seen.name, seen.storage_class, seen.used_bytes, seen.changed) == ("data", "small", 8192, 1700000000.5)
    assert read_volumes("looking", b"data\tsmall\t/srv/data\t0\t\n")[0].changed is None
    with pytest.raises(Corrupt):
        read_volumes("looking", b"data\tsmall\n")


def test_a_host_is_a_machine_for_each_of_its_roles() -> None:
    host = SshHost(
        name="m1",
        address="10.0.0.1",
        zone="a",
        roles=(MachineRole.CONTROL, MachineRole.EDGE, MachineRole.DNS),
        login=Login(host="m1.example"),
    )
    alone = replace(host, name="lb", roles=(MachineRole.EDGE,))
    settings = SshSettings(name="east", hosts=(host, alone))
    assert {name: role for name, (_, role) in settings.stands().items()} == {
        "m1": MachineRole.CONTROL,
        "m1-edge": MachineRole.EDGE,
        "m1-dns": MachineRole.DNS,
        "lb": MachineRole.EDGE,
    }
