unpack() {  # unpacks the body of a request into a new folder: sets NEW
  NEW=$(mktemp -d "$LIB/tmp/XXXXXX") || full
  trap 'rm -rf "$NEW"' EXIT
  tar -xpf "$BODY" -C "$NEW" --no-same-owner || full
  [ -z "$(find "$NEW" ! -type f ! -type d -print -quit)" ] || fail $INVALID "there is more than files in it"
}

make_unit_folder() {  # $1: unit, $2: its machine, which identifies it until it has a record
  require_name "$1"; require_name "$2"
  mkdir -p "$UNITS/$1/files" || full
  chmod 711 "$UNITS/$1"
  [ -e "$UNITS/$1/machine" ] || put "$UNITS/$1/machine" 600 <<< "$2"
  [ -e "$UNITS/$1/created" ] || date +%s.%6N > "$UNITS/$1/created" || full
}

put_files() {  # $1: unit, $2: a folder: replaces the files of the unit by those in it. On a full disk it replaces none
  [ -d "$2" ] || return 0
  local folder=$UNITS/$1/files path account=''
  ! record_of "$1" || account=$R_ACCOUNT
  while IFS= read -r -d '' path; do plain_folder "$folder" "$path" "$account"; done < <(find "$2" -mindepth 1 -type d -printf '/%P\0')
  [ -z "$account" ] || find "$2" -type f -exec chown "$account:$account" {} +
  find "$2" -type f -exec sync {} + || full
  while IFS= read -r -d '' path; do mv -fT "$2/$path" "$folder/$path" || full; done < <(find "$2" -type f -printf '%P\0')
  find "$folder" -type d -exec sync {} +
  changed_by_us "$1"
}

plain_folder() {  # $1: a folder, $2: a path below it, $3: the owner of its files: makes the path, and refuses links in it
  local at=$1 part
  require_path "$2"
  for part in ${2//\// }; do
    at+=/$part
    [ ! -L "$at" ] || fail $INVALID "$at is a link"
    [ -d "$at" ] || mkdir "$at" || full
  done
  [ -z "$3" ] || { chown "root:$3" "$at"; chmod 1770 "$at"; }
}

keep_record() {  # $1: unit; NEW has record, spec.json, exec, env: they are valid from its next start on
  local exec
  read_record "$NEW/record" || fail $INVALID "the unit has no record"
  check_record "$1"
  exec=$(< "$NEW/exec")
  [[ $exec == /* && $exec != *$'\n'* ]] || fail $INVALID "a unit's program is an absolute path, in one line"
  ! is_vrrp "$1" || [ "$exec" = "$SELF vrrp $1" ] || fail $INVALID "$1 is the distribution's program, as it is started here"
  unit_text "$1" "$exec" "$NEW/env" > "$NEW/unit"
  if [ ! -e "$SYSTEMD/quarterdeck-$1.service" ]; then put "$SYSTEMD/quarterdeck-$1.service" 644 < "$NEW/unit"
  elif ! cmp -s "$NEW/unit" "$SYSTEMD/quarterdeck-$1.service"; then
    put "$SYSTEMD/quarterdeck-$1.service" 644 < "$NEW/unit"
    systemctl daemon-reload || fail $UNAVAILABLE "systemd did not read its units again"
  fi
  (cd "$NEW" && chmod 600 env spec.json exec record && sync env spec.json exec record &&
    mv -ft "$UNITS/$1" env spec.json exec record) || full
  put "$UNITS/$1/seal" 600 < <(seal "$1")
  rm -f "$RUN/units/$1/stamp"
  changed_by_us "$1"
}

stray_variables() {  # $1: the file with a unit's variables: prints the other names that systemd would add. A unit gets none of them
  local name
  { printf '%s\n' {http,https,all,no,ftp}_proxy {HTTP,HTTPS,ALL,NO,FTP}_PROXY; systemctl show-environment; } 2> /dev/null |
    sort -u | while IFS='=' read -r name _; do
      case $name in PATH | LANG | LANGUAGE | LC_* | TZ) continue ;; esac
      [[ ! $name =~ ^[A-Za-z_][A-Za-z0-9_]*$ ]] || grep -q "^$name=" "$1" || printf ' %s' "$name"
    done
}

unit_text() {  # $1: unit whose record was read, $2: its program with its arguments, as systemd wants them written, $3: its variables
  local each after=''
  for each in ${R_AFTER[@]+"${R_AFTER[@]}"}; do after+=" quarterdeck-$each.service"; done
  cat << END
$WRITTEN
[Unit]
Description=quarterdeck: $1
Wants=network-online.target
After=network-online.target local-fs.target time-sync.target$after
StartLimitIntervalSec=0

[Service]
Type=exec
User=$R_ACCOUNT
Group=$R_ACCOUNT
WorkingDirectory=$UNITS/$1/files
EnvironmentFile=$UNITS/$1/env
UnsetEnvironment=$(stray_variables "$3")
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
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX AF_NETLINK$(! is_vrrp "$1" || echo ' AF_PACKET')
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallFilter=~@privileged @resources
SystemCallErrorNumber=EPERM
END
  if is_vrrp "$1"; then
    printf 'CapabilityBoundingSet=CAP_NET_ADMIN CAP_NET_RAW\nAmbientCapabilities=CAP_NET_ADMIN CAP_NET_RAW\n'
  elif [ "$R_LOW" = yes ]; then
    printf 'CapabilityBoundingSet=CAP_NET_BIND_SERVICE\nAmbientCapabilities=CAP_NET_BIND_SERVICE\n'
  else
    printf 'CapabilityBoundingSet=\nAmbientCapabilities=\nPrivateUsers=yes\n'
  fi
  printf '\n[Install]\nWantedBy=multi-user.target\n'
}

want() {  # starts it at each boot
  [ -L "$WANTS/quarterdeck-$1.service" ] || { mkdir -p "$WANTS" && ln -sfT "$SYSTEMD/quarterdeck-$1.service" "$WANTS/quarterdeck-$1.service"; } || full
}

want_no_longer() { rm -f "$WANTS/quarterdeck-$1.service"; }

active_state() { systemctl show --value -p ActiveState "quarterdeck-$1.service"; }

ask_start() {  # UNIT fresh|again; with record, spec.json, exec, env and files
  local run=$RUN/units/$1 digest='' before='' now='' exec
  require_name "$1"
  unpack
  locked; admit
  [ "$1" != $VRRP ] || locked "unit-$1"  # all planes share this unit
  ! record_of "$1" || digest=$R_DIGEST
  [ ! -e "$UNITS/$1/exec" ] || before=$(< "$UNITS/$1/exec")
  now=$(active_state "$1")
  exec=$(< "$NEW/exec")
  require_executable "${exec%% *}"
  read_record "$NEW/record" || fail $INVALID "the unit has no record"
  make_unit_folder "$1" "$R_MACHINE"
  if is_at_it "$1" "$now" "$2"; then
    keep_record "$1"
    want "$1"
    return
  fi
  if [ "$now" != inactive ] && [ "$now" != failed ]; then
    want_no_longer "$1"
    systemctl stop "quarterdeck-$1.service"
  fi
  keep_record "$1"
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

is_at_it() {  # $1: unit, $2: its state, $3: fresh|again: whether it runs as wanted, or systemd retries it as wanted
  [ -n "$digest" ] && grep -qxF "digest $digest" "$NEW/record" && [ -L "$WANTS/quarterdeck-$1.service" ] || return 1
  case $2 in
    active | reloading) return 0 ;;
    # After a refused start a unit is "deactivating" for a moment, before systemd waits for the next start.
    activating | deactivating) [ ! -e "$run/refused" ] || [ "$3" != fresh ] || return 1; [ "$before" = "$(< "$NEW/exec")" ] ;;
    *) return 1 ;;
  esac
}

ask_keep() {  # UNIT; with record, spec.json, exec, env, which are valid from its next start on. It keeps running
  require_name "$1"
  unpack
  locked; admit
  [ -e "$UNITS/$1/record" ] || return 0
  keep_record "$1"
}

ask_spec() {  # UNIT: prints its stored specification; nothing where there is no such unit
  require_name "$1"
  [ ! -e "$UNITS/$1/spec.json" ] || cat "$UNITS/$1/spec.json"
}

ask_reload() {  # UNIT; with record, spec.json, exec, env and files. The record is written last
  local program why=''
  require_name "$1"
  unpack
  locked; admit
  [ "$1" != $VRRP ] || locked "unit-$1"
  record_of "$1" && [ "$(active_state "$1")" = active ] || fail $CONFLICT "its running unit has another specification"
  program=$R_PROGRAM
  grep -qxF "program $program" "$NEW/record" || fail $CONFLICT "its running unit has another specification"
  put_files "$1" "$NEW/files"
  cp "$UNITS/$1/exec" "$NEW/exec"
  keep_record "$1"
  ! is_vrrp "$1" || why=$(take_routing "$1")
  [ -z "$why" ] || fail $PRECONDITION "$why"
}

ask_stop() {  # UNIT term|kill: returns when its process is gone
  require_name "$1"
  locked; admit
  [ -e "$UNITS/$1/record" ] || { unlocked; return 0; }
  want_no_longer "$1"
  rm -f "$RUN/units/$1/fresh"
  if [ "$2" = kill ]; then systemctl kill -s KILL "quarterdeck-$1.service" 2> /dev/null; fi
  systemctl stop --no-block "quarterdeck-$1.service"
  unlocked
  systemctl stop "quarterdeck-$1.service"
}

ask_priority() {  # UNIT WEIGHT
  require_name "$1"; require_number "$2"
  [ "$(active_state "$1")" != active ] || systemctl set-property --runtime "quarterdeck-$1.service" "CPUWeight=$2"
}

ask_hold() {  # UNIT SECONDS: pauses its process; the timer that resumes it is started before that
  local pid timer
  require_name "$1"
  [[ $2 =~ ^[0-9]{1,3}(\.[0-9]{1,6})?$ ]] || fail $INVALID "$2 seconds"
  locked; admit
  pid=$(main_pid "$1")
  [ "${pid:-0}" != 0 ] || return 0
  timer=quarterdeck-let-go-$1-$pid
  systemctl stop "$timer.timer" 2> /dev/null
  systemd-run --quiet --collect --unit="$timer" --on-active="$2" --timer-property=AccuracySec=1ms \
    "$SELF" let-go "$1" "$pid" || fail $UNAVAILABLE "it cannot be paused: systemd cannot start the timer that would resume it"
  kill -STOP "$pid"
}

ask_let_go() {  # UNIT: allowed with any fencing token; from then on lower tokens are refused
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

ask_files() {  # MACHINE; the body has a folder for each unit, whose files replace those of the unit
  local folder unit
  unpack
  locked; admit
  for folder in "$NEW"/*/; do
    [ -d "$folder" ] || continue
    unit=${folder%/}; unit=${unit##*/}
    make_unit_folder "$unit" "$1"
    put_files "$unit" "${folder%/}"
  done
}

ask_remove_files() {  # the body has lines: UNIT, and the path of a file below its folder
  local unit path
  locked; admit
  while read -r unit path; do
    require_name "$unit"; require_path "/$path"
    [ ! -d "$UNITS/$unit/files" ] || [ -n "$(find "$UNITS/$unit/files/${path%/*}" -type l -prune 2> /dev/null)" ] ||
      rm -f "$UNITS/$unit/files/$path"
    changed_by_us "$unit"
  done < "$BODY"
}

SPAWN_FAILED=641257651c1b4ec9a8624d7a40a9e1e7  # message id of systemd: it could not execute the program of a unit

ask_logs() {  # UNIT LINES: prints its output since it was created, and why systemd could not execute its program
  local created=0
  require_name "$1"; require_number "$2"
  [ -e "$UNITS/$1/created" ] && [ "$2" != 0 ] || return 0
  read -r created < "$UNITS/$1/created"
  # In reverse: together with --since, -n would otherwise take the first lines.
  journalctl -q --no-pager -r -o cat -n "$2" --since "@$created" "_SYSTEMD_UNIT=quarterdeck-$1.service" _TRANSPORT=stdout + \
    "UNIT=quarterdeck-$1.service" MESSAGE_ID=$SPAWN_FAILED | tac
}
