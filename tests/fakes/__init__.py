"""Fakes of the ports, in memory. Each passes the contract suite of the port that it stands for."""
