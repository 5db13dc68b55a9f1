"""The shared part of site drivers: only the storage of machines, units, seats and faults differs."""
