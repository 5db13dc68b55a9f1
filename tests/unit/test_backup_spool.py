"""Increments that wait on the disk."""

from __future__ import annotations

import hashlib
import resource
from datetime import UTC, datetime
from pathlib import Path

import pytest

from quarterdeck.backup.recording.spool import Outbox, Piece, PieceHeader, Spool, SpoolFull

AT = datetime(2030, 1, 1, tzinfo=UTC)


def piece(first: int, last: int, *, size: int = 100, epoch: int = 0) -> Piece:
    content = bytes([first % 256]) * size
    header = PieceHeader(
        plane="uid",
        cluster="main",
        epoch=epoch,
        first=first,
        last=last,
        first_at=AT,
        last_at=AT,
        sha256=hashlib.sha256(content).hexdigest(),
        size_bytes=size,
    )
    return Piece(header, content)


async def opened(folder: Path, limit: int = 1000, epoch: int = 0) -> Spool:
    spool = Spool(folder / "main", limit)
    await spool.open("uid", "main", epoch)
    return spool


async def test_what_was_put_is_found_by_the_next_process_in_order(tmp_path: Path) -> None:
    spool = await opened(tmp_path)
    for each in (piece(21, 30), piece(11, 20), piece(1000, 1001)):
        await spool.put(each)
    again = await opened(tmp_path)
    assert [each.first for each in again.headers] == [11, 21, 1000]
    assert again.size_bytes == 300
    assert await again.load(again.headers[0]) == piece(11, 20)
    await again.drop(again.headers[0])
    await again.drop(piece(11, 20).header)
    assert [each.first for each in (await opened(tmp_path)).headers] == [21, 1000]
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in (tmp_path / "main").iterdir())
    assert (tmp_path / "main").stat().st_mode & 0o777 == 0o700


async def test_one_piece_more_than_fits_discards_all(tmp_path: Path) -> None:
    spool = await opened(tmp_path, limit=250)
    await spool.put(piece(11, 20))
    await spool.put(piece(21, 30))
    with pytest.raises(SpoolFull, match="250 bytes"):
        await spool.put(piece(31, 40))
    assert (spool.headers, spool.size_bytes) == ((), 0)
    assert not [*(tmp_path / "main").iterdir()]
    await spool.put(piece(41, 50))


async def test_a_disk_without_room_is_a_full_spool(tmp_path: Path) -> None:
    spool = await opened(tmp_path)
    await spool.put(piece(11, 20))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))  # no file may be longer
    try:
        with pytest.raises(SpoolFull, match="make room on that disk"):
            await spool.put(piece(21, 30))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert not [*(tmp_path / "main").iterdir()]


@pytest.mark.parametrize("damage", ["cut", "no header", "empty", "renamed", "half-written", "another epoch"])
async def test_what_is_damaged_or_of_another_cluster_is_not_found_and_deleted(tmp_path: Path, damage: str) -> None:
    spool = await opened(tmp_path)
    await spool.put(piece(11, 20))
    await spool.put(piece(21, 30))
    path = min((tmp_path / "main").iterdir())
    content = path.read_bytes()
    match damage:
        case "cut":
            path.write_bytes(content[:-1])
        case "no header":
            path.write_bytes(b"\n" + content)
        case "empty":
            path.write_bytes(b"")
        case "renamed":
            path.rename(path.with_name("00000000000000000001-00000000000000000020.increment"))
        case "half-written":
            path.rename(path.with_name(f".{path.name}.0123456789ab"))
        case _:
            path.unlink()
            await spool.put(piece(11, 20, epoch=1))
    assert [each.first for each in (await opened(tmp_path)).headers] == [21]
    assert len([*(tmp_path / "main").iterdir()]) == 1


async def test_one_changed_bit_is_found_when_a_piece_is_read(tmp_path: Path) -> None:
    spool = await opened(tmp_path)
    await spool.put(piece(11, 20))
    (path,) = (tmp_path / "main").iterdir()
    path.write_bytes(path.read_bytes()[:-1] + b"\0")
    (header,) = spool.headers
    assert await spool.load(header) is None
    assert spool.headers == ()
    assert not path.exists()


async def test_one_piece_is_only_in_memory_until_another_comes_or_the_store_fails(tmp_path: Path) -> None:
    outbox = Outbox(await opened(tmp_path))
    await outbox.put(piece(11, 20))
    assert not [*(tmp_path / "main").iterdir()]
    await outbox.put(piece(21, 30))
    assert [each.first for each in outbox.headers] == [11, 21]
    assert len([*(tmp_path / "main").iterdir()]) == 1
    await outbox.keep()
    assert [each.first for each in (await opened(tmp_path)).headers] == [11, 21]
    for header in outbox.headers:
        assert await outbox.load(header) == piece(header.first, header.last)
        await outbox.drop(header)
    assert outbox.headers == ()
    await outbox.put(piece(31, 40))
    await outbox.clear()
    assert outbox.headers == ()
