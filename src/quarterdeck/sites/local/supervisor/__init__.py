"""A machine's supervisor and the units that it runs."""
