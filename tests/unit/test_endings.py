"""Why a program ended is told in its own words: by real output of real programs, and by the way in which it ended."""

from __future__ import annotations

from pathlib import Path

import pytest
from fakes.site import FakeSite
from fakes.site_machines import Behaviour
from support.golden import Golden

from quarterdeck.components.endings import last_reason, present_reason, why_it_ended
from quarterdeck.model.units import UnitSpec
from quarterdeck.sites.endings import complaint, why_idle, why_unit_ended
from quarterdeck.sites.local.settings import LocalSiteSettings

OUTPUTS = Path(__file__).parents[1] / "fixtures" / "endings"

#: What each program said when it was started with a wrong flag, file or address, and with which exit code it ended.
REASONS = {
    "apiserver-audit-level": (1, 'rules[0].level: Unsupported value: "Everything"'),
    "apiserver-audit-v1beta1": (1, 'no kind "Policy" is registered for version "audit.k8s.io/v1beta1"'),
    "apiserver-cidr": (1, 'service IP family "fd00::/64" must match public address family'),
    "apiserver-expression": (1, "Syntax error: token recognition error at: '=' | request.user ="),
    "apiserver-feature-gate": (1, "unrecognized feature gate: NoSuchGate"),
    "apiserver-missing-file": (1, "open /nonexistent: no such file or directory"),
    "apiserver-no-etcd": (1, "error creating storage factory: context deadline exceeded"),
    "apiserver-port-taken": (1, "exit code 1: failed to create listener: failed to listen on 127.69.208.159:6443"),
    "apiserver-unknown-flag": (1, "unknown flag: --cloud-provider"),
    "coredns-address": (1, "listen tcp 203.0.113.9:24053: bind: cannot assign requested address"),
    "coredns-bad-value": (1, 'plugin/auto: plugin/file: time: invalid duration "soon"'),
    "coredns-missing": (1, "loading Caddyfile via flag: open /nonexistent"),
    "coredns-port-taken": (1, "listen tcp 127.9.9.3:24053: bind: address already in use"),
    "coredns-syntax": (1, "Corefile3:2 - Syntax error: Unexpected token 'file'"),
    "coredns-twice": (1, "cannot serve dns://example.test.:24053 on 127.9.9.3 - it is already defined"),
    "coredns-udp-taken": (1, "listen udp 127.9.9.3:24053: bind: address already in use"),
    "coredns-unknown-flag": (2, "flag provided but not defined: -nosuch"),
    "coredns-unknown-plugin": (1, "Unknown directive 'nosuch'"),
    "envoy-bad-address": (1, "exit code 1: malformed IP address: nonsense"),
    "envoy-bad-concurrency": (1, "(--concurrency) -- Couldn't read argument value from string 'many'"),
    "envoy-bad-config": (1, "INVALID_ARGUMENT: invalid JSON"),
    "envoy-missing": (1, "Invalid path: /nonexistent.yaml"),
    "envoy-no-backends": (1, "the system: '/srv/live/backends.json' does not exist"),
    "envoy-port-taken": (1, "exit code 1: cannot bind '127.9.9.1:24101': Address already in use"),
    "envoy-unknown-flag": (1, "--nosuch -- Couldn't find match for argument"),
    "etcd-address-not-here": (1, "listen tcp 203.0.113.9:24001: bind: cannot assign requested address"),
    "etcd-bad-cert": (1, "listener failed: open /nonexistent: no such file or directory"),
    "etcd-bad-url": (2, 'invalid value "nonsense" for flag -listen-client-urls'),
    "etcd-cluster-mismatch": (1, 'couldn\'t find local name "default" in the initial cluster configuration'),
    "etcd-corrupt-db": (2, "failed to open database: invalid database"),
    "etcd-corrupt-wal": (2, "panic: cannot use none as id"),
    "etcd-data-is-file": (1, "failed to list data directory: readdirent /srv/file: not a directory"),
    "etcd-port-taken": (1, "listen tcp 127.69.208.159:2380: bind: address already in use"),
    "etcd-unknown-flag": (2, "flag provided but not defined: -enable-v2v3"),
    "kcm-apiserver-frozen": (1, '"Failed to renew lease" lock="kube-system/kube-controller-manager"'),
    "kcm-bad-ca": (1, "exit code 1: unable to load root certificates: unable to parse bytes as PEM block"),
    "kcm-bad-cidr": (1, '"Error building controllers" err="invalid CIDR[0]: <nil> (invalid CIDR address: 10.0.0.0/33)'),
    "kcm-bad-deadline": (2, "panic: leaseDuration must be greater than renewDeadline"),
    "kcm-bad-flag-value": (1, 'invalid argument "soon" for "--leader-elect-renew-deadline" flag'),
    "kcm-feature-gate": (1, "invalid value of X=yes, err: strconv.ParseBool"),
    "kcm-garbage-kubeconfig": (1, 'error loading config file "/srv/kube-controller-manager/kubeconfig.yaml": yaml: '),
    "kcm-lease-taken": (1, '"Failed to renew lease" lock="kube-system/kube-controller-manager"'),
    "kcm-missing-root-ca": (1, "error parsing root-ca-file at /nonexistent: open /nonexistent: no such file"),
    "kcm-no-kubeconfig": (1, "stat /nonexistent: no such file or directory"),
    "kcm-port-taken": (1, "listen tcp 127.69.208.159:10257: bind: address already in use"),
    "kcm-unknown-controllers": (1, '"nosuch" is not in the list of known controllers'),
    "kcm-unknown-flag": (1, "unknown flag: --nosuch"),
    "keepalived-config": (2, "Non-existent interface specified in configuration"),
    "keepalived-flag": (1, "Unknown option --nosuch"),
    "keepalived-missing": (6, "Config files missing '/nonexistent'."),
    "python": (1, "ValueError: no cloud named 'x'"),
    "scheduler-apiserver-frozen": (1, '"Failed to renew lease" lock="kube-system/kube-scheduler"'),
    "scheduler-bad-deadline": (1, "couldn't create leader elector: leaseDuration must be greater than renewDeadline"),
    "scheduler-bad-flag-value": (1, 'invalid argument "soon" for "--leader-elect-renew-deadline" flag'),
    "scheduler-bad-kubeconfig": (1, "error loading config file"),
    "scheduler-garbage-kubeconfig": (1, 'error loading config file "/srv/kube-scheduler/kubeconfig.yaml": yaml: '),
    "scheduler-lease-taken": (1, '"Failed to renew lease" lock="kube-system/kube-scheduler"'),
    "scheduler-no-kubeconfig": (1, "stat /nonexistent: no such file or directory"),
    "scheduler-port-taken": (1, "listen tcp 127.69.208.159:10259: bind: address already in use"),
    "scheduler-unknown-flag": (1, "unknown flag: --policy-config-file"),
    "shell": (127, "nosuchprogram: command not found"),
    "shell-exec": (126, "/etc/passwd: cannot execute: Permission denied"),
    "shell-unset": (127, "FOO: unbound variable"),
}


def test_there_is_a_reason_for_each_output() -> None:
    assert {each.stem for each in OUTPUTS.glob("*.txt")} == set(REASONS)


@pytest.mark.parametrize("name", REASONS)
def test_a_real_program_says_why_it_ended(name: str) -> None:
    exit_code, reason = REASONS[name]
    found = why_it_ended((OUTPUTS / f"{name}.txt").read_text(), exit_code)
    assert found.startswith(f"exit code {exit_code}: ")
    assert reason in found
    assert "\n" not in found


@pytest.mark.parametrize("name", REASONS)
def test_retries_and_farewells_after_the_reason_do_not_hide_it(name: str) -> None:
    noise = (
        "W1125 21:43:10.112199    9231 logging.go:55] [core] grpc: addrConn.createTransport failed to connect to {}\n"
        '{"level":"info","ts":"2026-11-25T21:42:58Z","msg":"closed etcd server"}\n'
        "[2026-11-25 21:45:40.046][16165][info][main] [source/server/server.cc:1159] exiting\n"
        "Stopped Keepalived v2.2.7 (01/16,2022)\n"
    )
    text = (OUTPUTS / f"{name}.txt").read_text()
    assert last_reason(text + noise) == last_reason(text)


def test_the_reason_is_that_of_the_last_run(golden: Golden) -> None:
    before = (OUTPUTS / "etcd-unknown-flag.txt").read_text()
    after = (OUTPUTS / "etcd-data-is-file.txt").read_text()
    golden(last_reason(before + after))
    assert "enable-v2v3" in last_reason(after + before)


def run(name: str, how: str = "exit code 1") -> str:
    text = name if name.endswith("\n") else (OUTPUTS / f"{name}.txt").read_text()
    return f"quarterdeck: starting\n{text}" + (f"quarterdeck: ended: {how}\n" if how else "")


NO_LISTENER = (
    "[2026-11-25 21:45:40.046][1][warning][config] [source/a.cc:1] gRPC config for Listener rejected: "
    "Error adding/updating listener(s) clients: cannot bind '127.1.0.1:6443': Address already in use\n"
)
WELL = "[2026-11-25 21:46:40.046][1][info][main] [source/server/server.cc:1159] all dependencies initialized\n"


def test_a_reason_is_that_of_the_last_run_that_has_ended_and_of_none_before(golden: Golden) -> None:
    killed = run(NO_LISTENER) + run(WELL, "killed by SIGKILL")
    golden(why_it_ended(killed, -9))
    assert "cannot bind" in why_it_ended(run(WELL) + run(NO_LISTENER), 1)
    begun = killed + run(WELL, how="")
    assert why_it_ended(begun, -9) == why_it_ended(killed, -9), "it is the one before that has ended"
    off = run(NO_LISTENER, how="") + run(WELL, "killed by SIGKILL")
    assert "cannot bind" not in why_it_ended(off, -9), "its machine was off, and could not note that it ended"
    late = "quarterdeck: starting\nquarterdeck: ended: exit code 1\nError: last words\n"
    golden(why_it_ended(run(NO_LISTENER) + late + run(WELL, how=""), 1))


@pytest.mark.parametrize("name", REASONS)
def test_no_program_is_told_the_reason_of_a_run_before_it_came_up(name: str, golden: Golden) -> None:
    _, reason = REASONS[name]
    came_up = run(name) + run("it serves\n", how="")
    assert reason in why_it_ended(came_up, 1), "it is the last one that has ended"
    assert present_reason(came_up) == "it serves"
    golden(why_it_ended(run(name) + run("it serves\n", "killed by SIGTERM"), -15))
    assert reason.removeprefix("exit code 1: ") in present_reason(run("it serves\n") + run(name, how=""))


def test_why_a_machine_cannot_start_it_again_is_its_ending(golden: Golden) -> None:
    before = run(NO_LISTENER) + run(WELL, "killed by SIGKILL")
    golden(why_it_ended(f"{before}quarterdeck: cannot start: no program\n"))
    begun = f"{before}quarterdeck: starting\nquarterdeck: cannot start: too many open files\n"
    golden(why_it_ended(begun))


def test_output_without_such_lines_is_that_of_one_run() -> None:
    assert "cannot bind" in why_it_ended(NO_LISTENER + WELL, 1)
    assert "cannot bind" in present_reason(NO_LISTENER + WELL)
    assert why_it_ended("", None) == present_reason("") == ""


def test_a_lease_that_is_lost_after_other_runs_is_the_reason(golden: Golden) -> None:
    before = (OUTPUTS / "kcm-port-taken.txt").read_text()
    after = (OUTPUTS / "kcm-lease-taken.txt").read_text()
    golden(last_reason(before + after))
    assert "address already in use" in last_reason(after + before)


def test_what_is_killed_has_not_said_why(golden: Golden) -> None:
    golden(why_it_ended((OUTPUTS / "kcm-lease-taken.txt").read_text(), -9))


#: What other programs write, and the part of it that is the reason.
OTHERS = (
    ("F1125 21:42:59.872433    9192 main.go:72] no provider given\ngoroutine 1 [running]:\n", "no provider given"),
    (
        "panic: runtime error: nil map\n\ngoroutine 1 [running]:\nmain.main()\n\t/x.go:3 +0x18\nexit status 2\n",
        "panic: runtime error: nil map",
    ),
    ('time="2026-11-25T21:42:59Z" level=fatal msg="no token" error="stat /t: gone"\n', "no token: stat /t: gone"),
    (
        'Traceback (most recent call last):\n  File "x"\nValueError: a\n\nDuring handling of it:\n\n'
        "Traceback (most recent call last):\n  File \"x\"\nKeyError: 'b'\n",
        "KeyError: 'b'",
    ),
    ("usage: ccm [-h]\nccm: error: unrecognized arguments: --x\n", "ccm: error: unrecognized arguments: --x"),
    (
        "thread 'main' panicked at src/main.rs:2:5: explicit panic\nnote: run with `RUST_BACKTRACE=1`\n",
        "thread 'main' panicked at src/main.rs:2:5: explicit panic",
    ),
    (
        "[2026-11-25 21:45:40.046][1][critical][assert] [source/a.cc:1] assert failure: inotify_fd_ >= 0\n"
        "[2026-11-25 21:45:40.046][1][critical][backtrace] [./b.h:104] Caught Aborted, suspect faulting address 0x1\n"
        "[2026-11-25 21:45:40.046][1][critical][backtrace] [./b.h:91] Backtrace (use tools/stack_decode.py):\n",
        "assert failure: inotify_fd_ >= 0",
    ),
    (
        "etcd: error while loading shared libraries: libx.so: cannot open\n",
        "etcd: error while loading shared libraries: libx.so: cannot open",
    ),
    (
        "supervisor: couldn't exec /opt/etcd: EACCES\nsupervisor: child process was not spawned\n",
        "supervisor: couldn't exec /opt/etcd: EACCES",
    ),
    ("quarterdeck: cannot start: its data is gone\n", "quarterdeck: cannot start: its data is gone"),
    (
        "Failed at step EXEC spawning /opt/etcd: Permission denied\n",
        "Failed at step EXEC spawning /opt/etcd: Permission denied",
    ),
    (
        "[2026-11-25 21:45:40.030][1][warning][config] [source/f.cc:80] Filesystem config update rejected: "
        "Error adding/updating listener(s) plane: cannot bind '127.0.0.1:24000': Address already in use\n"
        "[2026-11-25 21:45:40.046][1][info][config] [source/l.cc:944] all dependencies initialized. starting workers\n"
        "[2026-11-25 21:45:45.046][1][error][connection] [source/c.cc:1027] connect error: Connection refused\n",
        "Filesystem config update rejected: Error adding/updating listener(s) plane: "
        "cannot bind '127.0.0.1:24000': Address already in use",
    ),
    (
        "[2026-11-26 11:16:24.463][17442][warning][config] [source/f.cc:128] Filesystem config update failure: in "
        "/srv/live/backends.json, Unable to parse JSON as proto (INVALID_ARGUMENT: unexpected EOF): {nonsense\n"
        "[2026-11-26 11:16:24.470][17442][warning][main] [source/server/server.cc:1059] There is no configured limit to"
        " the number of allowed active downstream connections.\n",
        "Filesystem config update failure: in /srv/live/backends.json, Unable to parse JSON as proto"
        " (INVALID_ARGUMENT: unexpected EOF): {nonsense",
    ),
    (
        'E1125 21:43:20.782651   10835 controllermanager.go:270] "Error building controllers" err="no service CIDR"\n'
        'E1125 21:43:20.782699   10835 controllermanager.go:343] "leaderelection lost"\n',
        '"Error building controllers" err="no service CIDR"',
    ),
    (
        "I1125 21:43:19.000000   10835 leaderelection.go:260] successfully acquired lease\n"
        'E1125 21:43:20.782699   10835 controllermanager.go:343] "leaderelection lost"\n',
        '"leaderelection lost"',
    ),
    ("starting\nall is well\n", "all is well"),
    ("could not bind: address in use\nbye\n", "could not bind: address in use"),
    ("\n\n", ""),
    ("", ""),
)


@pytest.mark.parametrize(("output", "reason"), OTHERS)
def test_other_programs_say_it_in_other_ways(output: str, reason: str) -> None:
    assert last_reason(output) == reason


@pytest.mark.parametrize(
    "exit_code",
    [
        0,
        1,
        203,
        -9,
        -64 - 1,
        None,
    ],
)
def test_a_program_that_wrote_nothing_is_told_by_how_it_ended(exit_code: int | None, golden: Golden) -> None:
    golden(why_it_ended("", exit_code))


def test_a_long_reason_is_cut() -> None:
    found = last_reason("Error: " + "x" * 10_000)
    assert (len(found), found[-3:]) == (400, "...")


async def test_a_unit_says_why_it_does_not_run_and_one_that_runs_says_nothing_of_the_kind(golden: Golden) -> None:
    def behave(spec: UnitSpec) -> Behaviour:
        if spec.name == "well" or spec.argv == ("/bin/y",):
            return Behaviour(output="waits\n")
        return Behaviour(exit_code=1, output="Error: unknown flag: --x\n")

    site = FakeSite(LocalSiteSettings(name="east", zones=("a",)), behave=behave)
    machine = (await site.machines())[0].name
    for name in ("well", "ill"):
        await site.start_unit(machine, UnitSpec(name=name, argv=("/bin/x",)))
    golden(await why_unit_ended(site, machine, "ill"))
    golden(await why_idle(site, machine, "ill"))
    assert await why_idle(site, machine, "well") == ""
    golden(await why_idle(site, machine, "none"))
    await site.start_unit(machine, UnitSpec(name="ill", argv=("/bin/y",)))
    assert await complaint(site, machine, "ill") == "waits"
    site.crash(machine, "ill")
    golden(await why_unit_ended(site, machine, "ill"))
    await site.kill_machine(machine)
    assert await why_idle(site, machine, "ill") == await complaint(site, machine, "ill") == ""
