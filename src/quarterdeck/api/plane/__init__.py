"""The parts of a ControlPlane."""
