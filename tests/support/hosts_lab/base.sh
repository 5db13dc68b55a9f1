#!/bin/sh
# Makes a machine for tests of a fresh Debian, whose root folder is $1.
set -eu
cd "$1"

# What every machine must have for itself, or brings along only because it was built on some host.
: > etc/machine-id
rm -f etc/hostname etc/resolv.conf var/lib/dbus/machine-id etc/ssh/ssh_host_*
rm -rf usr/share/doc/* usr/share/man/* usr/share/locale/* usr/share/info/* var/cache/apt/* var/cache/debconf/* \
  var/lib/apt/lists/* var/lib/dpkg/info var/lib/dpkg/*-old  # each machine has var/lib for itself, and installs nothing
find var/log -type f -delete

# No console to log in at, and nothing that wakes up by itself.
chroot . systemctl --quiet mask apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer \
  e2scrub_reap.service fstrim.timer console-getty.service getty@.service
chroot . systemctl --quiet disable keepalived.service
chroot . systemctl --quiet enable ssh.service

# Who may log in: root; deck, who may become root; plain, who may not.
for user in deck plain; do
  chroot . useradd --create-home --shell /bin/bash --password '*' "$user"
done
echo 'deck ALL=(ALL:ALL) NOPASSWD: ALL' > etc/sudoers.d/deck
chmod 0440 etc/sudoers.d/deck
cat > etc/ssh/sshd_config.d/lab.conf <<'END'
HostKey /etc/ssh/ssh_host_ed25519_key
AuthorizedKeysFile .ssh/authorized_keys /etc/ssh/lab_keys
PasswordAuthentication no
END
