"""Setting up a host for a user with exactly the rights that quarterdeck needs."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import PurePosixPath

from quarterdeck.errors import PreconditionFailed
from quarterdeck.sites.ssh.connections import AS_ROOT, INSTALLED
from quarterdeck.sites.ssh.hosts import Login
from quarterdeck.sites.ssh.shells import HostLink, last_words

_DEADLINE = 60.0
_END = "END-OF-QUARTERDECK"

_SCRIPT = """\
#!/bin/sh
# Sets up this host for quarterdeck: run it as root, as often as you like. It makes a user who logs in by a key, and who
# may run one program as root, which checks what it is asked to do.
set -eu
LC_ALL=C; export LC_ALL
umask 022
user={user}
if ! getent passwd "$user" > /dev/null; then
  useradd --system --create-home --shell /bin/sh --user-group --password '*' "$user"
fi
home=$(getent passwd "$user" | cut -d: -f6)
group=$(id -gn "$user")

mkdir -p "$home/.ssh"
cat > "$home/.ssh/authorized_keys.new" << '{end}'
{keys}
{end}
chown -R "root:$group" "$home/.ssh"
chmod 750 "$home/.ssh"
chmod 640 "$home/.ssh/authorized_keys.new"
mv -f "$home/.ssh/authorized_keys.new" "$home/.ssh/authorized_keys"

mkdir -p {folder}
cat > {installed}.new << '{end}'
{script}
{end}
chown root:root {installed}.new
chmod 755 {installed}.new
mv -f {installed}.new {installed}

cat > /etc/sudoers.d/.quarterdeck.new << '{end}'
{sudoers}
{end}
chmod 440 /etc/sudoers.d/.quarterdeck.new
visudo -cqf /etc/sudoers.d/.quarterdeck.new
mv -f /etc/sudoers.d/.quarterdeck.new /etc/sudoers.d/quarterdeck
{allow}echo "user $user may be logged in as, and may run {installed} serve"
"""


def sudoers(user: str) -> str:
    """The rights of a user as root: one program, which gets all requests over its standard input."""
    return f"Defaults:{user} !requiretty\n{user} ALL=(root) NOPASSWD: {INSTALLED} serve *"


def bootstrap_script(
    *, user: str, keys: Sequence[str], script: str, paths: Sequence[str] = (), probe: bool = False
) -> str:
    """The script that root runs on a host. ``keys``: lines of authorized public keys, which can only run programs, and
    with ``probe`` make connections through sshd. ``script``: quarterdeck's part of a host. ``paths``: where volumes may
    be, besides its own folder.
    """
    assert _END not in script
    options = "restrict,port-forwarding" if probe else "restrict"
    return _SCRIPT.format(
        user=shlex.quote(user),
        keys="\n".join(f"{options} {each}" for each in keys),
        folder=PurePosixPath(INSTALLED).parent,
        installed=INSTALLED,
        script=script.rstrip("\n"),
        sudoers=sudoers(user),
        allow=f"{INSTALLED} allow {shlex.join(paths)}\n" if paths else "",
        end=_END,
    )


async def applied(login: Login, script: str) -> str:
    """Run it on a host, as a user with the rights; returns its output. Raises Unavailable, PreconditionFailed."""
    doing = f"setting up host {login.host}"
    link = await HostLink.made(login)
    try:
        done = await link.run(f"{AS_ROOT}exec $s sh -s", doing=doing, deadline=_DEADLINE, body=script.encode())
    finally:
        link.abort()
    if done.code != 0:
        seen = f"it ended with {done.code}{last_words(done.stderr, done.stdout)}"
        raise PreconditionFailed(doing, seen, "log in as root, or as a user who may run sudo without a password")
    return done.stdout.strip()
