"""The observation of a plane: all sources are queried at once, and joined to one world."""
