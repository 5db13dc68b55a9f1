"""Background duties: what is done for a plane beside the loop, under the same lease."""
