"""``python -m quarterdeck``."""

import gc


def _start() -> None:
    """Run a command. Nothing that is loaded here is garbage, and searching for garbage takes a good part of the start
    time: ``cli.main`` enables the search once the command is loaded.
    """
    gc.disable()
    from quarterdeck.cli.main import main

    main()


_start()
