"""Planes that tests use in turn: creating one takes longer than many a test."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable

from support.plane_lab import Done, PlaneLab


class KeptPlane:
    """A plane in a home of its own, which each test leaves well; made when it is first needed, and made again when a
    test has broken it for good, or needs another number of replicas: no test depends on the one before.
    """

    def __init__(self, name: str, make: Callable[[PlaneLab, str, int], Done], *, quick: bool = True) -> None:
        """``quick``: its machines can be reached from here, so looking needs no command."""
        self.name = name
        self._make = make
        self._quick = quick
        self._lab: PlaneLab | None = None

    def ready(self, replicas: int = 3) -> PlaneLab:
        """The home, with its plane well."""
        if self._lab is not None and not self._heals(self._lab, replicas):
            self.close()
        if self._lab is None:
            self._lab = PlaneLab()
            done = self._make(self._lab, self.name, replicas)
            assert done.code == 0, str(done)
        return self._lab

    def close(self) -> None:
        """Take it down, if it is there."""
        if self._lab is not None:
            lab, self._lab = self._lab, None
            lab.close()

    def _heals(self, lab: PlaneLab, replicas: int) -> bool:
        for command in lab.commands:
            if command.running:
                command.kill()
        lab.boot_all()
        if [plane.spec.replicas for plane in lab.planes() if plane.metadata.name == self.name] != [replicas]:
            return False
        if self._quick:
            seen = lab.look(self.name)
            if seen.plan.done and seen.operation is None:
                return True
        done = lab.start("wait", self.name, "--timeout", "120").end()
        if done.code:
            logging.getLogger(__name__).error("%s\n%s", done, json.dumps(lab.status(self.name), indent=1))
        return done.code == 0


_SHORT = """
apiVersion: quarterdeck.dev/v1alpha1
kind: ControlPlane
metadata: {{name: {name}}}
spec:
  replicas: {replicas}
  placement: {{site: east}}
  endpoint: {{ttl: 1}}
"""


def created(lab: PlaneLab, name: str, replicas: int) -> Done:
    """A plane at one of the default sites, with the shortest time to live of its name: every move waits for it."""
    return lab.run("apply", "-f", str(lab.file(_SHORT.format(name=name, replicas=replicas))))


SMALL_NAME = "small"
#: A plane of one replica whose etcd has little room, a site with little room, and the one where the plane is.
SMALL = f"""
apiVersion: quarterdeck.dev/v1alpha1
kind: ControlPlane
metadata: {{name: {SMALL_NAME}}}
spec:
  replicas: 1
  placement: {{site: home}}
  etcd: {{quotaBytes: 64Mi, storageClass: fast}}
"""
_SMALL_SITES = """
apiVersion: quarterdeck.dev/v1alpha1
kind: Site
metadata: {name: home}
spec: {storageClasses: [{name: fast}]}
---
apiVersion: quarterdeck.dev/v1alpha1
kind: Site
metadata: {name: full}
spec: {storageClasses: [{name: fast, limitBytes: 16Mi}]}
"""


def small_created(lab: PlaneLab, _name: str, _replicas: int) -> Done:
    """The plane ``small``."""
    lab.run("apply", "-f", str(lab.file(_SMALL_SITES)))
    return lab.run("apply", "-f", str(lab.file(SMALL)))
