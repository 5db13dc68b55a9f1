"""Load balancer drivers."""
