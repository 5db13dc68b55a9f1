"""The store of a home, opened without the rest of it."""

from __future__ import annotations

from pathlib import Path

from quarterdeck.api.site import Site, default_sites
from quarterdeck.drivers.stores import open_store
from quarterdeck.engine.workspace.home_folder import make_folder
from quarterdeck.stores.key_seal import Key
from quarterdeck.stores.port import Store


async def open_home_store(folder: Path, key: Key | None) -> Store:
    """The store of the home in ``folder``, created with its two default sites if it is new; ``Home.open`` lists what
    it raises.
    """
    make_folder(folder)
    store = open_store(folder, key=key)
    if not await store.list(Site):
        for site in default_sites():
            await store.create(site)
    return store
