"""What a command does, as typed calls: see ``Quarterdeck``, and docs/library.md for how it is used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from quarterdeck.app.certificates import Certificate
from quarterdeck.app.driving import Hand
from quarterdeck.app.examined import Examined
from quarterdeck.app.face import Quarterdeck, asker
from quarterdeck.app.programs import Programs
from quarterdeck.app.replicas import ReplicaFacts
from quarterdeck.app.requests import (
    Abort,
    Apply,
    Create,
    Delete,
    Migrate,
    RenewCertificates,
    Replace,
    Request,
    Scale,
)
from quarterdeck.drivers.networks import inside_argv
from quarterdeck.engine.findings import Finding, Verdict
from quarterdeck.engine.home_folder import home_folder, home_key, key_file
from quarterdeck.engine.operations import Asker
from quarterdeck.engine.watchers import Unwatched, Watcher
from quarterdeck.planner.dry_run import DryRun

if TYPE_CHECKING:
    from quarterdeck.app.onlookers import Onlookers
    from quarterdeck.probe.result import Failure, ProbeResult, Summary

__all__ = [
    "Abort",
    "Apply",
    "Asker",
    "Certificate",
    "Create",
    "Delete",
    "DryRun",
    "Examined",
    "Failure",
    "Finding",
    "Hand",
    "Migrate",
    "Onlookers",
    "ProbeResult",
    "Programs",
    "Quarterdeck",
    "RenewCertificates",
    "Replace",
    "ReplicaFacts",
    "Request",
    "Scale",
    "Summary",
    "Unwatched",
    "Verdict",
    "Watcher",
    "asker",
    "home_folder",
    "home_key",
    "inside_argv",
    "key_file",
]

#: What only programs with probes need, and takes long to load.
_OF_PROBES = {
    "Onlookers": "quarterdeck.app.onlookers",
    "Failure": "quarterdeck.probe.result",
    "ProbeResult": "quarterdeck.probe.result",
    "Summary": "quarterdeck.probe.result",
}


def __getattr__(name: str) -> Any:
    """See PEP 562."""
    if name not in _OF_PROBES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_OF_PROBES[name]), name)
