"""What is told of a plane: events, conditions, the journal, and what becomes of errors."""
