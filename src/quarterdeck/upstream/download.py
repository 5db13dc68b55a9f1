"""The source of official releases: downloads, each checked against its pinned or its published checksum."""

from __future__ import annotations

import asyncio
import hashlib
import shutil
import tarfile
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from quarterdeck.errors import Corrupt, InvalidInput
from quarterdeck.progress import Progress
from quarterdeck.upstream.catalog import UpstreamProgram
from quarterdeck.upstream.releases import RELEASES, ReleaseFile, mirrored, published_sum, release_files
from quarterdeck.upstream.sources import CannotGive, ProgramRequest

if TYPE_CHECKING:
    import httpx2

CONNECT_TIMEOUT = 5.0
"""Seconds. Short: on a network without the internet the next source should be tried soon."""
STALL_TIMEOUT = 30.0
"""Seconds without a byte after which a download counts as cut."""
_CHUNK = 1 << 18


class _Cut(Exception):
    """The connection broke before the whole file had come."""


class Releases:
    """Downloads from the projects' own sites, or from a mirror of them.

    A host that could not be reached is not tried again by this object. Raises InvalidInput when ``mirror`` is not a web
    address.
    """

    name = "release"

    def __init__(
        self,
        *,
        mirror: str | None = None,
        connect_timeout: float = CONNECT_TIMEOUT,
        pins: Mapping[str, str] = RELEASES,
    ) -> None:
        if mirror and not mirror.startswith(("http://", "https://")):
            raise InvalidInput(
                "reading QUARTERDECK_MIRROR",
                f"{mirror!r} is not a web address",
                "give http://... or https://...",
            )
        self._mirror = mirror
        self._pins = pins
        self._connect_timeout = connect_timeout
        self._unreachable: dict[str, str] = {}

    async def fetch(self, order: ProgramRequest, progress: Progress) -> Mapping[UpstreamProgram, Path]:
        """See Source. Files of one order are downloaded at the same time."""
        files = release_files(order.project, order.version, order.programs, order.target, self._pins)
        if not files:
            raise CannotGive(f"{order.project} publishes no checksums for its releases", absent=False)
        import httpx2  # it takes long to load, and few programs download

        timeout = httpx2.Timeout(STALL_TIMEOUT, connect=self._connect_timeout)
        async with httpx2.AsyncClient(timeout=timeout, follow_redirects=True) as client:
            tasks = [asyncio.create_task(self._one(client, file, order.folder, progress)) for file in files]
            try:
                results = await asyncio.gather(*tasks)
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
        return {program: path for result in results for program, path in result.items()}

    async def _one(
        self, client: httpx2.AsyncClient, file: ReleaseFile, folder: Path, progress: Progress
    ) -> Mapping[UpstreamProgram, Path]:
        url = mirrored(file.url, self._mirror)
        doing = f"downloading {_shown(url)}"
        expected = file.pinned or await self._published(client, file, doing, progress)
        path = folder / file.name
        digest = await self._twice(url, lambda: self._body(client, url, path, progress), progress)
        if digest != expected:
            path.unlink()
            raise Corrupt(
                doing,
                f"its SHA-256 is {digest}, {'pinned' if file.pinned else 'published'} is {expected}",
                "nothing was kept; try again, and if this persists, do not trust this network or mirror",
            )
        if file.members is None:
            return dict.fromkeys(file.programs, path)
        return await asyncio.to_thread(_unpack, path, file.members, folder)

    async def _published(self, client: httpx2.AsyncClient, file: ReleaseFile, doing: str, progress: Progress) -> str:
        """The SHA-256 that is published next to a file. Raises Corrupt when there is none for it."""
        url = mirrored(file.checksum_url, self._mirror)
        found = published_sum(await self._twice(url, lambda: self._checksums(client, url), progress), file.name)
        if found is None:
            raise Corrupt(
                doing, f"{_shown(url)} has no SHA-256 for it", "check whether a proxy or mirror answers in its place"
            )
        progress.note(f"{file.name}: no digest is pinned for it; checked against {_shown(url)}")
        return found

    async def _checksums(self, client: httpx2.AsyncClient, url: str) -> str:
        """The text of a checksum file."""
        response = await client.get(url)
        _check_status(response, url)
        return response.text

    async def _twice(self, url: str, attempt: Callable[[], Awaitable[str]], progress: Progress) -> str:
        """The result of ``attempt`` for ``url``; it is repeated once if the connection broke.

        A host that cannot be reached at all is remembered, and not tried again.
        """
        import httpx2

        host = httpx2.URL(url).host
        if host in self._unreachable:
            raise CannotGive(self._unreachable[host], absent=False)
        try:
            return await attempt()
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError) as error:
            raise self._no_contact(host, error, progress) from error
        except (httpx2.RequestError, _Cut) as error:
            progress.note(f"{_shown(url)} was cut ({_reason(error)}): trying once more")
        try:
            return await attempt()
        except (httpx2.RequestError, _Cut) as error:
            raise CannotGive(f"{_shown(url)} was cut twice ({_reason(error)})", absent=False) from error

    def _no_contact(self, host: str, error: Exception, progress: Progress) -> CannotGive:
        why = f"{host} cannot be reached ({_reason(error)})"
        if not self._unreachable:  # one line for people, however many files and hosts there are
            progress.note(f"{why}: what cannot be downloaded will be built from its Go modules")
        self._unreachable[host] = why
        return CannotGive(why, absent=False)

    async def _body(self, client: httpx2.AsyncClient, url: str, path: Path, progress: Progress) -> str:
        """Write the content of ``url`` to ``path``. Returns its SHA-256 in hex."""
        digest, done, task = hashlib.sha256(), 0, f"downloading {path.name}"
        # With compression in transit, Content-Length and the published sum would be those of different bytes.
        async with client.stream("GET", url, headers={"Accept-Encoding": "identity"}) as response:
            _check_status(response, url)
            length = response.headers.get("Content-Length", "")
            total = int(length) if length.isdigit() else None
            progress.start(task, total)
            outcome = "cut"
            try:
                with path.open("wb") as stream:
                    async for chunk in response.aiter_raw(_CHUNK):
                        digest.update(chunk)
                        stream.write(chunk)
                        done += len(chunk)
                        progress.advance(task, done)
                if total is not None and done != total:
                    raise _Cut(f"{done} of {total} bytes came")
                outcome = f"{done / 1e6:.0f} MB"
            except BaseException:
                path.unlink()
                raise
            finally:
                progress.finish(task, outcome)
        return digest.hexdigest()


def _check_status(response: httpx2.Response, url: str) -> None:
    if response.status_code in (404, 410):
        raise CannotGive(f"{_shown(url)} does not exist ({response.status_code})", absent=True)
    if response.status_code != 200:
        raise CannotGive(f"{_shown(url)} answered {response.status_code}", absent=False)


def _unpack(archive: Path, members: Mapping[UpstreamProgram, str], folder: Path) -> Mapping[UpstreamProgram, Path]:
    """Extract single files of a gzipped tar; their names in it are never used as paths."""
    found: dict[UpstreamProgram, Path] = {}
    wanted = {member: program for program, member in members.items()}
    try:
        with tarfile.open(archive, "r:gz") as tar:
            for entry in tar:
                program = wanted.get(entry.name.removeprefix("./"))
                content = tar.extractfile(entry) if program and entry.isfile() else None
                if program and content:
                    with (folder / program).open("wb") as stream:
                        shutil.copyfileobj(content, stream)
                    found[program] = folder / program
    except (tarfile.TarError, EOFError) as error:
        raise Corrupt(f"unpacking {archive.name}", str(error), "the archive itself is as published") from error
    finally:
        archive.unlink()
    if missing := [member for member, program in wanted.items() if program not in found]:
        raise CannotGive(f"{archive.name} does not contain {', '.join(missing)}", absent=True)
    return found


def _shown(url: str) -> str:
    """``url`` without the password of a mirror."""
    import httpx2

    return str(httpx2.URL(url).copy_with(userinfo=b""))


def _reason(error: Exception) -> str:
    return str(error) or type(error).__name__
