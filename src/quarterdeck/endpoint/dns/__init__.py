"""DNS drivers, and queries of DNS servers."""
