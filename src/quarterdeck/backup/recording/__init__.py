"""Recording a cluster of etcd into the chain of its plane: full backups, and everything that the cluster does."""
