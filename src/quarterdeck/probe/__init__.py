"""Real clients that measure a plane from outside."""
