"""Commands on the keys of a plane: rotate."""

from __future__ import annotations

from typing import Annotated

import typer

from quarterdeck.api.plane.keys import KeyPurpose
from quarterdeck.app import RotateKey
from quarterdeck.cli.arguments import Detach, Name, OutputOption, Yes
from quarterdeck.cli.change_request import change, nothing_to_do, planned
from quarterdeck.cli.commands.certs import Back, Finish, stage_of
from quarterdeck.cli.context import Output
from quarterdeck.cli.groups import command, group
from quarterdeck.cli.open_home import go_inside_to_drive

app = group("Rotate the keys of a plane.")


@command(app, "keys rotate alpha --key encryption", "keys rotate alpha --key service-account --finish")
def rotate(
    name: Name,
    key: Annotated[KeyPurpose, typer.Option("--key", help="The key.")],
    finish: Finish = False,
    back: Back = False,
    yes: Yes = False,
    detached: Detach = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Replace a key while clients go on: a new one is used, and the former one stays accepted until --finish. The
    service-account key is published first; run the command again after an hour to sign with it.
    """
    stage = stage_of(f"rotating the {key} key of plane {name}", finish=finish, back=back)
    go_inside_to_drive(name)
    examined = planned(RotateKey(name, key, stage))
    if not examined.needed:
        nothing_to_do(examined, "rotate", f"no rotation of the {key} key is under way: nothing to do", output)
        return
    change(examined, "rotate", f"change the {key} key of plane {name}?", yes=yes, detached=detached, output=output)
