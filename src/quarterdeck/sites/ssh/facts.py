"""What hosts say of themselves and of each other before anything is put on them, read. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from quarterdeck.sites.listening import listening_ends
from quarterdeck.sites.ssh.parsing import not_parsed


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassFacts:
    """Where volumes of a class are to be: ``free`` bytes, and how long (seconds) each of a hundred small writes took to
    be on the disk. ``there``: whether there is such a folder. ``unwritable``: the words of the host where no file could
    be written there.
    """

    folder: str
    there: bool
    free: int = 0
    syncs: tuple[float, ...] = ()
    unwritable: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFacts:
    """A host as it says that it is. ``rights``: whom its script would run as: ``root``, ``sudo`` (any program),
    ``script`` (that alone), ``none`` or ``no-sudo``. Memory in bytes. ``clock``: how far it is ahead of this host's
    (seconds). ``tables``: what listens, as the kernel lists it, by protocol. ``processes``: programs of control planes
    that are not quarterdeck's, with their process id. ``units``: how many services of quarterdeck's run.
    ``keepalived``: its version ("": there is none); ``ip``: whether iproute2 is there. ``refused``: what sudo said when
    it refused; ``script``: what the installed script answered to a user who may run that alone; ``login_took``,
    ``sudo_took``: seconds. ``instances``: how many of the inotify instances that a plane takes could be opened at once;
    ``open_files``: how many a service gets; None where that was not tried.
    """

    rights: str = "none"
    bash: str = ""
    systemd: str = ""
    runs_systemd: bool = False
    architecture: str = ""
    cgroups: str = ""
    owner: str = ""
    units: int = 0
    memory: int = 0
    free_memory: int = 0
    clock: float = 0.0
    missing: tuple[str, ...] = ()
    classes: Mapping[str, ClassFacts] = field(default_factory=dict)
    tables: Mapping[str, str] = field(default_factory=dict)
    processes: tuple[tuple[str, str], ...] = ()
    keepalived: str = ""
    ip: bool = False
    refused: str = ""
    script: str = ""
    login_took: float = 0.0
    sudo_took: float = 0.0
    instances: int | None = None
    open_files: int | None = None

    def listening(self, address: str, protocol: str = "tcp") -> frozenset[int]:
        """The ports at which something listens at an address of the host."""
        table = self.tables.get(protocol, "")
        # the kernel has no state of its own for datagrams that are waited for
        waiting = table.replace(" 07 ", " 0A ") if protocol == "udp" else table
        return frozenset(each.port for each in listening_ends(waiting, (address,)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """What came of connecting from one host to another: by port ``open``, ``silent`` (nothing came back) or
    ``refused``. ``round_trip``: seconds; None when nothing is open. ``bulk``: whether 64 KiB arrived; None when that
    was not tried.
    """

    ports: Mapping[int, str]
    round_trip: float | None = None
    bulk: bool | None = None


def read_facts(doing: str, said: str, before: float, after: float) -> HostFacts:
    """What a host said (check/facts.sh), asked and answered at these times of this host's clock. Raises Corrupt."""
    found: dict[str, list[str]] = {}
    memory: dict[str, int] = {}
    classes: dict[str, ClassFacts] = {}
    missing: list[str] = []
    processes: list[tuple[str, str]] = []
    tables: dict[str, list[str]] = {}
    line = ""
    try:
        for line in said.splitlines():
            key, *words = line.split("\t")
            match key, words:
                case "memory", [name, kib]:
                    memory[name] = int(kib) * 1024
                case "missing", [program]:
                    missing.append(program)
                case "listening", [protocol, row]:
                    tables.setdefault(protocol, []).append(row)
                case "process", [name, pid]:
                    processes.append((name, pid))
                case "class", [name, folder, there, *free]:
                    classes[name] = ClassFacts(folder=folder, there=there == "yes", free=int(free[0]) if free else 0)
                case "sync", [name, *times]:
                    syncs = tuple(float(each) for each in times if each)
                    classes[name] = replace(classes[name], syncs=syncs)
                case "unwritable", [name, *words]:
                    classes[name] = replace(classes[name], unwritable=" ".join(words))
                case _:
                    found[key] = words
        return HostFacts(
            rights=_first(found, "rights") or "none",
            bash=_first(found, "bash"),
            systemd=_first(found, "systemd"),
            runs_systemd=found.get("systemd", [])[1:] == ["runs"],
            architecture=_first(found, "architecture"),
            cgroups=_first(found, "cgroups"),
            owner=_first(found, "owner"),
            units=int(_first(found, "units") or 0),
            memory=memory.get("MemTotal:", 0),
            free_memory=memory.get("MemAvailable:", 0),
            clock=_ahead(_first(found, "clock"), before, after),
            missing=tuple(missing),
            classes=classes,
            tables={name: "\n".join(rows) for name, rows in tables.items()},
            processes=tuple(processes),
            keepalived=_first(found, "keepalived"),
            ip=_first(found, "ip") == "yes",
            refused=_first(found, "refused"),
            script=_first(found, "script"),
            sudo_took=int(_first(found, "sudo") or 0) / 1000,
            instances=_number(found, "instances"),
            open_files=_number(found, "open-files"),
        )
    except (ValueError, KeyError, IndexError) as error:
        raise not_parsed(doing, line, error) from error


def read_listening(lines: Iterable[str]) -> tuple[tuple[int, ...], Mapping[int, str]]:
    """The ports at which a host listens, and those at which it cannot, with its words (check/listen.sh)."""
    listens: list[int] = []
    refused: dict[int, str] = {}
    for line in lines:
        match line.split("\t"):
            case ["listens", port] if port.isdecimal():
                listens.append(int(port))
            case ["failed", port, *words] if port.isdecimal():
                refused[int(port)] = " ".join(words)
            case _:
                continue  # what a program of the login shell prints besides
    return tuple(listens), refused


def read_ways(doing: str, said: str) -> Mapping[str, Way]:
    """What came of connecting from a host to others (check/connect.sh), by their name. Raises Corrupt."""
    ports: dict[str, dict[int, str]] = {}
    trips: dict[str, float] = {}
    bulk: dict[str, bool] = {}
    line = ""
    try:
        for line in said.splitlines():
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
                    continue  # what a program of the login shell prints besides
    except ValueError as error:
        raise not_parsed(doing, line, error) from error
    return {
        name: Way(ports=ports.get(name, {}), round_trip=trips.get(name), bulk=bulk.get(name))
        for name in _names(ports, bulk)
    }


def _names(*maps: Mapping[str, object]) -> Iterable[str]:
    return dict.fromkeys(name for each in maps for name in each)


def _first(found: Mapping[str, list[str]], key: str) -> str:
    return next(iter(found.get(key, [])), "")


def _number(found: Mapping[str, list[str]], key: str) -> int | None:
    """A number that a host may not know."""
    word = _first(found, key)
    return int(word) if word else None


def _ahead(clock: str, before: float, after: float) -> float:
    """How far a clock is ahead, as far as the time that its word took leaves that open: it was read at the end."""
    if not clock:
        return 0.0
    read = float(clock.replace(",", "."))
    if before <= read <= after:
        return 0.0
    return read - after if read > after else read - before
