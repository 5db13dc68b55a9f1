"""Decides what to do next. Pure: values in, values out."""
