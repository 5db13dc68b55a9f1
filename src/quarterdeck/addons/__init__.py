"""Add-ons: manifests, their order, and their ownership. Pure."""
