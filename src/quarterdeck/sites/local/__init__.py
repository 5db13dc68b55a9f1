"""The local driver: machines on this host, supervised by supervisord."""
