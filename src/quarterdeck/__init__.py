"""quarterdeck runs highly available Kubernetes control planes, heals them, and migrates them live."""

__version__ = "0.1.0"
