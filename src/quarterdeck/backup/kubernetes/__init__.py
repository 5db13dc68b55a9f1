"""What of backups knows Kubernetes: how objects differ, and how single ones are read and brought back."""
