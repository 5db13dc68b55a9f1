"""What came of trying on a host what will be done there, and the pieces of scripts that do it, run on this host."""

from __future__ import annotations

import gzip
import subprocess
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest
from support.golden import Golden
from support.host_script import functions

from quarterdeck.model.findings import Verdict
from quarterdeck.model.units import MachineRole
from quarterdeck.sites.ssh import facts
from quarterdeck.sites.ssh.facts import FileFailure, TrialFacts, judge_trials, read_trials
from quarterdeck.sites.ssh.hosts import Login, SshHost

HOST = SshHost(name="one", address="192.0.2.1", zone="a", roles=(MachineRole.CONTROL,), login=Login(host="one"))
OUTPUT = """\
rights\tsudo
trial\texecute\t/var/lib\tprograms\tbash: a file in /var/lib: Permission denied
trial\twrite\t/etc\taccounts\tmktemp: failed: Read-only file system
environment\tHTTPS_PROXY
environment\tGODEBUG
selinux\t1
class\tstandard\t/var/lib\tyes\t1
"""


def test_the_words_of_the_host_are_kept() -> None:
    assert read_trials(OUTPUT) == TrialFacts(
        failures=(
            FileFailure(
                how="execute", folder="/var/lib", what="programs", error="bash: a file in /var/lib: Permission denied"
            ),
            FileFailure(how="write", folder="/etc", what="accounts", error="mktemp: failed: Read-only file system"),
        ),
        environment=("HTTPS_PROXY", "GODEBUG"),
        enforcing=True,
    )
    assert read_trials("") == TrialFacts()


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("execute", "/var is mounted noexec"),
        ("execute", "bash: a file in /var/lib: Permission denied"),
        ("execute", "systemd cannot execute it (exit code 203)"),
        ("write", "mktemp: failed: Read-only file system"),
        ("execute", "mktemp: failed: Read-only file system"),
        ("write", "mktemp: failed: No space left on device"),
    ],
)
def test_what_cannot_be_done_stands_in_the_way(how: str, words: str, golden: Golden) -> None:
    failure = FileFailure(how=how, folder="/var/lib", what="programs", error=words)
    (found,) = judge_trials(HOST, TrialFacts(failures=(failure,)))
    assert found.finding.verdict is Verdict.REFUSE
    golden(found.finding.seen)
    golden(found.finding.next_step)


def test_a_denial_of_selinux_is_told_from_a_mount_option() -> None:
    failure = FileFailure(
        how="execute", folder="/var/lib", what="programs", error="systemd cannot execute it (exit code 203)"
    )
    found = [*judge_trials(HOST, TrialFacts(failures=(failure,), enforcing=True))]
    assert [each.finding.verdict for each in found] == [Verdict.REFUSE, Verdict.WARN]
    assert "ausearch" in found[0].finding.next_step
    assert "semanage fcontext" in found[1].finding.next_step


def test_variables_that_systemd_gives_to_services_are_named_proxies_first(golden: Golden) -> None:
    (found,) = judge_trials(HOST, TrialFacts(environment=("GODEBUG", "https_proxy", "NO_PROXY")))
    assert found.finding.verdict is Verdict.WARN
    golden(found.finding.seen)
    assert "DefaultEnvironment=" in found.finding.next_step
    assert [*judge_trials(HOST, replace(TrialFacts(), environment=()))] == []


def run(code: str, *argv: str) -> str:
    done = subprocess.run(("bash", "-c", code, "bash", *argv), capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def piece(name: str) -> str:
    """The functions of a piece of the check; what it does comes after the first line of its loop."""
    text = (Path(facts.__file__).with_name("check") / f"{name}.sh").read_text()
    return text[: text.index("\nwhile ")]


def test_a_file_is_tried_where_it_will_be_and_does_not_stay(tmp_path: Path, golden: Golden) -> None:
    code = f"{piece('trial')}\nFOLDER=$1; tried write"
    assert run(code, str(tmp_path)) == ""
    golden(run(code, str(tmp_path / "gone")))
    assert [*tmp_path.iterdir()] == []


def test_the_nearest_folder_that_is_there_is_tried(tmp_path: Path) -> None:
    code = f'{piece("trial")}\nnearest "$1"; echo "$FOLDER"'
    assert run(code, f"{tmp_path}/a/b").strip() == str(tmp_path)
    assert run(code, "/no-such-folder/b").strip() == "/"


_STRAY = 'listed=$2; systemctl() { printf "%s" "$listed"; }; stray_variables "$1"'


def test_units_do_without_the_variables_of_systemd_that_their_spec_does_not_have(tmp_path: Path) -> None:
    env = tmp_path / "env"
    env.write_text('HTTPS_PROXY="http://wanted"\nPYTHONPATH="/x"\n')
    listed = "HTTP_PROXY=http://proxy\nGODEBUG=x\nPATH=/bin\nETCD_NAME=a\nPYTHONPATH=/y\nLC_ALL=C\n"
    names = run(f"{functions()}{_STRAY}", str(env), listed).split()
    assert {"GODEBUG", "ETCD_NAME", "HTTP_PROXY", "https_proxy", "no_proxy", "NO_PROXY", "all_proxy"} <= {*names}
    assert not {"PATH", "PYTHONPATH", "HTTPS_PROXY", "LC_ALL"} & {*names}
    assert "HTTP_PROXY" in run(f"{functions()}{_STRAY}", str(env), "").split(), "systemd may be given one later"


def test_a_program_that_is_gone_or_cannot_be_executed_is_named(tmp_path: Path, golden: Golden) -> None:
    code = f'{functions()}why_not_executable "$1"'
    program = tmp_path / "etcd"
    golden(run(code, str(program)))
    program.write_text("#!/bin/sh\n")
    program.chmod(0o644)
    golden(run(code, str(program)))
    program.chmod(0o755)
    assert run(code, str(program)) == ""


_BY_SYSTEMD = 'systemd-run() { "${!#}"; }'


def selinux(folder: Path, enforce: str, code: str) -> tuple[str, str]:
    """The code with a kernel whose SELinux is so; returns it, and where it writes what is labelled."""
    (folder / "selinux").mkdir()
    (folder / "selinux/enforce").write_text(enforce)
    labels = folder / "labels"
    chcon = f'chcon() {{ echo "$*" >> "{labels}"; }}\n'
    return chcon + code.replace("/sys/fs/selinux", f"{folder}/selinux"), str(labels)


def test_programs_are_labelled_where_there_is_selinux(tmp_path: Path) -> None:
    (tmp_path / "programs").mkdir()
    (tmp_path / "part").write_bytes(gzip.compress(b"#!/bin/sh\n"))
    program, packed = sha256(b"#!/bin/sh\n").hexdigest(), sha256((tmp_path / "part").read_bytes()).hexdigest()
    (tmp_path / "part").rename(tmp_path / f"programs/.part-{packed}")
    come = f"{functions()}LIB=$1; locked() {{ :; }}; ask_program_whole {program} etcd {packed} gzip"
    code, labels = selinux(tmp_path, "1", come)
    run(code, str(tmp_path))
    assert (tmp_path / f"programs/{program}/etcd").exists()
    (line,) = Path(labels).read_text().splitlines()
    assert line.startswith(f"-t bin_t {tmp_path}/programs/{program}/.new."), "before it has its name"


def test_the_script_labels_itself_where_there_is_selinux(tmp_path: Path) -> None:
    folders = "SELF=$1/host LIB=$1/lib RUN=$1/run UNITS=$1/lib/units ACCOUNTS=''"
    code, labels = selinux(tmp_path, "0", f"{functions()}{folders}; prepare")
    run(code, str(tmp_path))
    assert Path(labels).read_text().split() == ["-t", "bin_t", f"{tmp_path}/host"], (
        "permissive hosts may be made enforcing"
    )


@pytest.mark.parametrize(("state", "enforcing"), [("1", True), ("0", False)])
def test_the_trial_labels_what_it_executes_and_says_whether_selinux_enforces(
    tmp_path: Path, state: str, enforcing: bool
) -> None:
    text = (Path(facts.__file__).with_name("check") / "trial.sh").read_text()
    (last,) = (line for line in text.splitlines() if "say selinux" in line)
    code, labels = selinux(tmp_path, state, f"{piece('trial')}\n{_BY_SYSTEMD}\nFOLDER=$1; tried execute\n{last}")
    output = run(code, str(tmp_path))
    assert read_trials(output).enforcing is enforcing
    assert Path(labels).read_text().startswith(f"-t bin_t {tmp_path}/.quarterdeck-check.")


def test_without_selinux_nothing_is_labelled(tmp_path: Path) -> None:
    code, labels = selinux(tmp_path, "1", f'{functions()}label "$1"')
    (tmp_path / "selinux/enforce").unlink()
    run(code, str(tmp_path / "host"))
    assert not Path(labels).exists()


@pytest.mark.parametrize("most", [3, 1000])
def test_as_many_inotify_instances_as_a_plane_takes_are_opened_at_once_on_a_host(most: int) -> None:
    limited = f"echo {most} > /proc/sys/user/max_inotify_instances || exit 77\n{functions()}inotify_instances 5"
    argv = ("unshare", "--user", "--map-root-user", "bash", "-c", limited)
    done = subprocess.run(argv, capture_output=True, text=True, timeout=30, check=False)
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip(f"no namespace of users here: {done.stderr}")
    assert done.stdout.strip() == str(min(most, 5))
