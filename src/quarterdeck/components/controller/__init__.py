"""The controller managers and the scheduler, and the sets of controllers that pass between them."""
