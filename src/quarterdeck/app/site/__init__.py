"""Sites, and their hosts."""
