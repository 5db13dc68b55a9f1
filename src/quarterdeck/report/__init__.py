"""Reports of operations, for people and for programs."""
