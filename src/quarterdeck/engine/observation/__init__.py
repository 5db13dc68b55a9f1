"""What is seen of a plane: every source asked at once, and joined to one world."""
