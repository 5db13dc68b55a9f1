"""A client for etcd's own API, and the port through which planner actions and the observer use it."""
