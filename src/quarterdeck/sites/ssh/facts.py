"""Parsing the facts of hosts, about themselves and each other, before anything is installed. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from quarterdeck.model.findings import Finding, HostFinding, Verdict
from quarterdeck.sites.kernel import listening_ends
from quarterdeck.sites.ssh.hosts import SshHost
from quarterdeck.sites.ssh.wire import not_parsed


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassFacts:
    """The folder for volumes of a class."""

    folder: str
    #: Whether the folder exists.
    there: bool
    #: Bytes.
    free: int = 0
    syncs: tuple[float, ...] = ()
    #: The host's error where no file could be written there.
    unwritable: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFacts:
    """The facts of a host, as it reports them."""

    #: The user that its script would run as: ``root``, ``sudo`` (any program), ``script`` (that alone), ``none`` or
    #: ``no-sudo``.
    rights: str = "none"
    bash: str = ""
    systemd: str = ""
    runs_systemd: bool = False
    architecture: str = ""
    cgroups: str = ""
    owner: str = ""
    #: The number of quarterdeck's services.
    units: int = 0
    #: Bytes.
    memory: int = 0
    free_memory: int = 0
    #: Seconds by which its clock is ahead of this host's.
    clock: float = 0.0
    missing: tuple[str, ...] = ()
    classes: Mapping[str, ClassFacts] = field(default_factory=dict)
    #: The listening sockets, from the kernel's tables, by protocol.
    tables: Mapping[str, str] = field(default_factory=dict)
    #: Programs of other control planes, with their process id.
    processes: tuple[tuple[str, str], ...] = ()
    #: Its version; "": not installed.
    keepalived: str = ""
    #: Whether iproute2 is installed.
    ip: bool = False
    #: The error of sudo.
    refused: str = ""
    #: The answer of the installed script to a user who may only run that.
    script: str = ""
    #: Seconds.
    login_took: float = 0.0
    #: Seconds.
    sudo_took: float = 0.0
    #: How many of the inotify instances that a plane needs could be opened at once; None: not tried.
    instances: int | None = None
    #: The limit of a service; None: not tried.
    open_files: int | None = None

    def listening(self, address: str, protocol: str = "tcp") -> frozenset[int]:
        """The ports at which something listens at an address of the host."""
        table = self.tables.get(protocol, "")
        # the kernel has no listening state for datagrams
        waiting = table.replace(" 07 ", " 0A ") if protocol == "udp" else table
        return frozenset(each.port for each in listening_ends(waiting, (address,)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reachability:
    """The result of connecting from one host to another."""

    #: By port: ``open``, ``silent`` (nothing came back) or ``refused``.
    ports: Mapping[int, str]
    #: Seconds; None when nothing is open.
    round_trip: float | None = None
    #: Whether 64 KiB arrived; None when that was not tried.
    bulk: bool | None = None


@dataclass(slots=True)
class _ParsedOutput:
    """Lines of a host, sorted: ``words`` of those that come once, by their key."""

    words: dict[str, list[str]] = field(default_factory=dict)
    memory: dict[str, int] = field(default_factory=dict)
    classes: dict[str, ClassFacts] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    processes: list[tuple[str, str]] = field(default_factory=list)
    tables: dict[str, list[str]] = field(default_factory=dict)

    def take(self, line: str) -> None:
        """Take a line. Raises ValueError, KeyError for one that cannot be read."""
        key, *words = line.split("\t")
        match key, words:
            case "memory", [name, kib]:
                self.memory[name] = int(kib) * 1024
            case "missing", [program]:
                self.missing.append(program)
            case "listening", [protocol, row]:
                self.tables.setdefault(protocol, []).append(row)
            case "process", [name, pid]:
                self.processes.append((name, pid))
            case "class", [name, folder, there, *free]:
                there_is, size = there == "yes", int(free[0]) if free else 0
                self.classes[name] = ClassFacts(folder=folder, there=there_is, free=size)
            case "sync", [name, *times]:
                syncs = tuple(float(each) for each in times if each)
                self.classes[name] = replace(self.classes[name], syncs=syncs)
            case "unwritable", [name, *words]:
                self.classes[name] = replace(self.classes[name], unwritable=" ".join(words))
            case _:
                self.words[key] = words

    def first(self, key: str) -> str:
        """The first value of that key; "" where there is none."""
        return next(iter(self.words.get(key, [])), "")

    def number(self, key: str) -> int | None:
        """A number that may be missing. Raises ValueError."""
        word = self.first(key)
        return int(word) if word else None


def read_facts(doing: str, output: str, before: float, after: float) -> HostFacts:
    """The output of a host (check/facts.sh), requested and received at these times of this host's clock. Raises
    Corrupt.
    """
    found, line = _ParsedOutput(), ""
    try:
        for line in output.splitlines():
            found.take(line)
        return HostFacts(
            rights=found.first("rights") or "none",
            bash=found.first("bash"),
            systemd=found.first("systemd"),
            runs_systemd=found.words.get("systemd", [])[1:] == ["runs"],
            architecture=found.first("architecture"),
            cgroups=found.first("cgroups"),
            owner=found.first("owner"),
            units=found.number("units") or 0,
            memory=found.memory.get("MemTotal:", 0),
            free_memory=found.memory.get("MemAvailable:", 0),
            clock=_ahead(found.first("clock"), before, after),
            missing=tuple(found.missing),
            classes=found.classes,
            tables={name: "\n".join(rows) for name, rows in found.tables.items()},
            processes=tuple(found.processes),
            keepalived=found.first("keepalived"),
            ip=found.first("ip") == "yes",
            refused=found.first("refused"),
            script=found.first("script"),
            sudo_took=(found.number("sudo") or 0) / 1000,
            instances=found.number("instances"),
            open_files=found.number("open-files"),
        )
    except (ValueError, KeyError, IndexError) as error:
        raise not_parsed(doing, line, error) from error


def read_listening(lines: Iterable[str]) -> tuple[tuple[int, ...], Mapping[int, str]]:
    """The ports at which a host listens, and those at which it cannot, with its errors (check/listen.sh)."""
    listens: list[int] = []
    refused: dict[int, str] = {}
    for line in lines:
        match line.split("\t"):
            case ["listens", port] if port.isdecimal():
                listens.append(int(port))
            case ["failed", port, *words] if port.isdecimal():
                refused[int(port)] = " ".join(words)
            case _:
                continue  # other output of programs of the login shell
    return tuple(listens), refused


def read_ways(doing: str, output: str) -> Mapping[str, Reachability]:
    """The results of connecting from a host to others (check/connect.sh), by their name. Raises Corrupt."""
    ports: dict[str, dict[int, str]] = {}
    trips: dict[str, float] = {}
    bulk: dict[str, bool] = {}
    line = ""
    try:
        for line in output.splitlines():
            match line.split("\t"):
                case ["open", name, port, since, until]:
                    ports.setdefault(name, {})[int(port)] = "open"
                    trips[name] = min(trips.get(name, float("inf")), float(until) - float(since))
                case [("silent" | "refused") as how, name, port]:
                    ports.setdefault(name, {})[int(port)] = how
                case [("came" | "lost") as how, name]:
                    bulk[name] = how == "came"
                case [("open" | "silent" | "refused" | "came" | "lost"), *_] as other:
                    raise ValueError(f"{other}")
                case _:
                    continue  # other output of programs of the login shell
    except ValueError as error:
        raise not_parsed(doing, line, error) from error
    return {
        name: Reachability(ports=ports.get(name, {}), round_trip=trips.get(name), bulk=bulk.get(name))
        for name in _names(ports, bulk)
    }


def _names(*maps: Mapping[str, object]) -> Iterable[str]:
    return dict.fromkeys(name for each in maps for name in each)


def _ahead(clock: str, before: float, after: float) -> float:
    """How far a clock is ahead, as far as the duration of the answer shows it: it was read at the end."""
    if not clock:
        return 0.0
    read = float(clock.replace(",", "."))
    if before <= read <= after:
        return 0.0
    return read - after if read > after else read - before


# The results of actions on a host that will be needed later: writing files, executing them, starting units. Pure.

_PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy", "ftp_proxy")


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFailure:
    """A failed action. ``how``: ``write`` or ``execute``; ``what``: for which files; ``error``: the host's error."""

    how: str
    folder: str
    what: str
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialFacts:
    """``environment``: the names of variables that systemd gives to all services, besides those of all hosts.
    ``enforcing``: whether SELinux denies what its policy does not allow.
    """

    failures: tuple[FileFailure, ...] = ()
    environment: tuple[str, ...] = ()
    enforcing: bool = False


def read_trials(output: str) -> TrialFacts:
    """The output of a host (check/trial.sh). Lines of other parts of the check are ignored."""
    failures: list[FileFailure] = []
    names: list[str] = []
    enforcing = False
    for line in output.splitlines():
        match line.split("\t"):
            case ["trial", how, folder, what, *words]:
                failures.append(FileFailure(how=how, folder=folder, what=what, error=" ".join(words).strip()))
            case ["environment", name]:
                names.append(name)
            case ["selinux", state]:
                enforcing = state.strip() == "1"
            case _:
                pass
    return TrialFacts(failures=tuple(failures), environment=tuple(names), enforcing=enforcing)


def judge_trials(host: SshHost, trials: TrialFacts) -> Iterator[HostFinding]:
    """The failed actions of a host, and the effect of its settings on programs of planes."""
    for each in trials.failures:
        verb = "written" if each.how == "write" else "executed"
        seen = f"{each.what} in {each.folder} cannot be {verb}: {each.error}"
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


def _advice(failure: FileFailure, trials: TrialFacts) -> str:
    words = failure.error.lower()
    if "read-only" in words:
        return f"remount the file system of {failure.folder} writable: 'mount -o remount,rw', and /etc/fstab"
    if failure.how == "write":
        return f"see 'findmnt -T {failure.folder}' and 'df {failure.folder}' on the host"
    if trials.enforcing and "systemd" in words:
        return "see 'ausearch -m avc -ts recent' on the host, and allow init_t to execute files of type bin_t there"
    return (
        f"remount the file system of {failure.folder} without noexec: see 'findmnt -T {failure.folder}', and /etc/fstab"
    )
