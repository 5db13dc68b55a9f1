"""Real clients that watch a plane from outside."""
