"""The file format of bbolt, in which etcd keeps its database (version 2, unchanged since 2014).

Read as far as a backup needs it; written by adding pages behind those that are there. See bbolt, internal/common.
"""
