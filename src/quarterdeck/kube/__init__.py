"""Apiservers and controllers, asked one by one."""
