"""What is so of planes, in numbers, as Prometheus reads them."""
