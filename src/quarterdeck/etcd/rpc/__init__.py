"""Messages and stubs of etcd's API, made by `scripts/protos` from the .proto files beside them."""
