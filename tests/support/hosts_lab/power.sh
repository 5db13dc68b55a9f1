#!/bin/sh
# Runs one machine until it is halted or killed; start it in a mount namespace of its own.
#   power.sh NAME UUID FOLDER BASE NETWORK UNIFIED GROUPS ARGUMENT...
# FOLDER has what is its own, BASE is the image, NETWORK a descriptor of its network namespace, UNIFIED 1 or 0 (see
# HostsLab), GROUPS the folders of its control groups, with a space between; the rest are further arguments for nspawn.
set -eu
name=$1 uuid=$2 folder=$3 base=$4 network=$5 unified=$6 groups=$7
shift 7
for each in $groups; do echo $$ > "$each/power/cgroup.procs"; done

cd "$folder"
mount -t tmpfs -o mode=0755 tmpfs /run  # what nspawn leaves there
mount -t overlay -o "lowerdir=$base,upperdir=upper,workdir=work" overlay root

boot() {  # in a process of its own
  for each in $groups; do sh -c 'echo $PPID' > "$each/machine/cgroup.procs"; done
  export SYSTEMD_NSPAWN_API_VFS_WRITABLE=network SYSTEMD_NSPAWN_UNIFIED_HIERARCHY="$unified"
  exec systemd-nspawn --quiet --boot --machine="$name" --hostname="$name" --uuid="$uuid" --directory=root \
    --register=no --keep-unit --network-namespace-path="/proc/$$/fd/$network" --capability=CAP_NET_ADMIN \
    --link-journal=no --resolv-conf=off --timezone=off --bind="$folder/disk:/var/lib" "$@" \
    < /dev/null >> console.log 2>&1
}

again=133  # what nspawn ends with when the machine is to be booted again
code=$again
while [ "$code" = "$again" ]; do
  code=0
  (boot "$@") || code=$?
done
exit "$code"
