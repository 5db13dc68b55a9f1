"""Which revisions may run at the same time, and the way from one to another one. Pure."""
