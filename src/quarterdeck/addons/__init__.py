"""Add-ons, purely: what manifests say, in which order they go, and whose they are."""
