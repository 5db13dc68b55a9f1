"""Commands on the etcd of a plane: check, remove-member, disarm, disable-auth."""

from __future__ import annotations

from typing import Annotated

import typer

from quarterdeck.api.output.operations import ChangeResult
from quarterdeck.api.output.planes import MemberHashRow
from quarterdeck.app import MemberHash
from quarterdeck.cli.arguments import Name, OutputOption, UnnamedOption, Yes
from quarterdeck.cli.context import Output, UnnamedOutput, err, go_inside, look, out
from quarterdeck.cli.groups import command, group
from quarterdeck.cli.open_home import call
from quarterdeck.cli.operation_rows import changed
from quarterdeck.cli.output import Column, done, known, show
from quarterdeck.cli.work import confirm

app = group("Check and repair the etcd of a plane.")


_COLUMNS: tuple[Column[MemberHashRow], ...] = (
    Column("etcd", lambda row: row.cluster),
    Column("member", lambda row: row.replica),
    Column("revision", lambda row: row.revision),
    Column("hash", lambda row: row.hash),
    Column("same", lambda row: known(row.same)),
)


@command(app, "etcd check alpha")
def check(name: Name, output: UnnamedOption = UnnamedOutput.TABLE) -> None:
    """Compare the data of all etcd members by a hash of all keys.

    Exits 1 if a member differs or does not answer.
    """
    go_inside(name)
    found = look(lambda looks: looks.compare(name))
    show([_row(each) for each in found], _COLUMNS, output)
    for line in _advice(name, found):
        err.print(line, highlight=False, soft_wrap=True)
    if not all(each.same for each in found):
        raise typer.Exit(1)


@command(app, "etcd remove-member alpha 8e9e05c52164694d")
def remove_member(
    name: Name,
    member: Annotated[str, typer.Argument(metavar="ID", help="The member's id in hexadecimal, as etcdctl prints it.")],
    yes: Yes = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Remove an etcd member that belongs to no replica.

    It never removes the member of a replica, and nothing unless the remaining voters are a healthy quorum.
    """
    go_inside(name)
    removal = call(lambda face: face.etcd.plan_member_removal(name, member))
    left = f"{removal.healthy} of the {removal.voters} voters that are left are healthy"
    tell = out if output.for_people else err
    tell.print(f"{removal.description} belongs to no replica of plane {name}; {left}", highlight=False, soft_wrap=True)
    confirm(f"remove member {removal.member:x} from the etcd of plane {name}?", yes=yes)
    call(lambda face: face.etcd.remove_member(removal))
    result = ChangeResult(resource="member", name=f"{removal.member:x}", plane=name, action="remove", changed=True)
    done(result, output, f"member {removal.member:x} is removed")


@command(app, "etcd disarm alpha")
def disarm(name: Name, yes: Yes = False, output: OutputOption = Output.TABLE) -> None:
    """Disarm the alarms of etcd whose cause is gone.

    CORRUPT needs members with the same data, or replicas with different data that are to be replaced.
    NOSPACE needs free space on all members. The members are compared first.
    """
    go_inside(name)
    disarming = call(lambda face: face.etcd.plan_disarming(name))
    if not disarming.alarms:
        done(changed(name, "disarm", news=False), output, f"no alarm is on in the etcd of plane {name}")
        return
    for each in disarming.kept:
        err.print(each, highlight=False, soft_wrap=True)
    alarms = " and ".join(disarming.descriptions)
    confirm(f"turn off {alarms} of plane {name}?", yes=yes)
    call(lambda face: face.etcd.disarm(disarming))
    done(changed(name, "disarm"), output, f"turned off {alarms} of plane {name}")


@command(app, "etcd disable-auth alpha", name="disable-auth")
def disable_auth(name: Name, yes: Yes = False, output: OutputOption = Output.TABLE) -> None:
    """Disable the authentication of etcd, which locks out apiservers and quarterdeck.

    The users and roles in etcd stay.
    """
    go_inside(name)
    confirm(f"disable authentication in the etcd of plane {name}?", yes=yes)
    call(lambda face: face.etcd.disable_authentication(name))
    text = f"authentication is off in the etcd of plane {name}: its apiservers serve again within a minute"
    done(changed(name, "disable-auth"), output, text)


def _row(found: MemberHash) -> MemberHashRow:
    return MemberHashRow(
        cluster=found.cluster,
        replica=found.replica,
        revision=found.revision,
        hash=f"{found.hash:08x}" if found.hash is not None else None,
        same=found.same,
    )


def _advice(name: str, found: tuple[MemberHash, ...]) -> list[str]:
    """What to do about members that differ."""
    advice = []
    for cluster in dict.fromkeys(each.cluster for each in found):
        mine = [each for each in found if each.cluster == cluster]
        differ = [each.replica for each in mine if each.same is False]
        advice += [
            f"{each} of {cluster} has other data than most members: exchange it with"
            f" 'quarterdeck replica replace {name} {each}'"
            for each in differ
        ]
        if len({each.hash for each in mine if each.hash is not None}) > 1 and not differ:
            advice.append(
                f"members of {cluster} differ, and no majority has the same: keep all volumes as they are, and find out"
                " whose data is right before anything is changed"
            )
    return advice
