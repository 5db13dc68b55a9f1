"""The parts of a Site, and inventories of hosts."""
