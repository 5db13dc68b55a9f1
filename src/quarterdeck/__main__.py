"""``python -m quarterdeck``."""

import gc


def _start() -> None:
    """Run a command. Nothing that is loaded is garbage: to look for some takes a good part of the start."""
    gc.disable()
    from quarterdeck.cli.main import main

    gc.freeze()
    gc.enable()
    main()


_start()
