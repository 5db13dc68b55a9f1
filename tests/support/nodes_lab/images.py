"""The image of all containers of tests: one static program, as an OCI archive that ``ctr images import`` takes."""

from __future__ import annotations

import hashlib
import io
import json
import platform
import tarfile
from pathlib import Path

#: What pods name.
IMAGE = "quarterdeck.test/work:1"
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_OCI = "application/vnd.oci.image"


def archive(program: Path) -> bytes:
    """The image whose only file, and entry point, is ``program``."""
    layer = _tar({"work": program.read_bytes()}, mode=0o755)
    config = _json(
        {
            "architecture": _ARCHITECTURES[platform.machine()],
            "os": "linux",
            "config": {"Entrypoint": ["/work"]},
            "rootfs": {"type": "layers", "diff_ids": [_digest(layer)]},
        }
    )
    manifest = _json(
        {
            "schemaVersion": 2,
            "mediaType": f"{_OCI}.manifest.v1+json",
            "config": _described(config, f"{_OCI}.config.v1+json"),
            "layers": [_described(layer, f"{_OCI}.layer.v1.tar")],
        }
    )
    named = {"annotations": {"io.containerd.image.name": IMAGE, "org.opencontainers.image.ref.name": IMAGE}}
    index = _json({"schemaVersion": 2, "manifests": [_described(manifest, f"{_OCI}.manifest.v1+json") | named]})
    blobs = {f"blobs/sha256/{_digest(each).partition(':')[2]}": each for each in (layer, config, manifest)}
    return _tar({"oci-layout": b'{"imageLayoutVersion":"1.0.0"}', "index.json": index, **blobs})


def _described(content: bytes, kind: str) -> dict[str, object]:
    return {"mediaType": kind, "digest": _digest(content), "size": len(content)}


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def _json(document: object) -> bytes:
    return json.dumps(document).encode()


def _tar(files: dict[str, bytes], *, mode: int = 0o644) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), mode
            tar.addfile(entry, io.BytesIO(content))
    return made.getvalue()
