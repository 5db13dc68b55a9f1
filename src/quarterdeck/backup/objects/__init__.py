"""Where backups are stored: a folder, or a bucket of an object store."""
