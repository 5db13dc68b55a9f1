"""``./test``, once its environment is there."""

from __future__ import annotations

import sys

from runner.command_line import USAGE, BadUsage, asked
from runner.run import run
from runner.stages import STAGES


def main(argv: list[str]) -> int:
    """Exit code 2 where there is no such stage."""
    if {"-h", "--help"} & set(argv[: argv.index("--") if "--" in argv else None]):
        print(USAGE + "".join(f"  {each.name:10}{each.what}\n" for each in STAGES), end="")
        return 0
    try:
        wanted = asked(argv)
    except BadUsage as error:
        print(error, file=sys.stderr)
        return 2
    return run(wanted, STAGES)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
