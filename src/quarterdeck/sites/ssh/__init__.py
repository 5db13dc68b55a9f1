"""Sites on machines that are reached by ssh, and that systemd runs."""
