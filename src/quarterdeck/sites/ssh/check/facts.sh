# shellcheck shell=bash
# Prints the facts of a host, in lines of words separated by tabs. It changes nothing: the file that it writes to measure
# the disk is removed. CLASS=FOLDER...: the folders for volumes ("": below quarterdeck's own folder).
say() { local IFS=$'\t'; printf '%s\n' "$*"; }

say bash "$BASH_VERSION"
say systemd "$(systemctl --version 2> /dev/null | head -n 1)" "$([ -d /run/systemd/system ] && echo runs)"
say architecture "$(uname -m)" "$(uname -r)"
say cgroups "$(stat -f -c %T /sys/fs/cgroup 2> /dev/null)"
say owner "$(cat /var/lib/quarterdeck/owner 2> /dev/null)"
say units "$(systemctl list-units --no-legend --plain 'quarterdeck-*.service' 2> /dev/null | wc -l)"
while read -r key value _; do case $key in MemTotal: | MemAvailable:) say memory "$key" "$value" ;; esac; done < /proc/meminfo

for program in flock find gzip head journalctl mktemp mv setpriv sha256sum stat systemctl systemd-run \
  systemd-socket-activate systemd-sysusers tar timeout unshare; do
  command -v "$program" > /dev/null || say missing "$program"
done

[ ! -x /usr/sbin/keepalived ] ||
  say keepalived "$(/usr/sbin/keepalived --version 2>&1 < /dev/null | sed -n '1s/^Keepalived v\([0-9.]*\).*/\1/p')"
command -v ip > /dev/null && say ip yes

for table in tcp tcp6 udp udp6; do
  [ ! -e "/proc/net/$table" ] || while read -r line; do
    case $line in *' 0A '* | *' 07 '*) say listening "${table%6}" "$line" ;; esac
  done < "/proc/net/$table"
done

for process in /proc/[0-9]*; do
  read -r name 2> /dev/null < "$process/comm" || continue
  case $name in
    etcd | kubelet | kube-apiserver | kube-controller | kube-scheduler | cloud-controlle)
      grep -q quarterdeck- "$process/cgroup" 2> /dev/null || say process "$name" "${process##*/}" ;;
  esac
done

for each; do
  class=${each%%=*} folder=${each#*=} there=yes
  if [ -n "$folder" ]; then
    [ -d "$folder" ] || there=no
  else
    folder=/var/lib/quarterdeck
    while [ ! -d "$folder" ]; do folder=${folder%/*}; done
  fi
  if [ $there = no ]; then say class "$class" "$folder" no; continue; fi
  read -r blocks size < <(stat -f -c '%a %S' "$folder")
  say class "$class" "$folder" yes "$((blocks * size))"
  if ! file=$(mktemp "$folder/.quarterdeck-check.XXXXXX" 2>&1); then
    # shellcheck disable=SC2034 # the function "mounted" of trial.sh, which is part of the same script, reads it
    FOLDER=$folder
    [ "$(id -u)" = 0 ] || file=$(mounted write)
    [ -z "$file" ] || say unwritable "$class" "${file//[$'\n\t']/ }"
    continue
  fi
  trap 'rm -f "$file"' EXIT
  times=()
  if ! words=$(dd if=/dev/zero of="$file" bs=1M count=1 conv=fsync 2>&1); then
    say unwritable "$class" "${words//[$'\n\t']/ }"
  else
    for ((at = 0; at < 100; at++)); do  # like appends to the log of etcd: small and synchronous
      times+=("$(dd if=/dev/zero of="$file" bs=2300 count=1 seek="$at" conv=notrunc oflag=dsync 2>&1 |
        sed -n 's/.*copied, \([0-9.e-]*\) s.*/\1/p')")
    done
    say sync "$class" ${times[@]+"${times[@]}"}
  fi
  rm -f "$file"
done
say clock "${EPOCHREALTIME:-$(date +%s.%N)}"
