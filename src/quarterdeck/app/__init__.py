"""What a command does, as typed calls: see ``Quarterdeck``, and docs/library.md for how it is used."""

from __future__ import annotations

from quarterdeck.app.certificates import Certificate
from quarterdeck.app.driving import Hand
from quarterdeck.app.examined import Examined
from quarterdeck.app.face import Quarterdeck, asker
from quarterdeck.app.onlookers import Onlookers
from quarterdeck.app.programs import Programs
from quarterdeck.app.reach import inside_argv
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
from quarterdeck.engine.findings import Finding, Verdict
from quarterdeck.engine.home import home_folder, home_key, key_file
from quarterdeck.engine.operations import Asker
from quarterdeck.engine.watchers import Unwatched, Watcher
from quarterdeck.planner.dry_run import DryRun
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
