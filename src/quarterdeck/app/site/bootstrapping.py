"""Setting up hosts for a user who may do there what quarterdeck does, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence

from quarterdeck.api.sites.hosts import SshLogin
from quarterdeck.drivers import ssh
from quarterdeck.errors import InvalidInput

#: How lines of public keys begin.
_KINDS = ("ssh-", "ecdsa-", "sk-ssh-", "sk-ecdsa-")


def bootstrap_script(*, user: str, keys: Sequence[str], paths: Sequence[str] = (), probe: bool = False) -> str:
    """What root is to run on a host, so that ``user`` can be logged in as with any of these public ``keys`` (lines, as
    files have them) and may do what quarterdeck does. ``paths``: where volumes may be besides its own folder.
    ``probe``: that user may make connections through the host's sshd as well, as clients of a probe from there do.

    Raises InvalidInput for what is no public key.
    """
    lines = [line.strip() for each in keys for line in each.splitlines() if line.strip()]
    if not lines or not all(line.startswith(_KINDS) and len(line.split()) > 1 for line in lines):
        raise InvalidInput(
            "making the script that sets up a host", "that is no public key", "name a file such as id.pub"
        )
    return ssh.bootstrap_script(user, lines, paths, probe=probe)


async def bootstrapped(login: SshLogin, address: str, script: str) -> str:
    """Run the script on a host, as a user who may; what it said. Raises Unavailable when the host cannot be reached,
    PreconditionFailed when that user may not.
    """
    return await ssh.bootstrapped(login, address, script)
