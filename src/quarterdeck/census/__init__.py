"""What the etcd of a plane stores, by type, and which of that a minor of Kubernetes can decode."""
