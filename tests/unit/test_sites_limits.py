"""The host's limits."""

from __future__ import annotations

import ctypes
import os

import pytest

from quarterdeck.errors import PreconditionFailed
from quarterdeck.sites.local.limits import inotify_left, require_inotify


def test_an_open_inotify_instance_counts() -> None:
    descriptor = ctypes.CDLL(None).inotify_init()
    try:
        with_one = inotify_left()
    finally:
        os.close(descriptor)
    assert with_one is not None


def test_more_replicas_than_the_host_can_watch_for_are_refused_before_anything_is_done() -> None:
    with pytest.raises(PreconditionFailed, match="max_user_instances"):
        require_inotify("creating plane x", 1_000_000)
