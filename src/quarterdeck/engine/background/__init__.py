"""Background tasks of a plane, beside the loop and under the same lease."""
