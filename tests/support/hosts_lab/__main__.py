"""Make the image of the machines, so that no test waits for it: ``python -m support.hosts_lab``. Nothing happens where
machines cannot run: then their tests say so.
"""

from __future__ import annotations

from support.hosts_lab.image import image
from support.hosts_lab.lab import why_not

if __name__ == "__main__" and not why_not():
    image()
