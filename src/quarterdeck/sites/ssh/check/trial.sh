# shellcheck shell=bash
# Tries later actions on a host: it writes to the folders for programs, units and accounts, and executes what it wrote,
# also through systemd. It prints lines of words separated by tabs, and removes the files that it wrote.
say() { local IFS=$'\t'; printf '%s\n' "$*"; }

nearest() {  # $1: a folder that may not exist yet: sets FOLDER to its nearest existing parent
  FOLDER=$1
  while [ ! -d "$FOLDER" ]; do FOLDER=${FOLDER%/*}; FOLDER=${FOLDER:-/}; done
}

tried() {  # $1: write|execute: prints what failed in FOLDER
  local file words
  # shellcheck disable=SC2016 # the file contains it literally
  words=$({ file=$(mktemp "$FOLDER/.quarterdeck-check.XXXXXX") && printf '#!/bin/sh\necho well\n' > "$file"; } 2>&1; printf '\n%s' "$file")
  file=${words##*$'\n'} words=${words%$'\n'*}
  if [ -n "$file" ] && [ -z "$words" ] && [ "$1" = execute ]; then
    chmod 755 "$file"
    [ ! -e /sys/fs/selinux/enforce ] || chcon -t bin_t "$file" 2> /dev/null  # as for programs; the execution shows whether that suffices
    words=$("$file" 2>&1)
    if [ "$words" = well ] && [ -d /run/systemd/system ] && command -v systemd-run > /dev/null; then
      words=$(systemd-run --quiet --wait --pipe --collect "$file" 2>&1 < /dev/null) || words="systemd cannot execute it (exit code $?) $words"
    fi
    [ "$words" != well ] || words=''
    words=${words//"$file"/a file in $FOLDER}
    words=${words#*: line [0-9]*: }  # the position in this script
  fi
  [ -z "$file" ] || rm -f "$file"
  printf '%s' "${words//[$'\n\t']/ }"
}

mounted() {  # $1: write|execute: prints what the mount options of FOLDER forbid, for users that cannot try it
  local target options
  read -r target options < <(findmnt -n -o TARGET,OPTIONS -T "$FOLDER" 2> /dev/null)
  case $1,$options, in
    *,ro,*) printf '%s is mounted read-only' "$target" ;;
    execute,*,noexec,*) printf '%s is mounted noexec' "$target" ;;
  esac
}

while read -r how folder what; do
  nearest "$folder"
  if [ "$(id -u)" = 0 ]; then why=$(tried "$how"); else why=$(mounted "$how"); fi
  [ -z "$why" ] || say trial "$how" "$FOLDER" "$what" "$why"
done << 'END'
execute /usr/local/lib/quarterdeck its script
execute /var/lib/quarterdeck/programs programs
write /var/lib/quarterdeck/units settings
write /var/lib/quarterdeck/tmp settings
write /etc/systemd/system units
write /etc accounts
write /run/quarterdeck sessions
END

while IFS='=' read -r name _; do
  case $name in PATH | LANG | LANGUAGE | LC_* | TZ | '') ;; *) say environment "$name" ;; esac
done < <(systemctl show-environment 2> /dev/null)
[ ! -e /sys/fs/selinux/enforce ] || say selinux "$(cat /sys/fs/selinux/enforce)"

if [ "$(id -u)" = 0 ]; then
  [ -z "${INSTANCES:-}" ] || say instances "$(inotify_instances "$INSTANCES")"
  [ ! -d /run/systemd/system ] ||
    say open-files "$(systemd-run --quiet --wait --pipe --collect -p LimitNOFILE=1048576 /bin/sh -c 'ulimit -n' 2> /dev/null < /dev/null)"
fi
