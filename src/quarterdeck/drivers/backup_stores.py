"""Opening backup stores: from a URL to a port."""

from __future__ import annotations

from collections.abc import Mapping

from quarterdeck.backup.objects.port import ObjectStore
from quarterdeck.backup.objects.stores import open_store


def open_backup_store(url: str, options: Mapping[str, str]) -> ObjectStore:
    """The backup store at a URL. Raises InvalidInput."""
    return open_store(url, options)
