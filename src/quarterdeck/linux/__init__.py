"""What Python's standard library has no function for: system calls, and the kernel's table of processes."""
