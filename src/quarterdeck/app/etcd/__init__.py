"""Manual operations on a plane's etcd."""
