"""Planes for the tests of this folder: one that they share and move to and fro, and homes of their own."""

from __future__ import annotations

import json
import logging
import signal
from collections.abc import Iterator

import pytest
from support.plane_lab import Done, PlaneLab, plane_lab

NAME = "demo"

# A shell that runs the tests in the background has them ignore Ctrl-C, and so would every command that they start.
signal.signal(signal.SIGINT, signal.default_int_handler)


class Shared:
    """A home with the plane ``demo``, three replicas on loopback, for tests that leave it as they found it: well."""

    def __init__(self) -> None:
        self.lab: PlaneLab | None = None
        self.created: Done | None = None

    def ready(self) -> PlaneLab:
        """The home with its plane well again; a new one if a test has broken it for good."""
        if self.lab is not None and not self._heals(self.lab):
            self.close()
        if self.lab is None:
            self.lab = PlaneLab()
            self.created = self.lab.run("create", NAME)
        return self.lab

    def close(self) -> None:
        if self.lab is not None:
            lab, self.lab = self.lab, None
            lab.close()

    def _heals(self, lab: PlaneLab) -> bool:
        for command in lab.commands:
            if command.running:
                command.kill()
        lab.boot_all()
        seen = lab.look(NAME)
        if seen.plan.done and seen.operation is None:
            return True
        done = lab.start("wait", NAME, "--timeout", "120").end()
        if done.code:
            logging.getLogger(__name__).error("%s\n%s", done, json.dumps(lab.status(NAME), indent=1))
        return done.code == 0


@pytest.fixture(scope="session")
def shared() -> Iterator[Shared]:
    made = Shared()
    try:
        yield made
    finally:
        made.close()


@pytest.fixture
def demo(shared: Shared) -> PlaneLab:
    """A home with the plane ``demo``: three healthy replicas at one of the sites east and west."""
    return shared.ready()


@pytest.fixture
def lab() -> Iterator[PlaneLab]:
    """A home of the test's own."""
    with plane_lab() as made:
        yield made
