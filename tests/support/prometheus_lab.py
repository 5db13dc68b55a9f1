"""Prometheus and promtool, built once from their published Go modules and kept beside the upstream programs."""

from __future__ import annotations

import asyncio
import json
import shutil
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from quarterdeck.http import Http, NoAnswer
from quarterdeck.runner import ProcessResult, run, start
from support.go_programs import built

VERSION = "v0.316.0"  # of the module
_MODULE = "github.com/prometheus/prometheus"
_PROGRAMS = ("promtool", "prometheus")
#: Without what finds targets in clouds: their modules are most of the work.
_FLAGS = ("-mod=mod", "-tags=remove_all_sd")


async def programs() -> dict[str, Path]:
    """Both programs; built the first time, whoever comes first."""
    module = f"module quarterdeck.dev/tests\n\ngo 1.25.0\n\nrequire {_MODULE} {VERSION}\n"
    packages = [f"{_MODULE}/cmd/{name}" for name in _PROGRAMS]
    folder = await built(f"prometheus-{VERSION}", {"go.mod": module.encode()}, packages, *_FLAGS)
    return {name: folder / name for name in _PROGRAMS}


async def promtool(*argv: str, stdin: Path | None = None) -> ProcessResult:
    """Run promtool to its end; ``stdin``: a file that it reads."""
    program = str((await programs())["promtool"])
    given = None if stdin is None else stdin.read_bytes()
    return await run([program, *argv], doing="running promtool", deadline=60, by=start(folder=Path("/")), given=given)


@dataclass(frozen=True)
class Prometheus:
    """One that runs."""

    url: str
    http: Http

    async def is_ready(self) -> None:
        """Return when it answers questions: it listens before it does."""
        async with asyncio.timeout(60):
            while True:
                with suppress(NoAnswer):
                    if (await self.http.ask("GET", self.url, "/-/ready", deadline=10)).status == 200:
                        return
                await asyncio.sleep(0.1)

    async def get(self, path: str) -> dict[str, object]:
        """What its API says; the test fails if it complains."""
        answer = await self.http.ask("GET", self.url, path, deadline=10)
        found: dict[str, object] = json.loads(answer.body)
        assert found["status"] == "success", found
        return found

    async def query(self, text: str) -> list[dict[str, object]]:
        """The series that a query finds now."""
        data = (await self.get(f"/api/v1/query?query={quote(text)}"))["data"]
        assert isinstance(data, dict)
        result: list[dict[str, object]] = data["result"]
        return result


@asynccontextmanager
async def prometheus(folder: Path, configuration: str) -> AsyncIterator[Prometheus]:
    """Run one in ``folder`` until the block ends."""
    (folder / "prometheus.yml").write_text(configuration)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        at = f"127.0.0.1:{free.getsockname()[1]}"
    program = (await programs())["prometheus"]
    argv = (f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'data'}")
    log = (folder / "log").open("wb")
    process = await asyncio.create_subprocess_exec(
        program, *argv, f"--web.listen-address={at}", stdout=log, stderr=log, cwd=folder
    )
    client = Http(None)
    try:
        there = Prometheus(f"http://{at}", client)
        await there.is_ready()
        yield there
    finally:
        await client.close()
        process.kill()
        await process.wait()
        log.close()
        shutil.rmtree(folder / "data", ignore_errors=True)


if __name__ == "__main__":  # so that it is not built beside tests that count seconds
    asyncio.run(programs())
