"""``python -m quarterdeck``."""

import gc


def _start() -> None:
    """Run a command. Nothing that is loaded here is garbage, and searching for garbage takes a good part of the start
    time.
    """
    gc.disable()
    from quarterdeck.cli.main import main

    gc.freeze()
    gc.enable()
    main()


_start()
