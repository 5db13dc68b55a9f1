"""``./test``: runs stages of checks, each whatever came of the others, and says what ran and what did not."""
