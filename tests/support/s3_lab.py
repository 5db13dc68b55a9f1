"""A real S3 server on 127.0.0.1, for tests of backup stores."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import httpx2

from support.conditions import until

BUCKET = "planes"
_ACCESS, _SECRET = "quarterdeck", "not-a-secret"
_ATTEMPTS = 3


class S3Lab:
    """Its URL, and the options with which it is reached."""

    def __init__(self, port: int) -> None:
        self.port = port

    def options(self, **others: str) -> Mapping[str, str]:
        return {
            "endpoint": f"http://127.0.0.1:{self.port}",
            "region": "us-east-1",
            "access_key_id": _ACCESS,
            "secret_access_key": _SECRET,
            **others,
        }


@contextmanager
def s3_server(folder: Path) -> Iterator[S3Lab]:
    """A server with its data in a folder, and one bucket."""
    access = {"accessKey": _ACCESS, "secretKey": _SECRET}
    identity = {"name": "tests", "credentials": [access], "actions": ["Admin", "Read", "Write", "List", "Tagging"]}
    (folder / "s3.json").write_text(json.dumps({"identities": [identity]}))
    process, ports = _started(folder)
    try:
        yield S3Lab(ports["s3"])
    finally:
        process.kill()  # it needs half a minute to end by itself, and nobody needs its data
        process.wait()


def _started(folder: Path) -> tuple[subprocess.Popen[bytes], Mapping[str, int]]:
    """A server that serves. It ends where another program has taken one of its ports meanwhile, and is tried again."""
    for attempt in range(_ATTEMPTS):
        ports = _free_ports()
        with (folder / "log").open("ab") as log:
            process = subprocess.Popen(_argv(folder, ports), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        until(
            lambda: process.poll() is not None or (_answers(ports["s3"]) and _made(ports["filer"])),  # noqa: B023
            f"the S3 server has a bucket; see {folder / 'log'}",
            seconds=60,
            pause=0.2,
        )
        if process.poll() is None:
            return process, ports
        print(f"attempt {attempt + 1}: the S3 server ended")
    raise AssertionError(f"the S3 server ends {_ATTEMPTS} times; see {folder / 'log'}")


def _argv(folder: Path, ports: Mapping[str, int]) -> list[str | Path]:
    program = Path(sys.executable).with_name("weed")
    return [
        program,
        "-logtostderr",
        "server",
        f"-dir={folder}",
        "-ip=127.0.0.1",
        "-ip.bind=127.0.0.1",
        "-filer",
        "-s3",
        *(f"-{name if '.' in name else f'{name}.port'}={port}" for name, port in ports.items()),
        f"-s3.config={folder / 's3.json'}",
        "-s3.port.iceberg=0",  # fixed ports: of two servers on this host, one would not start
        "-s3.port.lance=0",
        "-volume.max=8",
        "-master.telemetry=false",
        "-master.volumeSizeLimitMB=64",
    ]


def _free_ports() -> Mapping[str, int]:
    """A free port for each of its servers, all different: by ``master``, ``s3.port.grpc``..."""
    names = ("master", "volume", "filer", "s3")
    with contextlib.ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(2 * len(names))]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        free = [int(probe.getsockname()[1]) for probe in probes]
    return dict(zip((*names, *(f"{name}.port.grpc" for name in names)), free, strict=True))


def _answers(port: int) -> bool:
    with contextlib.suppress(httpx2.TransportError):
        return bool(httpx2.get(f"http://127.0.0.1:{port}/").status_code)
    return False


def _made(filer: int) -> bool:
    """Make the bucket, which is a folder of the server."""
    try:
        return httpx2.post(f"http://127.0.0.1:{filer}/buckets/{BUCKET}/").is_success
    except httpx2.TransportError:
        return False
