"""``python -m quarterdeck``."""

from quarterdeck.cli.main import main

main()
