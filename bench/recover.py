"""A lost quorum: two of three machines die for good, and a person says that the plane is to go on from the third.

    python bench/recover.py [--runs 5] [--megabytes 20] [--isolation netns]

"lost" counts from the machines' death until the word is taken, which it is once the quorum is seen to be lost; "API
serves" from there until a client's write is acknowledged, and "as wanted" from there until three replicas run again. In
each run the dead machines come back at last, and what is of the epoch before stays stopped.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from drills import filled
from lab import Noise, markdown, spread, this_machine
from support.conditions import until
from support.plane_lab import Command, PlaneLab, plane_lab

from quarterdeck.api.site import Isolation

NAME = "drilled"
#: Seconds for a quorum to be seen to be lost.
PATIENCE = 120.0
SITE = """
apiVersion: quarterdeck.dev/v1alpha1
kind: Site
metadata: {{name: lab}}
spec: {{isolation: {isolation}}}
"""


def begun(lab: PlaneLab) -> Command:
    """The command whose word was taken. It is refused as long as the quorum is not seen to be lost."""
    end = time.monotonic() + PATIENCE
    before = lab.plane(NAME).spec.new_epoch
    recovering = lab.start("recover", NAME, "--yes")
    while lab.plane(NAME).spec.new_epoch == before:
        if not recovering.running:
            said = recovering.end()
            if time.monotonic() >= end:
                raise SystemExit(f"the quorum is not lost after {PATIENCE:.0f} s: {said}")
            recovering = lab.start("recover", NAME, "--yes")
        time.sleep(0.1)
    return recovering


def recovered(lab: PlaneLab, number: int) -> tuple[float, float, float]:
    """Seconds until the quorum was seen to be lost, from the word until the API served, and until all was as wanted."""
    client = lab.client(NAME)
    members = {each["machine"]: each["member"] for each in lab.status(NAME, code=0)["members"]}
    dead = sorted(members, key=lambda each: members[each] == "leader")[1:]
    since = time.monotonic()
    for machine in dead:
        lab.kill_machine("lab", machine)

    recovering = begun(lab)
    word = time.monotonic()
    lost = word - since
    until(lambda: client.writes(f"after-recovery-{number}"), "the API serves again", seconds=180)
    serves = time.monotonic() - word
    done = recovering.end()
    if done.code:
        raise SystemExit(str(done))
    wanted = time.monotonic() - word - serves
    for machine in dead:
        lab.boot_machine("lab", machine)
    lab.run("wait", NAME)
    return lost, serves, wanted


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--megabytes", type=int, default=20)
    parser.add_argument("--isolation", type=Isolation, choices=list(Isolation), default=Isolation.NETNS)
    wanted = parser.parse_args()
    noise, runs = Noise(), []
    with plane_lab() as lab:
        lab.run("apply", "-f", str(lab.file(SITE.format(isolation=wanted.isolation))))
        lab.run("create", NAME, "--site", "lab", "--replicas", "3")
        filled(Path(lab.home), wanted.isolation, wanted.megabytes)
        for number in range(wanted.runs):
            runs.append(recovered(lab, number))
            print(f"{number + 1}: {runs[-1]}", flush=True)
    print(f"\n{this_machine()}; {wanted.runs} runs, {wanted.megabytes} MB\n")
    header = ["lost: s", "word -> API serves: s", "-> as wanted: s", "stolen s", "pace ms"]
    print(markdown(header, [[*(spread(each) for each in zip(*runs, strict=True)), *noise.cells()]]))


if __name__ == "__main__":
    main()
