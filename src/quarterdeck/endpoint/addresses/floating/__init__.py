"""Addresses that go over to another edge of their site when theirs falls silent, by a small process on each edge."""
