"""System calls that Python's standard library does not wrap, and the kernel's process table."""
