"""Backups of planes: what is stored, how it becomes etcd's database again, and what is checked before it is used."""
