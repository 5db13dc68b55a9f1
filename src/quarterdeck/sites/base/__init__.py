"""What the drivers of sites have alike: each keeps machines, units, seats and faults in its own place only."""
