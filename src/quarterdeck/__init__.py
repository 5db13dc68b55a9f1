"""quarterdeck keeps Kubernetes control planes alive, and moves them while they serve."""

__version__ = "0.1.0"
