#!/bin/bash -p
# quarterdeck's part of a host: what its manager may have done here, and nothing else. It runs as root and takes from its
# caller names, paths and text, each of which it checks: whoever may call "host serve" can run programs as the users
# below, in folders of quarterdeck's own, and is not root. It needs bash, coreutils, util-linux, tar and systemd.
#
#   host serve DIGEST OWNER   answers requests on its standard input until that ends (see sites/ssh/wire.py)
#   host starting UNIT        systemd asks before it starts a unit: is its data there?
#   host ended UNIT           systemd tells that a unit's process has ended
#   host let-go UNIT PID      a timer has a process go on that was held
#   host allow PATH...        lets volumes be kept below a path, or an edge have an address; whoever may only "serve"
#                             may not do that
#   host edge-works, host edge-busy ADDRESS   keepalived asks, as its own user, how the load balancers here do
set -u -o pipefail
umask 077
export LC_ALL=C PATH=/usr/sbin:/usr/bin:/sbin:/bin

PROTOCOL=1
SELF=/usr/local/lib/quarterdeck/host
LIB=/var/lib/quarterdeck RUN=/run/quarterdeck ETC=/etc/quarterdeck SYSTEMD=/etc/systemd/system
UNITS=$LIB/units
WANTS=$SYSTEMD/multi-user.target.wants
ACCOUNTS="quarterdeck-etcd quarterdeck-api quarterdeck-edge quarterdeck-vrrp"
# The one unit that may change the host's network runs the distribution's program by a file that is checked, line by line.
VRRP=keepalived VRRP_BINARY=/usr/sbin/keepalived
VRRP_PROGRAM="$VRRP_BINARY --dont-fork --log-console --vrrp --use-file=$RUN/keepalived.conf"
VRRP_PROGRAM+=" --pid=/tmp/keepalived.pid --vrrp_pid=/tmp/vrrp.pid"
IPV4='[0-9]{1,3}(\.[0-9]{1,3}){3}'
VRRP_LINE="|(global_defs|vrrp_(script|instance) [a-z0-9_]+| +(unicast_peer|virtual_ipaddress|track_script)) [{]| *[}]"
VRRP_LINE+="| +(script_user root|enable_script_security|vrrp_version 3|vrrp_check_unicast_src|state BACKUP|interface @INTERFACE@)"
VRRP_LINE+="| +(vrrp_garp_master_refresh|interval|timeout|fall|rise|priority|virtual_router_id) [0-9]{1,3}"
VRRP_LINE+="| +weight -?[0-9]{1,3}| +advert_int [0-9.]{1,4}| +(works|busy_[0-9]+)"
VRRP_LINE+="| +unicast_src_ip $IPV4| +$IPV4 min_ttl 255 max_ttl 255| +$IPV4/32"
VRRP_LINE+="| +script \"$SELF edge-(works|busy $IPV4)\""
OUTSIDE="/usr/bin/nsenter --target=1 --mount --"  # of what a unit sees of the disk
SILENCE=20  # seconds without a word from the caller, who says something every 5

# How a request ended: what the caller makes of each stands in wire.py.
LATE=10 FENCED=11 CONFLICT=12 NOT_FOUND=13 UNAVAILABLE=14 PRECONDITION=15 INVALID=16

fail() { printf '%s' "$2" >&2; exit "$1"; }

require_name() { [[ $1 =~ ^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$ ]] || fail $INVALID "'$1' is not a name"; }

require_path() {
  [[ $1 =~ ^(/[A-Za-z0-9._+-]+)+$ && ! $1 =~ /\.\.?(/|$) ]] || fail $INVALID "$1 is not an absolute path of plain names"
}

require_number() { [[ $1 =~ ^[0-9]{1,15}$ ]] || fail $INVALID "$1 is not a number"; }

uptime_now() { read -r UPTIME _ < /proc/uptime; }

locked() {  # one change of a plane's after the other, or of what $1 names
  exec {LOCK}>> "$LIB/locks/${1:-plane$PLANE}"
  flock -w 20 "$LOCK" || fail $UNAVAILABLE "another change of this host has been under way for 20 s"
}

unlocked() { exec {LOCK}>&-; }

put() {  # $1: path, $2: mode; content on stdin: there as a whole, or not at all
  local new
  new=$(mktemp "${1%/*}/.new.XXXXXX") || full
  { cat > "$new" && chmod "$2" "$new" && sync "$new" && mv -fT "$new" "$1"; } || { rm -f "$new"; full; }
}

full() { fail $UNAVAILABLE "its disk could not be written: $(df --output=pcent "$LIB" | tail -n 1 | tr -d ' ') of it is used"; }

admit() {  # under the lock: who comes with an older token than somebody else did before is refused
  [ "$PLANE" != - ] || return 0
  local kept=0 file=$LIB/fences/$PLANE
  [ ! -e "$file" ] || read -r kept < "$file"
  [ "$TOKEN" -ge "$kept" ] || fail $FENCED "a driver of plane $PLANE with token $kept has been here, not $TOKEN"
  [ "$TOKEN" -eq "$kept" ] || put "$file" 600 <<< "$TOKEN"
}

read_record() {  # $1: file; sets R_* from what it says. Fails where there is none
  R_MACHINE='' R_ACCOUNT='' R_DIGEST='' R_PROGRAM='' R_NEEDS='' R_WEIGHT='' R_STOP='' R_PAUSE='' R_LOW=''
  R_OWNS=() R_FILES=()
  [ -e "$1" ] || return 1
  local key value
  while read -r key value; do
    case $key in
      machine) R_MACHINE=$value ;; account) R_ACCOUNT=$value ;; digest) R_DIGEST=$value ;; program) R_PROGRAM=$value ;;
      needs) R_NEEDS=$value ;; weight) R_WEIGHT=$value ;; stop) R_STOP=$value ;; pause) R_PAUSE=$value ;;
      low-ports) R_LOW=$value ;; owns) R_OWNS+=("$value") ;; file) R_FILES+=("$value") ;;
    esac
  done < "$1" 2> /dev/null
}

record_of() { read_record "$UNITS/$1/record"; }

check_record() {  # $1: unit. What a caller wrote there is what a record may say
  local each
  require_name "$R_MACHINE"
  [[ " $ACCOUNTS " == *" $R_ACCOUNT "* ]] || fail $INVALID "'$R_ACCOUNT' is no user of quarterdeck's"
  if [ "$R_ACCOUNT" = quarterdeck-vrrp ] || [ "$1" = $VRRP ]; then
    [ "$R_ACCOUNT $1" = "quarterdeck-vrrp $VRRP" ] && [ -z "$R_NEEDS$R_LOW" ] && [ ${#R_OWNS[@]} -eq 0 ] ||
      fail $INVALID "there is one unit of user quarterdeck-vrrp: $VRRP"
  fi
  [[ $R_DIGEST =~ ^[0-9a-f]{8,64}$ && $R_PROGRAM =~ ^[0-9a-f]{64}$ ]] || fail $INVALID "a unit without a digest"
  [[ $R_STOP =~ ^[0-9.]{1,12}$ && $R_PAUSE =~ ^[0-9.]{1,12}$ && $R_WEIGHT =~ ^[0-9]{1,5}$ ]] || fail $INVALID "a unit's times"
  if [ -n "$R_NEEDS" ]; then
    require_path "${R_NEEDS%/*}"
    [[ ${R_NEEDS##*/} =~ ^[A-Za-z0-9._*-]+$ ]] || fail $INVALID "$R_NEEDS names no files"
    in_a_volume "$R_NEEDS"
  fi
  for each in ${R_OWNS[@]+"${R_OWNS[@]}"}; do require_path "$each"; in_a_volume "$each"; done
  for each in ${R_FILES[@]+"${R_FILES[@]}"}; do
    [[ $each =~ ^[0-9a-f]{64}\ $UNITS/$1/files/[^[:cntrl:]]+$ ]] || fail $INVALID "$each is no file of unit $1"
  done
}

in_a_volume() {  # a unit is given nothing but what is below a folder for volumes
  local each
  [[ $1 != "$LIB"/volumes/*/* ]] || return 0
  while read -r each; do [[ $1 != "$each"/* ]] || return 0; done < <(allowed_paths)
  fail $INVALID "$1 is in no folder for volumes of this host"
}

allowed_paths() { [ ! -e "$ETC/paths" ] || cat "$ETC/paths"; }

allowed_addresses() { [ ! -e "$ETC/addresses" ] || cat "$ETC/addresses"; }

take_routing() {  # what keepalived goes by, which nobody can change while it does; says what is wrong with it
  local file=$UNITS/$VRRP/files/keepalived.conf line address own='' interface found=''
  [ -x "$VRRP_BINARY" ] || { printf 'there is no keepalived on this host: install it from the distribution'; return 0; }
  [ -f "$file" ] && [ ! -L "$file" ] || { printf 'it has no configuration'; return 0; }
  while IFS= read -r line; do
    [[ $line =~ ^($VRRP_LINE)$ ]] || { printf 'its configuration must not say: %s' "${line:0:60}"; return 0; }
    case $line in *unicast_src_ip*) own=${line##* } ;; esac
    if [[ $line =~ ^\ +($IPV4)/32$ ]]; then
      address=${BASH_REMATCH[1]}
      allowed_addresses | grep -qxF -- "$address" || { printf '%s is not allowed to be here' "$address"; return 0; }
    fi
    found+=$line$'\n'
  done < <(cat "$file")
  interface=$(ip -o -4 addr show to "$own/32" 2> /dev/null | while read -r _ name _; do printf '%s' "$name"; break; done)
  [[ $interface =~ ^[A-Za-z0-9][A-Za-z0-9._-]*$ ]] || { printf 'no interface of this host has the address %s' "$own"; return 0; }
  put "$RUN/keepalived.conf" 644 <<< "${found//@INTERFACE@/$interface}"
}

there() {  # $1: a path whose last part may have a *: whether such a file is there; says "?" where that cannot be known
  local folder=${1%/*} found
  [ -d "$folder" ] || return 1
  found=$(find "$folder" -mindepth 1 -maxdepth 1 -name "${1##*/}" -print -quit 2> /dev/null) || { printf '?'; return 1; }
  [ -n "$found" ]
}

away_disk() {  # $1: a path in a volume: whether its disk is not there, so that nothing is known of what is on it
  local note path
  for note in "$LIB"/classes/*; do
    [ -e "$note" ] || continue
    read -r path < "$note"
    if [[ $1 == "$path"/* ]] && [ ! -e "$path/.quarterdeck" ]; then return 0; fi
  done
  return 1
}

refusal() {  # $1: unit, $2: fresh|again; says why it must not be started
  [ -n "$R_NEEDS" ] || return 0
  local unknown
  if unknown=$(there "$R_NEEDS"); then note_data "$1"; return 0; fi
  if [ -n "$unknown" ] || away_disk "$R_NEEDS"; then printf 'it is not known whether its data %s is there' "$R_NEEDS"
  elif [ -e "$UNITS/$1/had-data" ]; then printf 'its data %s was there and is gone: put it back' "$R_NEEDS"
  elif [ "$2" != fresh ]; then printf 'it has no data yet at %s, and nobody asked it to begin without' "$R_NEEDS"
  fi
}

note_data() {  # for good, and outside of the volume: that may be another disk, and may be gone
  [ -e "$UNITS/$1/had-data" ] || : > "$UNITS/$1/had-data"
}

give() {  # $1: account, the rest: folders: all that is there is its own, but no link's target
  local account=$1; shift
  [ $# -eq 0 ] || find "$@" ! \( -user "$account" -group "$account" \) -exec chown -h "$account:$account" {} +
}

seat_files() {  # $1: unit, $2: account: the files are its own, the folders are root's: it takes no name from us
  local folder=$UNITS/$1/files
  find "$folder" -type d ! \( -user root -group "$2" -perm 1770 \) -exec chown "root:$2" {} + -exec chmod 1770 {} +
  find "$folder" -type f ! \( -user "$2" -group "$2" \) -exec chown "$2:$2" {} +
}

main_pid() { systemctl show --value -p MainPID "quarterdeck-$1.service"; }

# What systemd calls

call_starting() {
  require_name "$1"
  record_of "$1" || { echo "cannot start: it has no record" >&2; exit 1; }
  local why fresh=again run=$RUN/units/$1 starts=0
  mkdir -p "$run"
  [ ! -e "$run/fresh" ] || fresh=fresh
  why=$(refusal "$1" "$fresh")
  [ "$1" != $VRRP ] || why=$(take_routing) || why="its configuration cannot be put in its place"
  rm -f "$run/fresh"
  if [ -n "$why" ]; then
    printf '%s' "$why" > "$run/refused"
    echo "cannot start: $why" >&2
    exit 1
  fi
  give "$R_ACCOUNT" ${R_OWNS[@]+"${R_OWNS[@]}"} || exit 1
  seat_files "$1" "$R_ACCOUNT" || exit 1
  rm -f "$run/refused"
  [ ! -e "$run/starts" ] || read -r starts < "$run/starts"
  echo $((starts + 1)) > "$run/starts"
}

call_ended() {
  require_name "$1"
  record_of "$1" || exit 0
  local run=$RUN/units/$1
  if [ -n "$R_NEEDS" ] && there "$R_NEEDS" > /dev/null; then note_data "$1"; fi
  [ -d "$run" ] && [ ! -e "$run/refused" ] || exit 0
  case ${EXIT_CODE:-} in
    exited) echo "$EXIT_STATUS" > "$run/exit" ;;
    killed | dumped) echo "-$(kill -l "$EXIT_STATUS")" > "$run/exit" ;;
  esac
}

call_let_go() {
  require_name "$1"; require_number "$2"
  [ "$(main_pid "$1")" != "$2" ] || kill -CONT "$2"
}

call_allow() {
  local each
  mkdir -p "$ETC" && chmod 755 "$ETC"
  for each in "$@"; do
    if [[ $each =~ ^$IPV4$ ]]; then
      allowed_addresses | grep -qxF -- "$each" || put "$ETC/addresses" 644 < <(allowed_addresses; echo "$each")
      continue
    fi
    require_path "$each"
    [[ ! $each =~ ^/(etc|usr|bin|sbin|lib|lib64|boot|dev|proc|sys|run|root|home)(/|$) ]] && [ "$each" != /var ] &&
      [[ ! $LIB/ == "$each"/* ]] || fail $INVALID "$each is no folder for volumes"
    allowed_paths | grep -qxF -- "$each" || put "$ETC/paths" 644 < <(allowed_paths; echo "$each")
  done
}

# What keepalived asks, as the user that it runs as

call_edge_works() {  # whether each load balancer here that addresses lead to leads somewhere
  local file port
  for file in "$UNITS/$VRRP"/files/live/*; do
    [ -f "$file" ] || continue
    read -r port < "$file" && require_number "$port"
    leads_somewhere "$port" || { echo "the load balancer of plane ${file##*/} leads nowhere" >&2; exit 1; }
  done
}

leads_somewhere() {  # $1: the port at which Envoy says how it does
  local to line
  exec {to}<> "/dev/tcp/127.0.0.1/$1" || return 1
  printf 'GET /stats?filter=^cluster.apiservers.membership_healthy$ HTTP/1.1\r\nHost: edge\r\nConnection: close\r\n\r\n' >&"$to"
  while IFS= read -r -t 1 line <&"$to"; do
    if [[ $line =~ ^cluster\.apiservers\.membership_healthy:\ [1-9] ]]; then exec {to}>&-; return 0; fi
  done
  exec {to}>&-
  return 1
}

call_edge_busy() {  # ADDRESS: whether it is here, and a client is connected to it
  local bytes end line local_end state
  [[ $1 =~ ^$IPV4$ ]] || exit 1
  grep -A 1 -F -- "|-- $1" /proc/net/fib_trie | grep -q '/32 host LOCAL' || exit 1
  IFS=. read -r -a bytes <<< "$1"
  printf -v end '%02X%02X%02X%02X' "${bytes[3]}" "${bytes[2]}" "${bytes[1]}" "${bytes[0]}"
  while read -r _ local_end _ state line; do
    [ "${local_end%:*} $state" != "$end 01" ] || exit 0
  done < /proc/net/tcp
  exit 1
}

# Requests: the words after the verb are arguments, what came with it is in the file BODY, the answer is what is said.

ask_ping() { :; }

ask_look() {  # BELOW CLASS=PATH...: all units, and all volumes with what is in their folder BELOW ("-": themselves)
  look_units
  look_volumes "$@"
}

look_units() {
  local name names=() services=() files=() states=() pids=() since=() block=0 key value
  for name in "$UNITS"/*/record; do
    [ -e "$name" ] || continue
    name=${name%/record}; name=${name##*/}
    names+=("$name"); services+=("quarterdeck-$name.service")
  done
  [ ${#names[@]} -gt 0 ] || return 0
  while IFS='=' read -r key value; do  # a block of lines for each, in this order
    case $key in
      '') block=$((block + 1)) ;; ActiveState) states[block]=$value ;; MainPID) pids[block]=$value ;;
      ExecMainStartTimestampMonotonic) since[block]=$value ;;
    esac
  done < <(systemctl show -p ActiveState,MainPID,ExecMainStartTimestampMonotonic "${services[@]}")
  [ ${#states[@]} -eq ${#names[@]} ] || fail $UNAVAILABLE "systemd does not say what its units do"
  local -A stamp=()
  for name in "${names[@]}"; do
    record_of "$name" || continue
    files+=("$UNITS/$name/record" ${R_FILES[@]+"${R_FILES[@]#* }"})
  done
  while IFS='|' read -r key value; do stamp[$key]=$value; done < <(stat -c '%n|%i %z %s' "${files[@]}" 2> /dev/null)
  uptime_now
  local up=$((${UPTIME%.*} * 1000000)) at
  for at in "${!names[@]}"; do
    look_unit "${names[at]}" "${states[at]}" "${pids[at]:-0}" "${since[at]:-0}" "$up"
  done
}

look_unit() {  # NAME ACTIVE-STATE PID SINCE NOW (microseconds); uses the stamps of files
  local name=$1 active=$2 pid=$3 run=$RUN/units/$1 starts=0 exit='' why='' state altered=no seen='' before='' each
  record_of "$name" || return 0  # removed meanwhile
  if [ -n "$R_NEEDS" ] && [ ! -e "$UNITS/$name/had-data" ] && there "$R_NEEDS" > /dev/null; then note_data "$name"; fi
  [ ! -e "$run/starts" ] || read -r starts < "$run/starts"
  [ ! -e "$run/exit" ] || read -r exit < "$run/exit"
  case $active in
    active | reloading)
      state=running
      # one that has just ended has failed until it has settled
      [ "$starts" -lt 2 ] || [ $(($5 - $4)) -ge 1000000 ] || state=failed ;;
    deactivating) state=stopping ;;
    activating) if [ -L "$WANTS/quarterdeck-$name.service" ]; then state=failed; else state=stopping; fi ;;
    *) state=stopped ;;
  esac
  if [ $state = failed ] && [ -e "$run/refused" ]; then read -r why < "$run/refused" || true; fi
  [ "$pid" != 0 ] && [ $state != stopped ] || pid=''
  for each in "$UNITS/$name/record" ${R_FILES[@]+"${R_FILES[@]#* }"}; do seen+="${stamp[$each]:-gone};"; done
  [ ! -e "$run/stamp" ] || read -r before < "$run/stamp"
  if [ "$before" != "$seen" ]; then
    if is_as_written "$name"; then mkdir -p "$run"; printf '%s\n' "$seen" > "$run/stamp"; else altered=yes; fi
  fi
  printf 'unit\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$R_MACHINE" "$name" "$state" "$R_DIGEST" "$pid" "$exit" \
    "$((starts > 0 ? starts - 1 : 0))" "$altered" "$why"
}

is_as_written() {  # $1: unit whose record was read: nobody else has changed its files, its record, or how it is started
  local each
  [ "$(seal "$1")" = "$(cat "$UNITS/$1/seal" 2> /dev/null)" ] || return 1
  for each in ${R_FILES[@]+"${R_FILES[@]}"}; do
    [ "$(sha256sum < "${each#* }" 2> /dev/null)" = "${each%% *}  -" ] || return 1
  done
}

seal() { (cd "$UNITS/$1" && cat record spec.json env "$SYSTEMD/quarterdeck-$1.service" 2> /dev/null | sha256sum); }

class_root() {  # $1: CLASS=PATH: sets CLASS and ROOT
  CLASS=${1%%=*} ROOT=${1#*=}
  require_name "$CLASS"
  [ -n "$ROOT" ] || { ROOT=$LIB/volumes/$CLASS; return 0; }
  require_path "$ROOT"
  allowed_paths | grep -qxF -- "$ROOT" || fail $PRECONDITION "not-allowed $ROOT"
}

is_away() {  # a disk that is not mounted is not lost data, but not known
  [ "$ROOT" != "$LIB/volumes/$CLASS" ] && [ -e "$LIB/classes/$CLASS" ] && [ ! -e "$ROOT/.quarterdeck" ]
}

require_there() { ! is_away || fail $UNAVAILABLE "the disk of storage class $CLASS is not mounted at $ROOT"; }

look_volumes() {
  local below=$1 each volume name arriving entry; shift
  [ "$below" = - ] || require_path "/$below"
  shopt -s nullglob dotglob
  for each in "$@"; do
    class_root "$each"
    if is_away; then printf 'away\t%s\n' "$CLASS"; continue; fi
    for volume in "$ROOT"/*/; do
      volume=${volume%/}; name=${volume##*/} arriving=no
      case $name in .arriving-*) name=${name#.arriving-} arriving=yes ;; .* | lost+found) continue ;; esac
      printf 'volume\t%s\t%s\t%s' "$CLASS" "$name" $arriving
      [ "$below" = - ] || volume+=/$below
      for entry in "$volume"/*; do printf '\t%s' "${entry##*/}"; done
      printf '\n'
    done
  done
  shopt -u nullglob dotglob
}

unpack() {  # what came with a request, as a folder of its own: sets NEW
  NEW=$(mktemp -d "$LIB/tmp/XXXXXX") || full
  trap 'rm -rf "$NEW"' EXIT
  tar -xpf "$BODY" -C "$NEW" --no-same-owner || full
  [ -z "$(find "$NEW" ! -type f ! -type d -print -quit)" ] || fail $INVALID "there is more than files in it"
}

make_unit_folder() {
  require_name "$1"
  mkdir -p "$UNITS/$1/files" || full
  chmod 711 "$UNITS/$1"
  [ -e "$UNITS/$1/created" ] || date +%s.%6N > "$UNITS/$1/created" || full
}

put_files() {  # $1: unit, $2: a folder: each file in it takes the place of the unit's own. None does if the disk is full
  [ -d "$2" ] || return 0
  local folder=$UNITS/$1/files path account=''
  ! record_of "$1" || account=$R_ACCOUNT
  while IFS= read -r -d '' path; do plain_folder "$folder" "$path" "$account"; done < <(find "$2" -mindepth 1 -type d -printf '/%P\0')
  [ -z "$account" ] || find "$2" -type f -exec chown "$account:$account" {} +
  find "$2" -type f -exec sync {} + || full
  while IFS= read -r -d '' path; do mv -fT "$2/$path" "$folder/$path" || full; done < <(find "$2" -type f -printf '%P\0')
  find "$folder" -type d -exec sync {} +
}

plain_folder() {  # $1: a folder, $2: a path below it, $3: whose files are in it: is made, and has no link in it
  local at=$1 part
  require_path "$2"
  for part in ${2//\// }; do
    at+=/$part
    [ ! -L "$at" ] || fail $INVALID "$at is a link"
    [ -d "$at" ] || mkdir "$at" || full
  done
  [ -z "$3" ] || { chown "root:$3" "$at"; chmod 1770 "$at"; }
}

keep_record() {  # $1: unit; NEW has record, spec.json, exec, env: what is to be so from its next start on
  local exec
  read_record "$NEW/record" || fail $INVALID "a unit without a record"
  check_record "$1"
  exec=$(< "$NEW/exec")
  [[ $exec == /* && $exec != *$'\n'* ]] || fail $INVALID "a unit's program is an absolute path, in one line"
  [ "$1" != $VRRP ] || [ "$exec" = "$VRRP_PROGRAM" ] || fail $INVALID "$1 is the distribution's program, as it is started here"
  unit_text "$1" "$exec" > "$NEW/unit"
  put "$UNITS/$1/env" 600 < "$NEW/env"
  put "$UNITS/$1/spec.json" 600 < "$NEW/spec.json"
  if ! cmp -s "$NEW/unit" "$SYSTEMD/quarterdeck-$1.service"; then
    put "$SYSTEMD/quarterdeck-$1.service" 644 < "$NEW/unit"
    systemctl daemon-reload || fail $UNAVAILABLE "systemd did not read its units again"
  fi
  put "$UNITS/$1/record" 600 < "$NEW/record"
  put "$UNITS/$1/seal" 600 < <(seal "$1")
  rm -f "$RUN/units/$1/stamp"
}

unit_text() {  # $1: unit whose record was read, $2: its program with its arguments, as systemd wants them written
  local each
  cat << END
# Written by quarterdeck, which finds and mends what is changed here by hand.
[Unit]
Description=quarterdeck: $1
Wants=network-online.target
After=network-online.target local-fs.target time-sync.target
StartLimitIntervalSec=0

[Service]
Type=exec
User=$R_ACCOUNT
Group=$R_ACCOUNT
EnvironmentFile=$UNITS/$1/env
ExecStartPre=+$OUTSIDE $SELF starting $1
ExecStart=$2
ExecStopPost=+$OUTSIDE $SELF ended $1
Restart=always
RestartSec=$R_PAUSE
TimeoutStartSec=60
TimeoutStopSec=$R_STOP
KillMode=mixed
Slice=quarterdeck.slice
CPUWeight=$R_WEIGHT
LimitNOFILE=1048576
LimitCORE=0
TasksMax=16384
OOMScoreAdjust=-500
UMask=0077
ProtectSystem=strict
TemporaryFileSystem=$UNITS:ro,mode=755 $LIB/volumes:ro,mode=755
BindPaths=$UNITS/$1/files
END
  for each in ${R_OWNS[@]+"${R_OWNS[@]}"}; do printf 'BindPaths=-%s\n' "$each"; done
  cat << END
InaccessiblePaths=-$ETC -/root -/boot
ProtectHome=yes
PrivateTmp=yes
PrivateDevices=yes
PrivateIPC=yes
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectProc=invisible
RemoveIPC=yes
KeyringMode=private
LockPersonality=yes
NoNewPrivileges=yes
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX AF_NETLINK$([ "$1" != $VRRP ] || echo ' AF_PACKET')
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallFilter=~@privileged @resources
SystemCallErrorNumber=EPERM
END
  if [ "$1" = $VRRP ]; then
    printf 'CapabilityBoundingSet=CAP_NET_ADMIN CAP_NET_RAW\nAmbientCapabilities=CAP_NET_ADMIN CAP_NET_RAW\n'
  elif [ "$R_LOW" = yes ]; then
    printf 'CapabilityBoundingSet=CAP_NET_BIND_SERVICE\nAmbientCapabilities=CAP_NET_BIND_SERVICE\n'
  else
    printf 'CapabilityBoundingSet=\nAmbientCapabilities=\nPrivateUsers=yes\n'
  fi
  printf '\n[Install]\nWantedBy=multi-user.target\n'
}

want() {  # to run, now and after each boot
  [ -L "$WANTS/quarterdeck-$1.service" ] || { mkdir -p "$WANTS" && ln -sfT "$SYSTEMD/quarterdeck-$1.service" "$WANTS/quarterdeck-$1.service"; } || full
}

want_no_longer() { rm -f "$WANTS/quarterdeck-$1.service"; }

active_state() { systemctl show --value -p ActiveState "quarterdeck-$1.service"; }

ask_start() {  # UNIT fresh|again; with record, spec.json, exec, env and files
  local run=$RUN/units/$1 digest='' before='' now=''
  require_name "$1"
  unpack
  locked; admit
  [ "$1" != $VRRP ] || locked "unit-$1"  # which is every plane's
  ! record_of "$1" || digest=$R_DIGEST
  [ ! -e "$UNITS/$1/exec" ] || before=$(< "$UNITS/$1/exec")
  now=$(active_state "$1")
  make_unit_folder "$1"
  if is_at_it "$1" "$now" "$2"; then
    keep_record "$1"
    put "$UNITS/$1/exec" 600 < "$NEW/exec"
    want "$1"
    return
  fi
  if [ "$now" != inactive ] && [ "$now" != failed ]; then
    want_no_longer "$1"
    systemctl stop "quarterdeck-$1.service"
  fi
  keep_record "$1"
  put "$UNITS/$1/exec" 600 < "$NEW/exec"
  put_files "$1" "$NEW/files"
  seat_files "$1" "$R_ACCOUNT"
  rm -rf "$run"; mkdir -p "$run"
  [ "$2" != fresh ] || : > "$run/fresh"
  want "$1"
  systemctl reset-failed "quarterdeck-$1.service" 2> /dev/null
  systemctl start "quarterdeck-$1.service" 2> /dev/null && return
  [ ! -e "$run/refused" ] || fail $UNAVAILABLE "$(< "$run/refused")"
  fail $UNAVAILABLE "systemd could not start it: $(journalctl -q -o cat -n 1 -u "quarterdeck-$1.service" -p warning)"
}

is_at_it() {  # $1: unit, $2: its state, $3: fresh|again: whether it runs as wanted, or is tried again as it is
  [ -n "$digest" ] && grep -qxF "digest $digest" "$NEW/record" && [ -L "$WANTS/quarterdeck-$1.service" ] || return 1
  case $2 in
    active | reloading) return 0 ;;
    activating) [ ! -e "$run/refused" ] || [ "$3" != fresh ] || return 1; [ "$before" = "$(< "$NEW/exec")" ] ;;
    *) return 1 ;;
  esac
}

ask_keep() {  # UNIT; with record, spec.json, exec, env: what it is from its next start on. What runs goes on running
  require_name "$1"
  unpack
  locked; admit
  [ -e "$UNITS/$1/record" ] || return 0
  keep_record "$1"
  put "$UNITS/$1/exec" 600 < "$NEW/exec"
}

ask_spec() {  # UNIT: what its caller kept with it; nothing where there is no such unit
  require_name "$1"
  [ ! -e "$UNITS/$1/spec.json" ] || cat "$UNITS/$1/spec.json"
}

ask_reload() {  # UNIT; with record, spec.json, exec, env and files. The record is written last
  local program
  require_name "$1"
  unpack
  locked; admit
  record_of "$1" && [ "$(active_state "$1")" = active ] || fail $CONFLICT "it does not run as the one that is given"
  program=$R_PROGRAM
  grep -qxF "program $program" "$NEW/record" || fail $CONFLICT "it does not run as the one that is given"
  put_files "$1" "$NEW/files"
  cp "$UNITS/$1/exec" "$NEW/exec"
  keep_record "$1"
}

ask_stop() {  # UNIT term|kill: returns when its process is gone
  require_name "$1"
  locked; admit
  [ -e "$UNITS/$1/record" ] || return 0
  want_no_longer "$1"
  if [ "$2" = kill ]; then systemctl kill -s KILL "quarterdeck-$1.service" 2> /dev/null; fi
  systemctl stop --no-block "quarterdeck-$1.service"
  unlocked
  systemctl stop "quarterdeck-$1.service"
}

ask_priority() {  # UNIT WEIGHT
  require_name "$1"; require_number "$2"
  [ "$(active_state "$1")" != active ] || systemctl set-property --runtime "quarterdeck-$1.service" "CPUWeight=$2"
}

ask_hold() {  # UNIT SECONDS: where it stands; the timer that lets it go is there before it is held
  local pid timer
  require_name "$1"
  [[ $2 =~ ^[0-9]{1,3}(\.[0-9]{1,6})?$ ]] || fail $INVALID "$2 seconds"
  locked; admit
  pid=$(main_pid "$1")
  [ "${pid:-0}" != 0 ] || return 0
  timer=quarterdeck-let-go-$1-$pid
  systemctl stop "$timer.timer" 2> /dev/null
  systemd-run --quiet --collect --unit="$timer" --on-active="$2" --timer-property=AccuracySec=1ms \
    "$SELF" let-go "$1" "$pid" || fail $UNAVAILABLE "it cannot be held: systemd makes no timer that would let it go"
  kill -STOP "$pid"
}

ask_let_go() {  # UNIT: whoever asks; from then on an older token is refused
  local pid
  require_name "$1"
  pid=$(main_pid "$1")
  if [ "${pid:-0}" != 0 ]; then
    kill -CONT "$pid"
    systemctl stop "quarterdeck-let-go-$1-$pid.timer" 2> /dev/null
  fi
  locked
  (admit) 2> /dev/null || true
}

ask_remove() {  # UNIT
  require_name "$1"
  ask_stop "$1" term
  locked; admit
  remove_unit "$1"
}

remove_unit() {
  want_no_longer "$1"
  systemctl stop "quarterdeck-$1.service" 2> /dev/null
  rm -f "$SYSTEMD/quarterdeck-$1.service" && systemctl daemon-reload
  systemctl reset-failed "quarterdeck-$1.service" 2> /dev/null
  rm -rf "$RUN/units/$1"
  [ ! -e "$UNITS/$1" ] || { mv -T "$UNITS/$1" "$LIB/tmp/gone-$1-$$" && rm -rf "$LIB/tmp/gone-$1-$$"; }
}

ask_files() {  # with a folder for each unit: its files are put where it watches them
  local folder unit
  unpack
  locked; admit
  for folder in "$NEW"/*/; do
    [ -d "$folder" ] || continue
    unit=${folder%/}; unit=${unit##*/}
    make_unit_folder "$unit"
    put_files "$unit" "${folder%/}"
  done
}

ask_remove_files() {  # with lines: UNIT and the file's path below the unit's folder
  local unit path
  locked; admit
  while read -r unit path; do
    require_name "$unit"; require_path "/$path"
    [ ! -d "$UNITS/$unit/files" ] || [ -n "$(find "$UNITS/$unit/files/${path%/*}" -type l -prune 2> /dev/null)" ] ||
      rm -f "$UNITS/$unit/files/$path"
  done < "$BODY"
}

ask_logs() {  # UNIT LINES: what it wrote since there is such a unit
  local created=0
  require_name "$1"; require_number "$2"
  [ -e "$UNITS/$1/created" ] && [ "$2" != 0 ] || return 0
  read -r created < "$UNITS/$1/created"
  journalctl -q --no-pager -o cat -n "$2" --since "@$created" "_SYSTEMD_UNIT=quarterdeck-$1.service" _TRANSPORT=stdout
}

ask_create() {  # CLASS=PATH NAME; prints what ask_volumes does
  locked
  class_root "$1"; require_name "$2"
  [ "$ROOT" = "$LIB/volumes/$CLASS" ] || { [ -d "$ROOT" ] || fail $UNAVAILABLE "there is no folder $ROOT: make it, or mount its disk"; }
  require_there
  mkdir -p "$ROOT" && chmod 711 "$ROOT" || full
  if [ "$ROOT" != "$LIB/volumes/$CLASS" ] && [ ! -e "$LIB/classes/$CLASS" ]; then
    : > "$ROOT/.quarterdeck" || full
    put "$LIB/classes/$CLASS" 644 <<< "$ROOT"
  fi
  [ -d "$ROOT/$2" ] || { mkdir "$ROOT/$2" && chown quarterdeck-etcd:quarterdeck-etcd "$ROOT/$2"; } || full
  measure_volume "$2"
}

measure_volume() {  # NAME CLASS PATH, bytes on the disk, when a file was last written
  local blocks changed total=0 newest=''
  while read -r blocks changed; do
    total=$((total + blocks * 512))
    if [ -z "$newest" ] || [ "${changed%.*}" -gt "${newest%.*}" ]; then newest=$changed; fi
  done < <(find "$ROOT/$1" ! -type d -printf '%b %T@\n' 2> /dev/null)
  printf '%s\t%s\t%s\t%s\t%s\n' "$1" "$CLASS" "$ROOT/$1" "$total" "$newest"
}

ask_volumes() {  # CLASS=PATH...
  local each volume
  shopt -s nullglob
  for each in "$@"; do
    class_root "$each"
    require_there
    for volume in "$ROOT"/*/; do
      volume=${volume%/}; volume=${volume##*/}
      [ "$volume" = lost+found ] || measure_volume "$volume"
    done
  done
}

find_volume() {  # NAME CLASS=PATH...: sets FOUND; what cannot be looked at is not known
  local name=$1 each away=''; shift
  FOUND=''
  require_name "$name"
  for each in "$@"; do
    class_root "$each"
    if is_away; then away=$CLASS; continue; fi
    [ ! -d "$ROOT/$name" ] || { FOUND=$ROOT/$name; return 0; }
  done
  [ -z "$away" ] || fail $UNAVAILABLE "the disk of storage class $away is not mounted"
}

ask_entries() {  # NAME BELOW CLASS=PATH...
  local name=$1 below=$2; shift 2
  find_volume "$name" "$@"
  [ -n "$FOUND" ] || fail $NOT_FOUND "there is no volume $name"
  [ "$below" = - ] || { require_path "/$below"; FOUND+=/$below; }
  [ ! -d "$FOUND" ] || find "$FOUND" -mindepth 1 -maxdepth 1 -printf '%f\n'
}

ask_delete() {  # NAME CLASS=PATH...: it is gone at once, even if deleting is cut short
  local name=$1 each; shift
  locked; admit
  find_volume "$name" "$@"
  [ -z "$FOUND" ] || mv -T "$FOUND" "${FOUND%/*}/.deleted-$name-$$-$RANDOM" || full
  unlocked
  for each in "$@"; do
    class_root "$each"
    is_away || delete_slowly "$ROOT"
  done
}

delete_slowly() {  # where the disk is told of freed blocks, whoever syncs waits for what was freed at once
  find "$1" -mindepth 1 -maxdepth 1 -name '.deleted-*' -print0 | while IFS= read -r -d '' gone; do
    find "$gone" -type f -size +4M -print0 | while IFS= read -r -d '' file; do
      local size
      size=$(stat -c %s "$file")
      while [ "$size" -gt 4194304 ]; do size=$((size - 4194304)); truncate -s "$size" "$file" || break; done
    done
    rm -rf "$gone"
  done
}

ask_free() {  # CLASS=PATH: bytes that are free there, and bytes that its volumes take
  local used=0 row blocks size
  class_root "$1"
  require_there
  [ -d "$ROOT" ] || ROOT=$LIB
  read -r blocks size < <(stat -f -c '%a %S' "$ROOT")
  [ "$ROOT" = "$LIB" ] || while read -r row; do used=$((used + row * 512)); done < <(find "$ROOT" ! -type d -printf '%b\n' 2> /dev/null)
  echo "$((blocks * size)) $used"
}

ask_ledger() { [ ! -e "$LIB/ledger.json" ] || cat "$LIB/ledger.json"; }

ask_keep_ledger() {  # SHA-256 of the ledger that the caller has changed ("-": there was none); with the new one
  local now=-
  locked; admit; locked ledger
  [ ! -e "$LIB/ledger.json" ] || now=$(sha256sum < "$LIB/ledger.json")
  [ "${now%% *}" = "$1" ] || fail $CONFLICT "somebody else has changed who sits where"
  put "$LIB/ledger.json" 600 < "$BODY"
}

ask_admit() { locked; admit; }

ask_listening() { cat /proc/net/tcp; [ ! -e /proc/net/tcp6 ] || cat /proc/net/tcp6; }

ask_memory() { local key value; while read -r key value _; do [ "$key" != MemAvailable: ] || echo "$value"; done < /proc/meminfo; }

ask_clock() { echo "$EPOCHREALTIME"; }

ask_sync() {  # CLASS=PATH TIMES: seconds for each of some small writes that are to survive a loss of power
  local at
  class_root "$1"; require_number "$2"
  require_there
  [ -d "$ROOT" ] || ROOT=$LIB
  NEW=$(mktemp "$ROOT/.sync.XXXXXX") || full
  trap 'rm -f "$NEW"' EXIT
  for ((at = 0; at < $2; at++)); do
    dd if=/dev/zero of="$NEW" bs=2300 count=1 seek="$at" conv=notrunc oflag=dsync 2>&1 | sed -n 's/.*copied, \([0-9.e-]*\) s.*/\1/p'
  done
}

ask_round_trip() {  # ADDRESS PORT: microseconds for each of a few connections
  local at
  [[ $1 =~ ^[0-9a-fA-F.:]+$ ]] || fail $INVALID "$1 is no address"; require_number "$2"
  for at in 1 2 3; do
    # shellcheck disable=SC2016 # that bash is to expand it
    timeout 3 bash -c 'at=${EPOCHREALTIME/./}; exec 3<> "/dev/tcp/$0/$1" || exit 1; echo $((${EPOCHREALTIME/./} - at))' \
      "$1" "$2" 2> /dev/null || fail $UNAVAILABLE "nothing answers at $1:$2"
  done
}

ask_job() {  # DEADLINE MOST; with the number of its variables, these, and its words, each ended by a zero
  local words=() pid watch code
  [[ $1 =~ ^[0-9]{1,6}(\.[0-9]{1,3})?$ ]] || fail $INVALID "$1 seconds"; require_number "$2"
  mapfile -d '' -t words < "$BODY"
  {
    # what it changes its user in must not be the first process of its namespace, which dies with its parent only as root
    # shellcheck disable=SC2016 # that bash is to expand it
    setpriv --pdeathsig KILL unshare --pid --fork --kill-child --mount-proc -- bash -c '"$@"; exit $?' job \
      setpriv --reuid=quarterdeck-etcd --regid=quarterdeck-etcd --clear-groups --no-new-privs --inh-caps=-all \
      --bounding-set=-all -- timeout -s KILL "$1" env -i "${words[@]}" 2>&1 &
    pid=$!
    echo "$pid" > "$SESSION/job-$ID"
    # it ends with the session, however that ends: nobody has its pipe open for writing then
    (read -r _ < "$SESSION/life"; kill -KILL "$pid") > /dev/null 2>&1 &
    watch=$!
    wait "$pid"
    code=$?
    kill "$watch" 2> /dev/null
    printf '%s' "$code" > "$SESSION/code-$ID"
  } | tail -c $(($2 + 1))
  rm -f "$SESSION/job-$ID"
  printf '\n%s' "$(< "$SESSION/code-$ID")"
  rm -f "$SESSION/code-$ID"
}

ask_cancel() {  # ID of a request for a job
  local pid
  require_number "$1"
  [ -e "$SESSION/job-$1" ] || return 0
  pid=$(< "$SESSION/job-$1")
  kill -KILL "$pid" 2> /dev/null
  while [ -e "/proc/$pid" ]; do sleep 0.01; done
}

ask_program() {  # SHA-256 NAME PACKED: whether it is there, or how many bytes of what PACKED is the digest of have come
  require_program "$1" "$2" "$3"
  local there=$LIB/programs/$1/$2 part=$LIB/programs/.part-$3
  if [ -x "$there" ]; then echo there; return; fi
  [ -e "$part" ] && stat -c %s "$part" || echo 0
}

require_program() { [[ $1 =~ ^[0-9a-f]{64}$ && $3 =~ ^[0-9a-f]{64}$ ]] || fail $INVALID "no digest"; require_name "$2"; }

ask_program_part() {  # SHA-256 NAME PACKED OFFSET; with the bytes from there on
  require_program "$1" "$2" "$3"; require_number "$4"
  local part=$LIB/programs/.part-$3 has=0
  locked
  [ ! -e "$part" ] || has=$(stat -c %s "$part")
  [ "$has" = "$4" ] || fail $CONFLICT "somebody else sends it as well: $has bytes have come"
  cat "$BODY" >> "$part" || { truncate -s "$4" "$part"; full; }
}

ask_program_whole() {  # SHA-256 NAME PACKED zstd|gzip: unpacks it, and has it be a program if it is the right one
  require_program "$1" "$2" "$3"
  local part=$LIB/programs/.part-$3 folder=$LIB/programs/$1 new
  [ ! -x "$folder/$2" ] || { rm -f "$part"; return 0; }
  [ "$(sha256sum < "$part")" = "$3  -" ] || { rm -f "$part"; fail $UNAVAILABLE "what came is not what was sent"; }
  mkdir -p "$folder" && chmod 755 "$folder"
  new=$(mktemp "$folder/.new.XXXXXX") || full
  case $4 in zstd) zstd -dcq < "$part" > "$new" ;; gzip) gzip -dc < "$part" > "$new" ;; esac || { rm -f "$new"; full; }
  [ "$(sha256sum < "$new")" = "$1  -" ] || { rm -f "$new" "$part"; fail $UNAVAILABLE "what came is not the program"; }
  { chmod 755 "$new" && sync "$new" && mv -fT "$new" "$folder/$2"; } || full
  rm -f "$part"
}

ask_about() {  # what a person wants to know of a host before anything is put on it
  local systemd
  systemd=$(systemctl --version | head -n 1)
  printf 'systemd\t%s\nstate\t%s\narchitecture\t%s\nkernel\t%s\ncpus\t%s\n' "$systemd" "$(systemctl is-system-running)" \
    "$(uname -m)" "$(uname -r)" "$(nproc)"
  printf 'memory\t%s\n' "$(ask_memory)"
  printf 'cgroups\t%s\n' "$(stat -f -c %T /sys/fs/cgroup)"
  printf 'zstd\t%s\nkeepalived\t%s\n' "$(command -v zstd)" "$(command -v keepalived)"
  printf 'disk\t%s\n' "$(stat -f -c '%a %S' "$LIB")"
}

ask_destroy() {  # MACHINES (with commas) CLASS=PATH...: all units of these, and all volumes of these classes
  local machines=$1 name each; shift
  [[ $machines =~ ^[A-Za-z0-9._,-]+$ ]] || fail $INVALID "$machines are no machines"
  locked
  for name in "$UNITS"/*/; do
    [ -d "$name" ] || continue
    name=${name%/}; name=${name##*/}
    record_of "$name"
    [ -n "$R_MACHINE" ] && [[ ,$machines, != *,$R_MACHINE,* ]] || remove_unit "$name"
  done
  for each in "$@"; do
    class_root "$each"
    require_there
    shopt -s nullglob dotglob
    for name in "$ROOT"/*/; do
      name=${name%/}
      [[ ${name##*/} == .deleted-* || ${name##*/} == lost+found ]] || mv -T "$name" "$ROOT/.deleted-$$-$RANDOM"
    done
    shopt -u nullglob dotglob
    [ ! -d "$ROOT" ] || delete_slowly "$ROOT"
    rm -f "$LIB/classes/$CLASS"
    [ "$ROOT" = "$LIB/volumes/$CLASS" ] || rm -f "$ROOT/.quarterdeck"
  done
  [ $# -eq 0 ] || rm -f "$LIB/ledger.json" "$LIB"/fences/*
}

# The session

prepare() {
  mkdir -p "$RUN" && chmod 755 "$RUN"
  mkdir -p "$LIB"/{units,volumes,programs,fences,classes,locks,tmp} || return 1
  chmod 755 "$LIB" "$LIB/programs" && chmod 711 "$UNITS" "$LIB/volumes"
  local each lines=()
  for each in $ACCOUNTS; do
    getent passwd "$each" > /dev/null || lines+=("u $each - \"quarterdeck\" /nonexistent")
  done
  [ ${#lines[@]} -eq 0 ] || printf '%s\n' "${lines[@]}" | systemd-sysusers - || return 1
  find "$LIB/tmp" -mindepth 1 -maxdepth 1 -mmin +60 -exec rm -rf {} +
}

answer() {  # ID EXPIRES VERB ARGUMENTS: carries a request out, and says how that went
  local out=$SESSION/out-$1 err=$SESSION/err-$1 code
  ID=$1 BODY=$SESSION/in-$1
  exec {LIFE_W}>&-
  exec {REPLIES_LOCK}>> "$SESSION/lock"
  (
    exec {REPLIES_LOCK}>&-
    uptime_now
    # a host that stood still must not do what was asked of it long ago
    [ "${UPTIME%.*}" -lt "$2" ] || fail $LATE "it comes too late"
    shift 2
    "ask_${1//-/_}" "${@:2}"
  ) > "$out" 2> "$err" < /dev/null
  code=$?
  [ $code = 0 ] || mv -f "$err" "$out"
  uptime_now
  flock "$REPLIES_LOCK"
  printf '%s %s %s %s\n' "$ID" $code "$(stat -c %s "$out")" "$UPTIME" >&"$REPLIES"
  cat "$out" >&"$REPLIES"
  rm -f "$out" "$err" "$BODY"
}

call_serve() {
  local digest size id expires words
  digest=$(sha256sum < "$SELF"); digest=${digest%% *}
  if [ "$digest" != "$1" ]; then echo "other $PROTOCOL $digest"; exit 0; fi
  require_name "$2"
  [ -d /run/systemd/system ] || { echo "no-systemd"; exit 0; }
  prepare || { echo "no-room $(df --output=pcent "$LIB" | tail -n 1 | tr -d ' ')"; exit 0; }
  if [ -e "$LIB/owner" ] && [ "$(< "$LIB/owner")" != "$2" ]; then echo "owned $(< "$LIB/owner")"; exit 0; fi
  SESSION=$(mktemp -d "$RUN/session.XXXXXX") || exit 1
  trap 'rm -rf "$SESSION"' EXIT
  mkfifo "$SESSION/life"
  exec {LIFE_W}<> "$SESSION/life"
  exec {REPLIES}>&1 > /dev/null
  uptime_now
  printf 'quarterdeck %s %s %s\n' "$PROTOCOL" "$UPTIME" "$(command -v zstd > /dev/null && echo zstd || echo gzip)" >&"$REPLIES"
  while read -r -t $SILENCE id expires PLANE TOKEN size words; do
    [[ $id =~ ^[0-9]+$ && $expires =~ ^[0-9]+$ && $size =~ ^[0-9]+$ && $TOKEN =~ ^[0-9]+$ && $words =~ ^[a-z][a-z-]*( |$) ]] || break
    [ "$PLANE" = - ] || (require_name "$PLANE") || break
    [ "$size" = 0 ] && : > "$SESSION/in-$id" || head -c "$size" > "$SESSION/in-$id"
    # shellcheck disable=SC2086 # they are words, and globs are off
    set -f; set -- $words; set +f
    [ "$(type -t "ask_${1//-/_}")" = function ] || break
    answer "$id" "$expires" "$@" &
  done
}

[ $# -gt 0 ] || fail $INVALID "host serve|starting|ended|let-go|allow|edge-works|edge-busy"
verb=$1; shift
case $verb in
  serve | starting | ended | let-go | allow | edge-works | edge-busy) "call_${verb//-/_}" "$@" ;;
  *) fail $INVALID "there is no $verb" ;;
esac
