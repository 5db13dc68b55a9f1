"""What happened, for people and for programs."""
