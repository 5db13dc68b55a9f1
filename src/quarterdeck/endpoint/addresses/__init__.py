"""Addresses that pass from machine to machine."""
