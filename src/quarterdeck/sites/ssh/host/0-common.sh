#!/bin/bash -p
# quarterdeck's part of a host: the actions that its manager may take here, and nothing else. It runs as root, and checks
# each name, path and text from its caller: a user that may call "host serve" can run programs as the users below, in
# quarterdeck's own folders, and does not become root. It needs bash, coreutils, util-linux, tar and systemd.
#
#   host serve DIGEST OWNER... answers requests on its standard input until that ends (see sites/ssh/wire.py)
#   host starting UNIT        systemd calls it before a start: it checks that the data exists
#   host ended UNIT           systemd calls it after a unit's process has ended
#   host undo-fault           a timer calls it when the time of a fault is over
#   host let-go UNIT PID      a timer calls it to resume a paused process
#   host allow PATH...        allows volumes below a path, or an address for edges; callers of "serve" may not do that
#   host vrrp UNIT            runs keepalived in a unit, as its own user
set -u -o pipefail
umask 077
export LC_ALL=C PATH=/usr/sbin:/usr/bin:/sbin:/bin

PROTOCOL=1
SELF=/usr/local/lib/quarterdeck/host
LIB=/var/lib/quarterdeck RUN=/run/quarterdeck ETC=/etc/quarterdeck SYSTEMD=/etc/systemd/system
UNITS=$LIB/units
WANTS=$SYSTEMD/multi-user.target.wants
# The first line of each unit file: units of other programs may have names with our prefix.
WRITTEN="# Written by quarterdeck, which finds and mends what is changed here by hand."
ACCOUNTS="quarterdeck-etcd quarterdeck-api quarterdeck-edge quarterdeck-vrrp"
VRRP=keepalived
IPV4='[0-9]{1,3}(\.[0-9]{1,3}){3}'
OUTSIDE="/usr/bin/nsenter --target=1 --mount --"  # outside of the mount namespace of a unit
SILENCE=20  # seconds without a request; the caller sends one every 5

# The exit codes of requests; wire.py maps them to errors.
LATE=10 FENCED=11 CONFLICT=12 NOT_FOUND=13 UNAVAILABLE=14 PRECONDITION=15 INVALID=16

fail() { printf '%s' "$2" >&2; exit "$1"; }

require_name() { [[ $1 =~ ^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$ ]] || fail $INVALID "'$1' is not a name"; }

require_path() {
  [[ $1 =~ ^(/[A-Za-z0-9._+-]+)+$ && ! $1 =~ /\.\.?(/|$) ]] || fail $INVALID "$1 is not an absolute path of plain names"
}

require_number() { [[ $1 =~ ^[0-9]{1,15}$ ]] || fail $INVALID "$1 is not a number"; }

uptime_now() { read -r UPTIME _ < /proc/uptime; }

locked() {  # serializes the changes of a plane, or of the lock $1
  exec {LOCK}>> "$LIB/locks/${1:-plane$PLANE}"
  flock -w 20 "$LOCK" || fail $UNAVAILABLE "another change of this host has been in progress for 20 s"
}

unlocked() { exec {LOCK}>&-; }

put() {  # $1: path, $2: mode; content on stdin. Atomic
  local new
  new=$(mktemp "${1%/*}/.new.XXXXXX") || full
  { cat > "$new" && chmod "$2" "$new" && sync "$new" && mv -fT "$new" "$1"; } || { rm -f "$new"; full; }
}

full() {  # the failed command has printed its error; a full disk is named as the cause only where it is nearly full
  local used
  used=$(df --output=pcent "$LIB" | tail -n 1 | tr -d ' %')
  [ "${used:-0}" -ge 95 ] || fail $UNAVAILABLE "a file could not be written"
  fail $UNAVAILABLE "its disk could not be written: $used% of it is used"
}

why_not_executable() {  # $1: a file: prints why it cannot be executed; nothing where it can
  local target options
  [ -e "$1" ] || { printf 'the program %s does not exist' "$1"; return; }
  [ ! -x "$1" ] || return 0
  read -r target options < <(findmnt -n -o TARGET,OPTIONS -T "$1")
  case ,$options, in
    *,noexec,*) printf 'programs in %s cannot be executed: %s is mounted noexec' "${1%/*}" "$target" ;;
    *) printf 'the program %s is not executable: its mode is %s' "$1" "$(stat -c %A "$1")" ;;
  esac
}

require_executable() { local why; why=$(why_not_executable "$1"); [ -z "$why" ] || fail $PRECONDITION "$why"; }

label() {  # $1: a file that systemd executes: SELinux forbids that for the type of its folder
  # Where labels cannot be set (a mount with one context) none is needed; otherwise the start of the unit fails.
  [ ! -e /sys/fs/selinux/enforce ] || chcon -t bin_t "$1" 2> /dev/null || true
}

admit() {  # under the lock: refuses a fencing token that is lower than an earlier one
  [ "$PLANE" != - ] || return 0
  local kept=0 file=$LIB/fences/$PLANE
  [ ! -e "$file" ] || read -r kept < "$file"
  [ "$TOKEN" -ge "$kept" ] || fail $FENCED "a driver of plane $PLANE with token $kept has been here, not $TOKEN"
  [ "$TOKEN" -eq "$kept" ] || put "$file" 600 <<< "$TOKEN"
}

read_record() {  # $1: file; sets R_* from its lines. Fails where there is none
  R_MACHINE='' R_ACCOUNT='' R_DIGEST='' R_PROGRAM='' R_NEEDS='' R_WEIGHT='' R_STOP='' R_PAUSE='' R_LOW='' R_NOTE=''
  R_OWNS=() R_FILES=() R_AFTER=()
  [ -e "$1" ] || return 1
  local key value
  while read -r key value; do
    case $key in
      machine) R_MACHINE=$value ;; account) R_ACCOUNT=$value ;; digest) R_DIGEST=$value ;; program) R_PROGRAM=$value ;;
      needs) R_NEEDS=$value ;; weight) R_WEIGHT=$value ;; stop) R_STOP=$value ;; pause) R_PAUSE=$value ;;
      low-ports) R_LOW=$value ;; note) R_NOTE=$value ;; owns) R_OWNS+=("$value") ;; after) R_AFTER+=("$value") ;; file) R_FILES+=("$value") ;;
    esac
  done < "$1" 2> /dev/null
}

record_of() { read_record "$UNITS/$1/record"; }

check_record() {  # $1: unit. Checks a record that a caller wrote
  local each
  require_name "$R_MACHINE"
  [[ " $ACCOUNTS " == *" $R_ACCOUNT "* ]] || fail $INVALID "'$R_ACCOUNT' is no user of quarterdeck's"
  require_routing "$1"
  [[ $R_DIGEST =~ ^[0-9a-f]{8,64}$ && $R_PROGRAM =~ ^[0-9a-f]{64}$ ]] || fail $INVALID "the unit has no digest"
  [[ $R_NOTE =~ ^[A-Za-z0-9.,:/\ -]*$ ]] || fail $INVALID "the note is not a line of plain words"
  [[ $R_STOP =~ ^[0-9.]{1,12}$ && $R_PAUSE =~ ^[0-9.]{1,12}$ && $R_WEIGHT =~ ^[0-9]{1,5}$ ]] || fail $INVALID "a unit's times"
  if [ -n "$R_NEEDS" ]; then
    require_path "${R_NEEDS%/*}"
    [[ ${R_NEEDS##*/} =~ ^[A-Za-z0-9._*-]+$ ]] || fail $INVALID "$R_NEEDS names no files"
    in_a_volume "$R_NEEDS"
  fi
  for each in ${R_AFTER[@]+"${R_AFTER[@]}"}; do require_name "$each"; done
  for each in ${R_OWNS[@]+"${R_OWNS[@]}"}; do require_path "$each"; in_a_volume "$each"; done
  for each in ${R_FILES[@]+"${R_FILES[@]}"}; do
    [[ $each =~ ^[0-9a-f]{64}\ $UNITS/$1/files/[^[:cntrl:]]+$ ]] || fail $INVALID "$each is no file of unit $1"
  done
}

is_listed() {  # $1: a file of /etc/quarterdeck, $2: a line: whether the file has it. Each look calls this, so it starts no program
  local each
  [ -e "$ETC/$1" ] || return 1
  while read -r each; do [ "$each" != "$2" ] || return 0; done < "$ETC/$1"
  return 1
}

list() {  # $1: a file of /etc/quarterdeck, $2: the line to add
  is_listed "$1" "$2" || put "$ETC/$1" 644 < <([ ! -e "$ETC/$1" ] || cat "$ETC/$1"; echo "$2")
}

in_a_volume() {  # units get only paths below a folder for volumes
  local each
  [[ $1 != "$LIB"/volumes/*/* ]] || return 0
  [ ! -e "$ETC/paths" ] || while read -r each; do [[ $1 != "$each"/* ]] || return 0; done < "$ETC/paths"
  fail $INVALID "$1 is in no folder for volumes of this host"
}

there() {  # $1: a path whose last part may have a *: whether such a file exists; prints "?" where that is unknown
  local folder=${1%/*} found
  [ -d "$folder" ] || return 1
  found=$(find "$folder" -mindepth 1 -maxdepth 1 -name "${1##*/}" -print -quit 2> /dev/null) || { printf '?'; return 1; }
  [ -n "$found" ]
}

away_disk() {  # $1: a path in a volume: whether its disk is missing, so that its content is unknown
  local note path
  for note in "$LIB"/classes/*; do
    [ -e "$note" ] || continue
    read -r path < "$note"
    if [[ $1 == "$path"/* ]] && [ ! -e "$path/.quarterdeck" ]; then return 0; fi
  done
  return 1
}

refusal() {  # $1: unit, $2: fresh|again; prints why it must not be started
  local unknown each
  for each in ${R_NEEDS:+"$R_NEEDS"} ${R_OWNS[@]+"${R_OWNS[@]}"}; do
    if is_detached "$each"; then printf 'the volume with %s is not attached here' "$each"; return 0; fi
  done
  [ -n "$R_NEEDS" ] || return 0
  if unknown=$(there "$R_NEEDS"); then note_data "$1"; return 0; fi
  if [ -n "$unknown" ] || away_disk "$R_NEEDS"; then printf 'it is not known whether its data %s is there' "$R_NEEDS"
  elif [ -e "$UNITS/$1/had-data" ]; then printf 'its data %s existed and is missing: restore it' "$R_NEEDS"
  elif [ "$2" != fresh ]; then printf 'it has no data yet at %s, and was not started as new' "$R_NEEDS"
  fi
}

note_data() {  # permanently, and outside of the volume: its disk may go away
  [ -e "$UNITS/$1/had-data" ] || : > "$UNITS/$1/had-data"
}

give() {  # $1: account, the rest: folders: the account owns all files in them, but no target of a link
  local account=$1; shift
  # -execdir: otherwise an owner of a folder there could replace it by a link during the run.
  [ $# -eq 0 ] || find "$@" ! \( -user "$account" -group "$account" \) -execdir chown -h "$account:$account" {} +
}

seat_files() {  # $1: unit, $2: account: it owns the files; root owns the folders, so that the unit cannot replace our files
  local folder=$UNITS/$1/files
  find "$folder" -type d ! \( -user root -group "$2" -perm 1770 \) -execdir chown -h "root:$2" {} + -execdir chmod 1770 {} +
  find "$folder" -type f ! \( -user "$2" -group "$2" \) -execdir chown -h "$2:$2" {} +
}

main_pid() { systemctl show --value -p MainPID "quarterdeck-$1.service"; }
