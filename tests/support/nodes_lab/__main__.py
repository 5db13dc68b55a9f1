"""Build all that nodes run, and the image of their machines, so that no test waits for it: ``python -m
support.nodes_lab``. Nothing happens where machines cannot run: then their tests say so.
"""

from __future__ import annotations

import asyncio

from support.hosts_lab import why_not
from support.hosts_lab.image import image
from support.nodes_lab.programs import programs

if __name__ == "__main__" and not why_not():
    image()
    asyncio.run(programs())
