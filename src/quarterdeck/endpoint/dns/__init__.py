"""DNS drivers, and how DNS servers are asked."""
