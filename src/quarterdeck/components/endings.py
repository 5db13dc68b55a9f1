"""Why a program exited, in its own words: the line of its output with the reason, and its exit status. Pure.

A program's last line is often not the reason: a usage text, a stack trace or a retried connection comes after it, or
messages of a clean shutdown. Each kind of program marks the line that counts in its own way.

The output of a unit also has that of former runs. Its machine writes a line where each begins and where it ends, so
that a reason is reported for its own run, and not for a later one.
"""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

#: What the lines begin with that a machine writes into a unit's output: before it starts the program, after that has
#: ended (with ``ending`` behind it), and where it cannot start it (with the reason).
BEGINS = "quarterdeck: starting"
ENDED = "quarterdeck: ended"
CANNOT_START = "quarterdeck: cannot start"

#: Lines of output to read: the reason may stand above a usage text or a stack trace.
LINES = 500
#: Characters of a reason that are kept.
_LONGEST = 400

#: systemd.exec(5), "Process Exit Codes": what systemd could not do before it executed the program.
_SYSTEMD = {
    200: "CHDIR", 202: "FDS", 203: "EXEC", 204: "MEMORY", 205: "LIMITS", 206: "OOM_ADJUST", 208: "STDIN",
    209: "STDOUT", 210: "CHROOT", 216: "GROUP", 217: "USER", 218: "CAPABILITIES", 219: "CGROUP", 220: "SETSID",
    222: "STDERR", 224: "PAM", 225: "NETWORK", 226: "NAMESPACE", 227: "NO_NEW_PRIVILEGES", 228: "SECCOMP",
    229: "SELINUX_CONTEXT", 231: "APPARMOR_PROFILE", 232: "ADDRESS_FAMILIES", 233: "RUNTIME_DIRECTORY", 235: "CHOWN",
    238: "STATE_DIRECTORY", 243: "CREDENTIALS",
}  # fmt: skip

#: k8s.io/klog/v2: severity, date, time, process, file and line.
_KLOG = re.compile(r"^([IWEF])\d{4} \d\d:\d\d:\d\d\.\d+\s+\d+ [\w.-]+:\d+\] ?(.*)$")
#: A value of several lines of a structured klog line (internal/serialize): a line with ``key=<``, then the value with a
#: tab before each line, then ``>``.
_OPENS = re.compile(r"^([IWEF]\d{4} .*=)<$")
#: Where an expression of CEL is wrong: dots, and a mark below the place.
_MARK = re.compile(r"^\| \.*\^$")
#: Envoy's default format: time, thread, level, logger, source.
_ENVOY = re.compile(r"^\[[\d-]+ [\d:.]+\]\[\d+\]\[(\w+)\]\[(\w+)\] (?:\[[^\]]*\] )?(.*)$")
#: keepalived with --log-console: a date as ctime(3) writes it.
_DATED = re.compile(r"^[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d [\d:]{8} \d{4}: (.*)$")
#: ``key="quoted"`` of structured klog lines, and of logfmt.
_FIELD = r'\b{}=("(?:[^"\\]|\\.)*"|\S+)'
_FATAL_FIELD = re.compile(r"\blevel=(?:fatal|panic)\b")

#: What only a line begins with, or has, that says why a program ends. In the order of the programs' kinds: starting it
#: at all (quarterdeck, supervisord, systemd, the loader, shells); flags of Go's ``flag`` and of pflag, of Envoy and of
#: getopt(3); Go, Rust, Java; CoreDNS; keepalived.
_REASONS = tuple(
    re.compile(each)
    for each in (
        r"^(?:quarterdeck: )?cannot start\b",
        r"^supervisor: couldn't (?:exec|chdir|set)",
        r"Failed (?:at step [A-Z_]+ spawning|to execute) ",
        r": error while loading shared libraries: ",
        r"^\S+: (?:line \d+: |\d+: )\S",
        r": (?:command not found|Exec format error|cannot execute\b.*)$",
        r"^flag provided but not defined: |^invalid (?:boolean )?value .* for (?:flag )?-|^flag needs an argument",
        r"^(?:unknown (?:shorthand )?flag|invalid argument .* for )",
        r"^(?:-\w )?\(?--\S+ -- \S|^PARSE ERROR: ",
        r"^(?:[Uu]nknown|[Uu]nrecognized) option|: (?:unrecognized|invalid) option\b",
        r"^[Ee]rror: |^ERROR: |^[\w./-]+: error: ",
        r"^(?:panic|fatal error|fatal): ",
        r"^FATAL\b|^\[FATAL\]|^CRITICAL\b",
        r"panicked at |^Exception in thread ",
        r"^(?:terminate called|Segmentation fault|Out of memory)",
        r"^Listen(?:Packet)?: |^cannot serve \w+://|^loading Caddyfile |^plugin/\w+: ",
        r":\d+ - (?:Error during parsing|Syntax error)",
        r"^\(\S+: Line \d+\) (?!WARNING)|^Config files? missing|^Non-existent interface",
    )
)
#: Lines that follow the reason when such a program stops, and are not the reason.
_EPILOGUE = re.compile(
    r"^(?:goroutine \d|\s|created by |exit status |Stopped\b|CPU usage|pid \d+ exited|Usage\b|#\d+: )"
)
#: k8s.io/kubernetes cmd/kube-controller-manager/app, Run: why it ends, before it gives its Lease up.
_NO_CONTROLLERS = '"Error building controllers"'
#: The last line of a controller manager and a scheduler that lost their Lease, whatever the reason is.
_LEASE_LOST = "leaderelection lost"
#: k8s.io/client-go/tools/leaderelection: the reason for that, though it is logged as information; unless the program
#: ends already.
_NOT_RENEWED = re.compile(r'^"Failed to renew lease"(?!.*context canceled)')
#: k8s.io/component-base/metrics, options.go: logged as an error wherever --allow-metric-labels-manifest is not given.
_NO_MANIFEST = "The manifest file is empty, ignoring."
#: Envoy, source/common/listener_manager (listener_impl.cc, lds_api.cc): it runs on without a listener that it cannot
#: have. The lines after it tell of backends that it cannot reach.
_NO_LISTENER = re.compile(r"Error adding/updating listener|\bcannot bind '")
#: Envoy, source/extensions/config_subscription/filesystem: so it runs on with the configuration that it had, or none.
_NO_UPDATE = re.compile(r"config update (?:rejected|failure)")
#: Envoy, source/server/server.cc: the message goes on with the path of the configuration, on a line of its own.
_ENVOY_ENDS = re.compile(r"^error `(.*)` initializing config\b")
_TROUBLE = re.compile(
    r"error|fail|cannot|can't|could not|unable|denied|refused|invalid|unknown|no such|not found|in use", re.IGNORECASE
)


def why_it_ended(output: str, exit_code: int | None = None) -> str:
    """How a program ended and why, for people: ``exit code 1: unknown flag: --x``; "" where nothing is known.

    ``output`` is the end of what it wrote (``LINES`` lines), in which the last run comes last; it is the last one that
    has ended which counts. ``exit_code`` is that of this run, negative for a signal (None: not known). What SIGKILL
    ended has not named a cause.
    """
    *former, last = _runs(output)
    ended = last if last.ended or not former else former[-1]
    reason = "" if exit_code == -signal.SIGKILL else last_reason(ended.output)
    return ": ".join(filter(None, (ending(exit_code), reason)))


def present_reason(output: str) -> str:
    """The last error of a running program since its start: see ``last_reason``."""
    return last_reason(_runs(output)[-1].output)


@dataclass(slots=True)
class _Run:
    """The output of a program from one start to the next, and whether its machine noted that it exited."""

    lines: list[str] = field(default_factory=list)
    ended: bool = False

    @property
    def output(self) -> str:
        return "\n".join(self.lines)


def _runs(output: str) -> list[_Run]:
    """The runs that an output is of, at least one; the first may lack its beginning. The last words of a program may
    come after the line that it has ended: each goes by a way of its own.
    """
    found = [_Run()]
    for line in output.splitlines():
        if line.startswith(BEGINS):
            found.append(_Run())
        elif line.startswith(ENDED):
            found[-1].ended = True
        else:
            found[-1].lines.append(line)
            found[-1].ended |= line.startswith(CANNOT_START)
    return found if len(found) == 1 or found[0].lines or found[0].ended else found[1:]


def last_reason(output: str) -> str:
    """The line of what a program wrote that says why it ended, without what a logger puts before it, in at most 400
    characters: the last one that is marked as such, or else that tells of a failure, or else that says anything.
    """
    lines = list(_joined(line.rstrip() for line in output.splitlines() if line.strip()))
    best, rank = "", 0
    for number in reversed(range(len(lines))):
        found, text = _judged(lines, number)
        if found > rank:
            best, rank = text, found
        if rank == _REASON:
            break
    return best if len(best) <= _LONGEST else best[: _LONGEST - 3] + "..."


def _joined(lines: Iterable[str]) -> Iterator[str]:
    """The lines, with a value of several lines in one: see ``_OPENS``. Marks below a place in an expression go."""
    head, value = "", list[str]()
    for line in lines:
        if head and line.startswith("\t"):
            value.append(line.strip())
            continue
        if head:
            yield head + json.dumps(" ".join(each for each in value if not _MARK.match(each)), ensure_ascii=False)
            head, value = "", []
            if line.strip() == ">":
                continue
        opens = _OPENS.match(line)
        if opens is None:
            yield line
        else:
            head = opens.group(1)
    if head:
        yield head + json.dumps(" ".join(value), ensure_ascii=False)


#: How much a line says about the end of its program.
_ANYTHING, _SAYS, _FAILURE, _REASON = 1, 2, 3, 4


def _judged(lines: Sequence[str], number: int) -> tuple[int, str]:
    """The rank of a line as a reason, and its message."""
    line = lines[number]
    for reader in (_json, _klog, _envoy):
        if (found := reader(line)) is not None:
            return found
    if (dated := _DATED.match(line)) is not None:
        line = dated.group(1)
    if _is_end_of_traceback(lines, number) or any(each.search(line) for each in _REASONS):
        return _REASON, _logged_panic(lines, number) or line.strip()
    if _FATAL_FIELD.search(line):
        return _REASON, _fields(line, "msg", "error", "err") or line.strip()
    if _EPILOGUE.match(line):
        return _ANYTHING, line.strip()
    return (_FAILURE if _TROUBLE.search(line) else _SAYS), line.strip()


def _json(line: str) -> tuple[int, str] | None:
    """A line of zap's JSON, which etcd writes, or of another logger's."""
    if not line.startswith("{"):
        return None
    try:
        found = json.loads(line)
    except ValueError:
        return None
    level = str(found.get("level", "")).lower()
    message = (str(found[key]) for key in ("msg", "message", "error", "err") if found.get(key))
    text = ": ".join(dict.fromkeys(message)) or line
    if level in ("fatal", "panic", "dpanic", "critical"):
        return _REASON, text
    return {"error": _FAILURE, "warn": _SAYS, "warning": _SAYS}.get(level, _ANYTHING), text


def _logged_panic(lines: Sequence[str], number: int) -> str:
    """What zap has logged of a Go panic right before it: that has the error as well."""
    message = lines[number].removeprefix("panic: ")
    if number == 0 or message == lines[number]:
        return ""
    _, text = _json(lines[number - 1]) or (0, "")
    return text if text.startswith(message) else ""


def _klog(line: str) -> tuple[int, str] | None:
    found = _KLOG.match(line)
    if found is None:
        return None
    severity, text = found.groups()
    if _LEASE_LOST in text.lower():
        return _SAYS, text
    if text == _NO_MANIFEST:
        return _ANYTHING, text
    if text.startswith('"command failed"'):
        return _REASON, _fields(text, "err") or text
    if severity == "F" or text.startswith(_NO_CONTROLLERS) or _NOT_RENEWED.match(text):
        return _REASON, text
    return {"E": _FAILURE, "W": _SAYS}.get(severity, _ANYTHING), text


def _envoy(line: str) -> tuple[int, str] | None:
    found = _ENVOY.match(line)
    if found is None:
        return None
    level, logger, text = found.groups()
    if level == "critical":
        ends = _ENVOY_ENDS.match(text)
        return (_ANYTHING if logger == "backtrace" else _REASON), ends.group(1) if ends is not None else text
    if level in ("warning", "error") and _NO_LISTENER.search(text):
        return _REASON, text
    return (_FAILURE if level == "error" or _NO_UPDATE.search(text) else _ANYTHING), text


def _fields(text: str, *names: str) -> str:
    """The values of the fields of these names, without quotes."""
    values = []
    for name in names:
        found = re.search(_FIELD.format(name), text)
        if found is not None:
            value = found.group(1)
            values.append(re.sub(r"\\(.)", r"\1", value[1:-1]) if value.startswith('"') else value)
    return ": ".join(values)


def _is_end_of_traceback(lines: Sequence[str], number: int) -> bool:
    """Whether a line has the exception after one of Python's tracebacks: the first that is not indented."""
    if lines[number][0].isspace():
        return False
    above = number - 1
    while above >= 0 and lines[above][0].isspace():
        above -= 1
    return 0 <= above < number - 1 and lines[above].startswith("Traceback (most recent call last)")


def ending(exit_code: int | None) -> str:
    """How a program exited: ``exit code 1``, ``killed by SIGKILL``; "" where it is unknown (None)."""
    if exit_code is None:
        return ""
    if exit_code >= 0:
        step = _SYSTEMD.get(exit_code)
        return f"exit code {exit_code}" + (f" (systemd: {step})" if step else "")
    try:
        return f"killed by {signal.Signals(-exit_code).name}"
    except ValueError:
        return f"killed by signal {-exit_code}"
