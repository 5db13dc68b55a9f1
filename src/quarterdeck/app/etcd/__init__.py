"""What a person does about a plane's etcd."""
