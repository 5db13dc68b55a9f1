"""A manager keeps planes: what breaks is mended without a command, and its own end costs nothing."""

from __future__ import annotations

import os
import signal
from datetime import UTC, datetime

import psutil
import pytest
from httpx2 import HTTPError
from support.clients import Client
from support.conditions import until
from support.leftovers import processes_of
from support.plane_lab import Command, PlaneLab

from quarterdeck.model.components import Component

pytestmark = [pytest.mark.smoke, pytest.mark.timeout(300)]

#: Seconds within which a plane must serve again, on a host that does other things as well.
AGAIN = 30.0


def serving(lab: PlaneLab) -> Command:
    command = lab.start("serve", "--log-format", "json")
    until(lambda: '"serving"' in command.output, "it serves")
    return command


def answers(client: Client) -> bool:
    try:
        with client.http(timeout=2.0) as http:
            return http.get("/readyz").status_code == 200
    except (HTTPError, OSError):
        return False


def test_a_plane_is_created_kept_and_left_running_by_a_manager_that_dies_and_ends(lab: PlaneLab) -> None:
    manager = serving(lab)

    # A command writes down what is wanted, and shows what the manager does.
    done = lab.run("create", "one", "--replicas", "1")
    assert f":{manager.process.pid} (quarterdeck serve)" in done.err, done
    assert "✓ start kube-apiserver" in done.err, done
    assert "plane one is ready" in done.out
    assert lab.operation("one").status.phase.over

    # An apiserver that is killed, and then all that runs of the home, as by a reboot: back without a command.
    client = lab.client("one")
    (machine,) = lab.machines("east")
    os.kill(lab.pid("east", machine, str(Component.APISERVER)), signal.SIGKILL)
    until(lambda: not answers(client), "it is noticed")
    until(lambda: answers(client), "the apiserver is back", seconds=AGAIN)
    for process in others(lab, manager):
        process.kill()
    assert not answers(client)
    until(lambda: answers(client), "the plane is back", seconds=AGAIN)

    # The manager dies: the next one goes on with what was asked for meanwhile.
    manager.kill()
    lab.run("pause", "one", "--for", "2s")
    assert answers(client)
    manager = serving(lab)
    until(lambda: not lab.plane("one").spec.paused_at(datetime.now(UTC)), "the pause ends by itself")
    lab.run("wait", "one", deadline=60)

    # It is told to stop: planes run on, and commands drive by themselves.
    manager.process.send_signal(signal.SIGTERM)
    assert manager.end(20).code == 0, manager.output
    assert answers(client)
    assert "driven by" not in lab.run("delete", "one", "--yes").err


def others(lab: PlaneLab, manager: Command) -> list[psutil.Process]:
    """All processes of the home but the manager's."""
    return [each for each in processes_of(lab.root) if each.pid != manager.process.pid]
