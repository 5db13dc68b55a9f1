"""Where programs' calls cannot be answered otherwise, and what is said of it."""

from __future__ import annotations

import pytest
from support.golden import Golden

from quarterdeck.sites.local.fault.strace import cannot_trace, why_forbidden


@pytest.mark.parametrize(("scope", "privileged"), [(0, False), (0, True), (1, True), (2, True)])
def test_who_may_attach_to_what_runs_already_is_not_kept_from_it(scope: int, *, privileged: bool) -> None:
    assert why_forbidden(scope, privileged=privileged) == ""


@pytest.mark.parametrize("scope", [1, 2])
def test_who_may_not_is_told_what_to_allow(scope: int) -> None:
    message = why_forbidden(scope, privileged=False)
    assert "be root, or allow it (sysctl -w kernel.yama.ptrace_scope=0)" in message
    assert "\n" not in message


@pytest.mark.parametrize("privileged", [False, True])
def test_what_nobody_may_until_the_next_boot_is_said_to_be_so(*, privileged: bool) -> None:
    assert why_forbidden(3, privileged=privileged).endswith("kernel.yama.ptrace_scope is 3 until it boots")


def test_where_there_is_no_strace_it_is_said_how_to_have_it(monkeypatch: pytest.MonkeyPatch, golden: Golden) -> None:
    monkeypatch.setenv("PATH", "/proc/nowhere")
    golden(cannot_trace())
