"""Notices about a plane: events, conditions, the journal, and the policy for errors."""
