"""A plane's cloud controller manager: whether sites can run it, and what it may do in the plane."""

from __future__ import annotations

import os
from pathlib import Path

from quarterdeck.actions.plane import Plane
from quarterdeck.addons.cloud import for_cloud
from quarterdeck.addons.content import Content
from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.errors import InvalidInput, PreconditionFailed
from quarterdeck.model.components import Component
from quarterdeck.sites.port import Site
from quarterdeck.upstream.target import Target, fault

#: What a file begins with that another program reads.
_SCRIPT = b"#!"


def admit_cloud(wanted: ControlPlane, site: Site, current: ControlPlane | None) -> None:
    """Refuse what no machine of a site could start: a change is not held up by a file that went since it was named.
    Raises PreconditionFailed for an image, InvalidInput for a file that is no program.
    """
    cloud = wanted.spec.cloud_controller_manager
    if cloud is None or (current is not None and cloud == current.spec.cloud_controller_manager):
        return
    doing = f"giving plane {wanted.name} a cloud controller manager"
    if cloud.program is not None:
        if why := _unusable(Path(cloud.program)):
            raise InvalidInput(doing, f"spec.cloudControllerManager.program: {cloud.program} {why}", "put one there")
    else:
        raise PreconditionFailed(
            doing,
            f"site {site.name} runs programs that are files, and no images",
            "give spec.cloudControllerManager.program: the file that is in the image",
        )


def _unusable(path: Path) -> str:
    """Why a file is no program for this machine; "" if it may be one."""
    try:
        if not path.is_file():
            return "is no file" if path.exists() else "is not there"
        if not os.access(path, os.X_OK):
            return "is not executable"
        with path.open("rb") as stream:
            if stream.read(len(_SCRIPT)) == _SCRIPT:
                return ""
        return fault(path, Target.here()) or ""
    except OSError as error:
        return f"cannot be read ({error.strerror})"


def kept_for_cloud(plane: Plane) -> Content | None:
    """What a cloud controller manager may do, which is an add-on of quarterdeck's own; None where there is none. It
    stays as long as any replica has one.
    """
    names = {plane.revisions.goal, *(each.revision for each in plane.memory.replicas)}
    there = plane.revisions.programs.having(Component.CLOUD_CONTROLLER_MANAGER)
    return for_cloud() if names & there else None
