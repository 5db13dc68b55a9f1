"""The rules. Each says which steps are safe now, and what it waits for."""
