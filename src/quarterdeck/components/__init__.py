"""What each program needs: arguments, files, ports. Pure."""
