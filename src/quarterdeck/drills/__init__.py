"""Failure drills: their targets, reasons to refuse them, and their evaluation. PURE."""
