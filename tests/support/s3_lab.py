"""A real S3 server on 127.0.0.1, for tests of backup stores."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import httpx2

from support.conditions import until
from support.endpoint_lab import free_port

BUCKET = "planes"
_ACCESS, _SECRET = "quarterdeck", "not-a-secret"


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
    program = Path(sys.executable).with_name("weed")
    ports = {name: free_port("127.0.0.1") for name in ("master", "volume", "filer", "s3")}
    access = {"accessKey": _ACCESS, "secretKey": _SECRET}
    identity = {"name": "tests", "credentials": [access], "actions": ["Admin", "Read", "Write", "List", "Tagging"]}
    (folder / "s3.json").write_text(json.dumps({"identities": [identity]}))
    argv = [program, "-logtostderr", "server", f"-dir={folder}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-filer", "-s3"]
    argv += [f"-{name}.port={port}" for name, port in ports.items()]
    argv += [f"-{name}.port.grpc={free_port('127.0.0.1')}" for name in ports]
    argv += [
        f"-s3.config={folder / 's3.json'}",
        "-s3.port.iceberg=0",  # fixed ports: of two servers on this host, one would not start
        "-s3.port.lance=0",
        "-volume.max=8",
        "-master.telemetry=false",
        "-master.volumeSizeLimitMB=64",
    ]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        until(
            lambda: _answers(ports["s3"]) and _made(ports["filer"]),
            f"the S3 server has a bucket; see {folder / 'log'}",
            seconds=60,
            pause=0.2,
        )
        yield S3Lab(ports["s3"])
    finally:
        process.terminate()
        process.wait()


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
