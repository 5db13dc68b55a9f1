# The commands that systemd calls.

call_starting() {
  require_name "$1"
  record_of "$1" || { echo "cannot start: it has no record" >&2; exit 1; }
  local why fresh=again run=$RUN/units/$1 starts=0
  mkdir -p "$run"
  [ ! -e "$run/fresh" ] || fresh=fresh
  why=$(refusal "$1" "$fresh")
  ! is_vrrp "$1" || why=$(take_routing "$1") || why="its configuration cannot be put in its place"
  if [ -n "$why" ]; then
    printf '%s' "$why" > "$run/refused"
    echo "cannot start: $why" >&2
    exit 1
  fi
  give "$R_ACCOUNT" ${R_OWNS[@]+"${R_OWNS[@]}"} || exit 1
  seat_files "$1" "$R_ACCOUNT" || exit 1
  rm -f "$run/refused"
  uptime_now
  echo "${UPTIME%.*}" > "$run/began"
  [ ! -e "$run/starts" ] || read -r starts < "$run/starts"
  echo $((starts + 1)) > "$run/starts"
  echo "quarterdeck: starting"  # components/endings.py reads these lines
}

call_ended() {
  require_name "$1"
  record_of "$1" || exit 0
  local run=$RUN/units/$1
  if [ -n "$R_NEEDS" ] && there "$R_NEEDS" > /dev/null; then note_data "$1"; fi
  [ -d "$run" ] && [ ! -e "$run/refused" ] || exit 0
  use_up_fresh "$1"
  case ${EXIT_CODE:-} in
    exited) echo "$EXIT_STATUS" > "$run/exit"; echo "quarterdeck: ended: exit code $EXIT_STATUS" ;;
    killed | dumped)
      echo "-$(kill -l "$EXIT_STATUS")" > "$run/exit"
      echo "quarterdeck: ended: killed by SIG$EXIT_STATUS" ;;
  esac
}

BEGINS_WITHIN=30  # seconds

use_up_fresh() {  # $1: unit. A start that ended soon and before there was data failed: the next one may begin without data too
  local began=0 run=$RUN/units/$1
  [ -e "$run/fresh" ] || return 0
  [ ! -e "$run/began" ] || read -r began < "$run/began"
  uptime_now
  [ ! -e "$UNITS/$1/had-data" ] && [ $((${UPTIME%.*} - began)) -lt $BEGINS_WITHIN ] || rm -f "$run/fresh"
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
      list addresses "$each"
      continue
    fi
    require_path "$each"
    [[ ! $each =~ ^/(etc|usr|bin|sbin|lib|lib64|boot|dev|proc|sys|run|root|home)(/|$) ]] && [ "$each" != /var ] &&
      [[ ! $LIB/ == "$each"/* ]] || fail $INVALID "$each is no folder for volumes"
    list paths "$each"
  done
}

ask_allowed() {  # PATH or ADDRESS...: prints those that root has not allowed
  local each file
  for each in "$@"; do
    if [[ $each =~ ^$IPV4$ ]]; then file=addresses; else file=paths; fi
    is_listed "$file" "$each" || printf '%s\n' "$each"
  done
}
