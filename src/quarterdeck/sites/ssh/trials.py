"""What came of trying on a host what will be done there later: writing files, executing them, starting units. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from quarterdeck.model.findings import Finding, HostFinding, Verdict
from quarterdeck.sites.ssh.hosts import Host

_PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy", "ftp_proxy")


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Something that could not be done. ``how``: ``write`` or ``execute``; ``what``: for which files; ``said``: the
    words of the host.
    """

    how: str
    folder: str
    what: str
    said: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Trials:
    """``environment``: the names of variables that systemd gives to all services, besides those that all hosts have.
    ``enforcing``: whether SELinux denies what its policy does not allow.
    """

    failures: tuple[Failure, ...] = ()
    environment: tuple[str, ...] = ()
    enforcing: bool = False


def read_trials(said: str) -> Trials:
    """What a host said (check/trial.sh). Lines of other pieces of the check are left out."""
    failures: list[Failure] = []
    names: list[str] = []
    enforcing = False
    for line in said.splitlines():
        match line.split("\t"):
            case ["trial", how, folder, what, *words]:
                failures.append(Failure(how=how, folder=folder, what=what, said=" ".join(words).strip()))
            case ["environment", name]:
                names.append(name)
            case ["selinux", state]:
                enforcing = state.strip() == "1"
            case _:
                pass
    return Trials(failures=tuple(failures), environment=tuple(names), enforcing=enforcing)


def judge_trials(host: Host, trials: Trials) -> Iterator[HostFinding]:
    """What cannot be done on a host, and what its settings would do to programs of planes."""
    for each in trials.failures:
        verb = "written" if each.how == "write" else "executed"
        seen = f"{each.what} in {each.folder} cannot be {verb}: {each.said}"
        yield HostFinding(host.name, Finding("files", Verdict.REFUSE, seen, _advice(each, trials)))
    if trials.environment:
        proxies = [each for each in trials.environment if each.lower() in _PROXIES]
        others = [each for each in trials.environment if each not in proxies]
        seen = f"systemd gives all services {', '.join((*proxies, *others))}; programs of planes run without them"
        step = "see DefaultEnvironment= in /etc/systemd/system.conf and system.conf.d, and 'systemctl show-environment'"
        yield HostFinding(host.name, Finding("environment", Verdict.WARN, seen, step))
    if trials.enforcing:
        seen = (
            "SELinux is enforcing; programs are labelled bin_t when they are put on the host, and a relabel undoes that"
        )
        step = (
            "run 'semanage fcontext -a -t bin_t \"/var/lib/quarterdeck/programs(/.*)?\"' and"
            " 'semanage fcontext -a -t bin_t /usr/local/lib/quarterdeck/host' there"
        )
        yield HostFinding(host.name, Finding("selinux", Verdict.WARN, seen, step))


def _advice(failure: Failure, trials: Trials) -> str:
    words = failure.said.lower()
    if "read-only" in words:
        return f"remount the file system of {failure.folder} writable: 'mount -o remount,rw', and /etc/fstab"
    if failure.how == "write":
        return f"see 'findmnt -T {failure.folder}' and 'df {failure.folder}' on the host"
    if trials.enforcing and "systemd" in words:
        return "see 'ausearch -m avc -ts recent' on the host, and let init_t execute files of type bin_t there"
    return (
        f"remount the file system of {failure.folder} without noexec: see 'findmnt -T {failure.folder}', and /etc/fstab"
    )
