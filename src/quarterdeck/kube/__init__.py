"""Clients of single apiservers and controllers."""
