"""Certificate authorities, certificates and keys of a plane."""
