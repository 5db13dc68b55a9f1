"""The typed calls behind each command: see ``Quarterdeck``; docs/library.md shows how to use it.

Each name is loaded on first use: loading all of them takes several times as long as one observation of a plane, for
which ``Looks`` is enough.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from quarterdeck.app.access import IssuedKubeconfig, UserAccess, requested_access
    from quarterdeck.app.certificates import Certificate
    from quarterdeck.app.controllers import SetHeld
    from quarterdeck.app.drains import Drain
    from quarterdeck.app.drill.plans import DrillPlan
    from quarterdeck.app.drive import Hand
    from quarterdeck.app.etcd.alarms import Disarming
    from quarterdeck.app.etcd.data import MemberHash
    from quarterdeck.app.etcd.failover import LostSite
    from quarterdeck.app.etcd.recovery import LostQuorum, Survivor
    from quarterdeck.app.etcd.strays import MemberRemoval
    from quarterdeck.app.face import Quarterdeck, requester
    from quarterdeck.app.looks import Looks
    from quarterdeck.app.nodes import NewToken, NodeFacts, TokenFacts
    from quarterdeck.app.onlookers import Onlookers
    from quarterdeck.app.operation_progress import Onlooker
    from quarterdeck.app.pipes import Parent
    from quarterdeck.app.programs import Programs
    from quarterdeck.app.records import Records
    from quarterdeck.app.replicas import ReplicaFacts
    from quarterdeck.app.verification import Verification
    from quarterdeck.drills.aim import Wish
    from quarterdeck.drivers.networks import inside_argv
    from quarterdeck.engine.notices.watchers import Unwatched, Watcher
    from quarterdeck.engine.preflight.requests import (
        Abort,
        Apply,
        Create,
        Delete,
        Examined,
        HandBack,
        HandOver,
        Migrate,
        RenewCertificates,
        Replace,
        Request,
        RotateAuthorities,
        RotateKey,
        RotationStage,
        Scale,
        Upgrade,
    )
    from quarterdeck.engine.preflight.upgrades import UpgradeOption
    from quarterdeck.engine.reconcile.manager import RESTARTED_BY
    from quarterdeck.engine.workspace.home_folder import home_folder, home_key, key_file
    from quarterdeck.engine.workspace.operations import Requester
    from quarterdeck.model.findings import Finding, Verdict
    from quarterdeck.planner.simulated.dry_run import DryRun
    from quarterdeck.probe.result import ProbeResult, Summary
    from quarterdeck.probe.schema import Failure

__all__ = [
    "RESTARTED_BY",
    "Abort",
    "Apply",
    "Certificate",
    "Create",
    "Delete",
    "Disarming",
    "Drain",
    "DrillPlan",
    "DryRun",
    "Examined",
    "Failure",
    "Finding",
    "Hand",
    "HandBack",
    "HandOver",
    "IssuedKubeconfig",
    "Looks",
    "LostQuorum",
    "LostSite",
    "MemberHash",
    "MemberRemoval",
    "Migrate",
    "NewToken",
    "NodeFacts",
    "Onlooker",
    "Onlookers",
    "Parent",
    "ProbeResult",
    "Programs",
    "Quarterdeck",
    "Records",
    "RenewCertificates",
    "Replace",
    "ReplicaFacts",
    "Request",
    "Requester",
    "RotateAuthorities",
    "RotateKey",
    "RotationStage",
    "Scale",
    "SetHeld",
    "Summary",
    "Survivor",
    "TokenFacts",
    "Unwatched",
    "Upgrade",
    "UpgradeOption",
    "UserAccess",
    "Verdict",
    "Verification",
    "Watcher",
    "Wish",
    "home_folder",
    "home_key",
    "inside_argv",
    "key_file",
    "requested_access",
    "requester",
]

#: The module of each name.
_PLACES = {
    "app.access": (
        "IssuedKubeconfig",
        "UserAccess",
        "requested_access",
    ),
    "app.etcd.alarms": ("Disarming",),
    "app.certificates": ("Certificate",),
    "app.controllers": ("SetHeld",),
    "app.etcd.data": ("MemberHash",),
    "app.drains": ("Drain",),
    "app.drill.plans": ("DrillPlan",),
    "app.drive": ("Hand",),
    "engine.preflight.requests": (
        "Abort",
        "Apply",
        "Create",
        "Delete",
        "Examined",
        "HandBack",
        "HandOver",
        "Migrate",
        "RenewCertificates",
        "Replace",
        "Request",
        "RotateAuthorities",
        "RotateKey",
        "RotationStage",
        "Scale",
        "Upgrade",
    ),
    "engine.preflight.upgrades": ("UpgradeOption",),
    "app.face": (
        "Quarterdeck",
        "requester",
    ),
    "app.operation_progress": ("Onlooker",),
    "app.looks": ("Looks",),
    "app.nodes": (
        "NewToken",
        "NodeFacts",
        "TokenFacts",
    ),
    "app.onlookers": ("Onlookers",),
    "app.pipes": ("Parent",),
    "app.programs": ("Programs",),
    "app.etcd.failover": ("LostSite",),
    "app.etcd.recovery": (
        "LostQuorum",
        "Survivor",
    ),
    "app.records": ("Records",),
    "app.replicas": ("ReplicaFacts",),
    "app.etcd.strays": ("MemberRemoval",),
    "app.verification": ("Verification",),
    "drills.aim": ("Wish",),
    "drivers.networks": ("inside_argv",),
    "model.findings": (
        "Finding",
        "Verdict",
    ),
    "engine.workspace.home_folder": (
        "home_folder",
        "home_key",
        "key_file",
    ),
    "engine.reconcile.manager": ("RESTARTED_BY",),
    "engine.workspace.operations": ("Requester",),
    "engine.notices.watchers": (
        "Unwatched",
        "Watcher",
    ),
    "planner.simulated.dry_run": ("DryRun",),
    "probe.result": (
        "ProbeResult",
        "Summary",
    ),
    "probe.schema": ("Failure",),
}
_PLACE = {name: place for place, names in _PLACES.items() for name in names}


def __getattr__(name: str) -> Any:
    """See PEP 562."""
    if name not in _PLACE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"quarterdeck.{_PLACE[name]}"), name)
