"""The resources that users declare."""
