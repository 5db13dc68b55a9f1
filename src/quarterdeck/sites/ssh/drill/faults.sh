# Makes faults for drills. It uses the functions of host/*.sh, and is on a host only during a fault. There is one fault at a
# time, and it is recorded before it is made. It is undone by request, when the session that made it ends, when its time
# is over, and by the first look after a boot. Callers hold the lock of faults, except those of ``suffering``.

TABLE=quarterdeck_fault

fault_of() {
  F_KIND='' F_UNIT='' F_UNTIL=0 F_BOOT='' F_VOLUME='' F_ASIDE=''
  [ -e "$FAULT/about" ] && read -r F_KIND F_UNIT F_UNTIL F_BOOT F_VOLUME F_ASIDE < "$FAULT/about"
}

boot_id() { local id; read -r id < /proc/sys/kernel/random/boot_id; printf '%s' "$id"; }

suffering() {  # $1: a request: prints why the host does not answer it during the present fault
  fault_of || return 0
  uptime_now
  if [ "$F_BOOT" != "$(boot_id)" ] || [ "${UPTIME%.*}" -gt $((F_UNTIL + 10)) ]; then
    (locked fault; undo_fault > /dev/null; leave_no_faults)
    return 0
  fi
  case $F_KIND/$1 in
    */undo-fault | */faults | */ping) ;;
    power-off/look) echo "off"; return 1 ;;
    freeze/look) echo "still"; return 1 ;;
    power-off/*) fail $UNAVAILABLE "it is off" ;;
    freeze/*) fail $UNAVAILABLE "it is frozen" ;;
  esac
}

kill_unit() {  # UNIT: kills its process without systemd
  local pid
  require_name "$1"
  pid=$(main_pid "$1")
  [ "${pid:-0}" != 0 ] || fail $NOT_FOUND "unit $1 does not run"
  kill -KILL "$pid"
}

make_fault() {  # KIND SECONDS UNIT VOLUME CLASS=PATH...; the body describes it. "-": no unit, no volume
  local kind=$1 seconds=$2 unit=$3 volume=$4 pid=0 aside=- mine; shift 4
  [[ $seconds =~ ^[0-9]{1,6}$ ]] || fail $INVALID "$seconds seconds"
  [ ! -e "$FAULT/about" ] || fail $CONFLICT "it has another fault: one at a time on each machine"
  if [ "$unit" != - ]; then
    require_name "$unit"
    pid=$(main_pid "$unit")
    [ "${pid:-0}" != 0 ] || fail $NOT_FOUND "unit $unit does not run"
  fi
  if [ "$volume" != - ]; then
    find_volume "$volume" "$@"
    [ -n "$FOUND" ] || fail $NOT_FOUND "volume $volume does not exist"
    [ "$kind" != lose-data ] || ! mounted "$FOUND" || fail $PRECONDITION "$FOUND is mounted by itself: it cannot be set aside"
    volume=$FOUND aside=${FOUND%/*}/.aside-${FOUND##*/}-$RANDOM
  fi
  case $kind in
    power-off | freeze | cut | deafen) command -v nft > /dev/null || fail $PRECONDITION "it has no nft: install nftables there" ;;
    slow-disk | fill-disk) command -v strace > /dev/null || fail $PRECONDITION "it has no strace: install it there" ;;
    hang-unit | lose-data) ;;
    *) fail $INVALID "fault $kind is unknown" ;;
  esac
  uptime_now
  { mkdir -p "$FAULT" && cp "$BODY" "$FAULT/said"; } || full
  put "$FAULT/about" 600 <<< "$kind $unit $((${UPTIME%.*} + seconds)) $(boot_id) $volume $aside"
  systemd-run --quiet --collect --unit=quarterdeck-undo-fault --on-active="$seconds" --timer-property=AccuracySec=10ms \
    "$SELF" undo-fault || { rm -rf "$FAULT"; fail $UNAVAILABLE "systemd cannot start the timer that would undo it"; }
  # The pipe is closed however the maker ends. A fault that was undone meanwhile, or a later one, is left alone.
  mine=$(< "$FAULT/about")
  (
    exec {LOCK}>&-
    read -r _ < "$SESSION/life"
    [ ! -e "$FAULT/about" ] || [ "$(< "$FAULT/about")" != "$mine" ] || exec "$SELF" undo-fault
  ) > /dev/null 2>&1 &
  case $kind in
    power-off) cut_off; each_unit kill -s KILL; each_unit stop ;;
    freeze) cut_off; each_unit kill -s STOP ;;
    cut) cut_off ;;
    deafen) nft_rules input ;;
    hang-unit) kill -STOP "$pid" ;;
    lose-data)
      # The volume is moved before the program is killed: a restart in between would find its data.
      mv -T "$volume" "$aside" && mkdir -m 700 "$volume" && chown --reference="$aside" "$volume" || full
      [ "$pid" = 0 ] || kill -KILL "$pid" ;;
    slow-disk) trace fsync,fdatasync "delay_enter=$SLOWER" ;;
    fill-disk) trace pwrite64,pwritev,pwritev2,fallocate,ftruncate,truncate error=ENOSPC ;;
  esac || { undo_fault > /dev/null; fail $UNAVAILABLE "it could not be made"; }
}

SLOWER=600000  # microseconds: model/faults.py, SLOW_SYNC

each_unit() {  # runs systemctl with these arguments for each active unit
  local running=()
  mapfile -t running < <(systemctl list-units --plain --no-legend --state=active,activating 'quarterdeck-*.service' | cut -d' ' -f1)
  [ ${#running[@]} -eq 0 ] || systemctl "$@" "${running[@]}"
}

cut_off() { nft_rules input output; }

nft_rules() {  # HOOK...: drops all packets except those of the session that makes the fault
  local hook family=ip from to
  [[ $CLIENT != *:* ]] || family=ip6
  {
    echo "table inet $TABLE {"
    for hook in "$@"; do
      if [ "$hook" = input ]; then from='iif lo' to="$family saddr $CLIENT tcp dport $PORT"
      else from='oif lo' to="$family daddr $CLIENT tcp sport $PORT"; fi
      echo "chain $hook { type filter hook $hook priority -300; $from accept; $to accept; drop; }"
    done
    echo "}"
  } | nft -f -
}

trace() {  # CALLS ANSWER: strace injects this answer into all programs with a volume, also into later ones
  local name pid
  (
    exec {LOCK}>&-
    declare -A traced
    while [ -e "$FAULT/about" ]; do
      for name in "$UNITS"/*/record; do
        name=${name%/record}; name=${name##*/}
        record_of "$name" && [ -n "$R_NEEDS${R_OWNS[*]}" ] || continue
        pid=$(main_pid "$name")
        [ "${pid:-0}" != 0 ] && [ -z "${traced[$pid]:-}" ] || continue
        traced[$pid]=yes
        strace -qq -f -o /dev/null -e "trace=$1" -e "inject=$1:$2" -p "$pid" &
        echo $! >> "$FAULT/tracers"
      done
      sleep 0.1
    done
  ) > /dev/null 2>&1 &
  for name in 1 2 3 4 5 6 7 8 9 10; do [ ! -s "$FAULT/tracers" ] || return 0; sleep 0.1; done
  [ -s "$FAULT/tracers" ]
}

undo_fault() {  # prints what is left of it
  local pid
  fault_of || return 0
  systemctl stop quarterdeck-undo-fault.timer 2> /dev/null
  nft delete table inet $TABLE 2> /dev/null
  case $F_KIND in
    power-off) start_wanted ;;
    freeze) systemctl kill -s CONT 'quarterdeck-*.service' 2> /dev/null ;;
    hang-unit) pid=$(main_pid "$F_UNIT"); [ "${pid:-0}" = 0 ] || kill -CONT "$pid" ;;
    lose-data)
      if [ -d "$F_ASIDE" ]; then
        if rmdir "$F_VOLUME" 2> /dev/null; then mv -T "$F_ASIDE" "$F_VOLUME"; else echo "the former content of volume ${F_VOLUME##*/} is kept in $F_ASIDE"; fi
      fi ;;
    slow-disk | fill-disk)
      while read -r pid; do kill -TERM "$pid"; done < "$FAULT/tracers" 2> /dev/null ;;
  esac
  rm -rf "$FAULT"
}

start_wanted() {
  local each wanted=()
  for each in "$WANTS"/quarterdeck-*.service; do [ ! -L "$each" ] || wanted+=("${each##*/}"); done
  [ ${#wanted[@]} -eq 0 ] || systemctl start --no-block "${wanted[@]}"
}

as_etcd() { setpriv --reuid=quarterdeck-etcd --regid=quarterdeck-etcd --clear-groups "$@"; }  # so that it follows no link of etcd to our files

corrupt() {  # UNIT VOLUME FILE CLASS=PATH...; the body has a text: replaces it in the file by another one of its length
  local unit=$1 volume=$2 file=$3 pid at text other; shift 3
  require_name "$unit"; require_path "/$file"
  [ ! -e "$FAULT/about" ] || fail $CONFLICT "it has another fault: one at a time on each machine"
  find_volume "$volume" "$@"
  file=$FOUND/$file text=$(< "$BODY")
  { [ -n "$FOUND" ] && [ -n "$text" ] && as_etcd grep -qUaF -- "$text" "$file" 2> /dev/null; } ||
    fail $NOT_FOUND "that text is not in ${file#"$FOUND"/}"
  PLANE=- ask_hold "$unit" 10
  unlocked  # the resuming process takes the lock itself
  pid=$(main_pid "$unit")
  [ "${pid:-0}" != 0 ] || fail $NOT_FOUND "unit $unit does not run"
  for at in {1..200}; do
    ! grep -q '^State:.[^Tt]' "/proc/$pid"/task/*/status || { sleep 0.02; continue; }
    break
  done
  ! grep -q '^State:.[^Tt]' "/proc/$pid"/task/*/status || { ask_let_go "$unit"; fail $CONFLICT "it does not stop"; }
  other=$(tr -- '-' '\001' <<< "$text" | tr -c '\001\n' '-' | tr '\001' '+')
  while IFS=: read -r at _; do
    printf '%s' "$other" | as_etcd dd of="$file" bs=64k seek="$at" oflag=seek_bytes conv=notrunc,fsync 2> /dev/null ||
      { ask_let_go "$unit"; fail $UNAVAILABLE "$file could not be written"; }
  done < <(as_etcd grep -obUaF -- "$text" "$file")
  ask_let_go "$unit"
}
