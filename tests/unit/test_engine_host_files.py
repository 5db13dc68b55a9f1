"""Files of machines that flags name are looked for where replicas are to be."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

from support.golden import Golden
from support.resources import with_spec

from quarterdeck.api.controlplane import new_control_plane
from quarterdeck.engine.observation.move import Move
from quarterdeck.engine.preflight.room import host_files
from quarterdeck.errors import Unavailable
from quarterdeck.model.capabilities import Job, JobResult
from quarterdeck.model.findings import Verdict
from quarterdeck.model.units import Machine, MachineState


def asked(has: dict[str, set[str]], down: str = "", **flags: str) -> Move:
    """A move to machines that have these files."""

    async def run_job(machine: str, job: Job) -> JobResult:
        if machine not in has:
            return JobResult(exit_code=1, output="no shell")
        missing = [each for each in job.argv[4:] if each not in has[machine]]
        return JobResult(exit_code=0, output="".join(f"{each}\n" for each in missing))

    given = {name.replace("_", "-"): value for name, value in flags.items()}
    plane = new_control_plane("demo", site="west")
    extra = plane.spec.extra_args.model_copy(update={"kube_apiserver": given})
    wanted = with_spec(plane, extra_args=extra)
    states = {name: MachineState.DOWN if name == down else MachineState.UP for name in ("a1", "b1")}
    machines = tuple(
        Machine(name=name, site="west", zone=name[0], address="192.0.2.1", state=state)
        for name, state in states.items()
    )
    site = SimpleNamespace(run_job=run_job)
    return cast("Move", SimpleNamespace(wanted=wanted, open=machines, plane=SimpleNamespace(site=lambda _: site)))


async def test_a_file_that_a_machine_has_not_is_named_with_the_machine(golden: Golden) -> None:
    webhook = "/etc/webhook.yaml"
    move = asked({"a1": {webhook}, "b1": set()}, audit_webhook_config_file=webhook, event_ttl="2h")
    found = await host_files(move)
    assert found.verdict == Verdict.REFUSE
    golden(found.seen)


async def test_files_that_all_have_are_fine_and_so_is_a_machine_that_is_down(golden: Golden) -> None:
    has = {"/etc/a.crt", "/etc/a.key", "/var/log/kube"}
    move = asked({"a1": has}, "b1", tls_sni_cert_key="/etc/a.crt,/etc/a.key", audit_log_path="/var/log/kube/audit.log")
    found = await host_files(move)
    assert found.verdict is Verdict.OK
    golden(found.seen)
    assert (await host_files(asked({}, event_ttl="2h"))).verdict is Verdict.OK


async def test_a_machine_that_cannot_be_asked_is_no_machine_that_has_them(golden: Golden) -> None:
    with golden.raises(Unavailable):
        await host_files(asked({}, audit_webhook_config_file="/etc/webhook.yaml"))
