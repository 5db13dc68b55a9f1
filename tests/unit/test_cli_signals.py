"""A command that is told to stop ends what it does in good order."""

from __future__ import annotations

import asyncio
import os
import signal

import pytest
import typer

from quarterdeck.cli.work import ended_by


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
async def test_a_signal_to_stop_ends_a_command_only_after_it_has_tidied(number: signal.Signals) -> None:
    tidied = False

    async def command() -> None:
        nonlocal tidied
        with ended_by(signal.SIGTERM, signal.SIGHUP):
            try:
                os.kill(os.getpid(), number)
                await asyncio.sleep(30)
            finally:
                await asyncio.sleep(0)
                tidied = True

    # Under nohup the tests would have it ignored.
    before = signal.signal(number, signal.SIG_DFL)
    try:
        with pytest.raises(typer.Exit) as ended:
            await asyncio.create_task(command())
    finally:
        signal.signal(number, before)
    assert (ended.value.exit_code, tidied) == (128 + number, True)


async def test_a_command_under_nohup_outlives_its_terminal() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with ended_by(signal.SIGTERM, signal.SIGHUP):
            os.kill(os.getpid(), signal.SIGHUP)
            await asyncio.sleep(0.01)
    finally:
        signal.signal(signal.SIGHUP, before)
