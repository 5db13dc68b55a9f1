"""etcdctl as people run it on a plane's etcd: the real program, with the client certificate of the plane's manager."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from quarterdeck.actions.addresses import client_urls
from quarterdeck.actions.plane import Plane
from quarterdeck.components.credentials import KeyPair
from quarterdeck.upstream.catalog import UpstreamProgram, Versions
from quarterdeck.upstream.upstream import Upstream
from support.conditions import CALL
from support.plane_lab import PlaneLab


@cache
def _program(program: UpstreamProgram) -> Path:
    """The path of a program, which is fetched or built if it is not there."""
    return asyncio.run(Upstream.from_environment(os.environ).ensure((program,), Versions()))[program]


def _written(folder: Path, **pems: bytes) -> Mapping[str, Path]:
    """Files with these contents."""
    folder.mkdir(mode=0o700, parents=True)
    for name, pem in pems.items():
        (folder / name).write_bytes(pem)
    return {name: folder / name for name in pems}


@dataclass
class Etcdctl:
    """etcdctl for the etcd of one plane of a lab."""

    lab: PlaneLab
    plane: str

    def __call__(self, *arguments: str, at: str = "") -> str:
        """What the command prints. ``at``: the client URL that is asked, of all members without it."""
        done = self.tried(*arguments, at=at)
        assert done.returncode == 0, f"etcdctl {' '.join(arguments)}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout

    def tried(self, *arguments: str, at: str = "") -> subprocess.CompletedProcess[str]:
        """The command, whether it succeeds or not."""

        async def opened(plane: Plane) -> tuple[tuple[str, ...], bytes, KeyPair]:
            return client_urls(plane), plane.secrets.etcd_ca.bundle, plane.secrets.etcd_manager

        urls, ca, pair = self.lab.opened(self.plane, opened)
        files = _written(self.lab.scratch(), ca=ca, crt=pair.certificate, key=pair.key)
        tls = (f"--cacert={files['ca']}", f"--cert={files['crt']}", f"--key={files['key']}")
        argv = (str(_program(UpstreamProgram.ETCDCTL)), f"--endpoints={at or ','.join(urls)}", *tls, *arguments)
        return subprocess.run(argv, capture_output=True, text=True, timeout=CALL, check=False)

    def members(self) -> list[dict[str, Any]]:
        """The members as etcd lists them: ID, name, peerURLs, clientURLs, isLearner."""
        found: list[dict[str, Any]] = json.loads(self("member", "list", "--write-out=json"))["members"]
        return found

    def add(self, peer_url: str, name: str = "stray") -> str:
        """Add a voter; its id as etcdctl prints it."""
        added = json.loads(self("member", "add", name, f"--peer-urls={peer_url}", "--write-out=json"))
        return f"{added['member']['ID']:x}"
