"""Failure drills: what each strikes, when it is refused, and what its course comes to. PURE."""
