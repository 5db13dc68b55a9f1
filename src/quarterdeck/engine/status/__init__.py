"""The status of a plane, for people and programs."""
