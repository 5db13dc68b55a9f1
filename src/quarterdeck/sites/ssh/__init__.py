"""Sites of machines that are reached by ssh and run systemd."""
