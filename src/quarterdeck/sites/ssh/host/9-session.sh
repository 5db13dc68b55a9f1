put_here() {  # $1: MACHINES: prints the units on this host: by folder, unit file, or the link that starts them at boot
  local path name line
  for path in "$UNITS"/*/ "$SYSTEMD"/quarterdeck-*.service "$WANTS"/quarterdeck-*.service; do
    path=${path%/} name=${path##*/}
    name=${name#quarterdeck-} name=${name%.service}
    case $path in
      "$UNITS"/*) [ -d "$path" ] || continue; name=${path##*/} ;;
      "$SYSTEMD"/*.target.wants/*) [ -L "$path" ] && [ ! -e "$path" ] || continue ;;
      *) [ -f "$path" ] && read -r line < "$path" && [ "$line" = "$WRITTEN" ] || continue ;;
    esac
    record_of "$name" || [ ! -e "$UNITS/$name/machine" ] || read -r R_MACHINE < "$UNITS/$name/machine"
    [ -n "$R_MACHINE" ] && [[ ,$1, != *,$R_MACHINE,* ]] || echo "$name"
  done | sort -u
}

remove_all_units() {  # $1: MACHINES: removes all units, then checks that none is left
  local names name left=''
  mapfile -t names < <(put_here "$1")
  for name in ${names[@]+"${names[@]}"}; do remove_unit "$name"; done
  for name in ${names[@]+"${names[@]}"}; do
    case $(active_state "$name") in inactive | failed | '') ;; *) left+=" quarterdeck-$name.service" ;; esac
  done
  for name in $(put_here "$1"); do left+=" quarterdeck-$name.service"; done
  [ -z "$left" ] || fail $UNAVAILABLE "units are still there:$left; stop them with 'systemctl disable --now', and ask again"
}

ask_destroy() {  # MACHINES (with commas) CLASS=PATH...: removes all units of these, and all volumes of these classes
  local machines=$1 name each; shift
  [[ $machines =~ ^[A-Za-z0-9._,-]+$ ]] || fail $INVALID "$machines are no machines"
  locked
  for each in "$LIB"/locks/plane*; do [ "${each##*/}" = "plane$PLANE" ] || locked "${each##*/}"; done  # waits for starts in progress
  remove_all_units "$machines"
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
  # The last plane is gone: remove the rest. Sessions of other managers end with that.
  [ -n "$(ls -A "$UNITS")" ] || { : > "$SESSION/cleared" && rm -rf "$LIB/programs"/* "$LIB/programs"/.part-* && rm -f "$LIB/owner"; }
}

# The session.

prepare() {
  mkdir -p "$RUN" && chmod 755 "$RUN"
  mkdir -p "$LIB"/{units,volumes,programs,fences,classes,locks,tmp} || return 1
  chmod 755 "$LIB" "$LIB/programs" && chmod 711 "$UNITS" "$LIB/volumes"
  local each lines=()
  for each in $ACCOUNTS; do
    getent passwd "$each" > /dev/null || lines+=("u $each - \"quarterdeck\" /nonexistent")
  done
  [ ${#lines[@]} -eq 0 ] || printf '%s\n' "${lines[@]}" | systemd-sysusers - || return 1
  label "$SELF"
  forget_faults
  find "$LIB/tmp" -mindepth 1 -maxdepth 1 -mmin +60 -exec rm -rf {} +
  while read -r each; do  # folders of sessions that were killed
    flock -n "$each" true && rm -rf "$each"
  done < <(find "$RUN" -maxdepth 1 -name 'session.*' -mmin +1)
}

PIECE=3500  # bytes: a write of this size to a pipe is atomic (pipe(7): PIPE_BUF)

answer() {  # ID EXPIRES VERB ARGUMENTS: carries a request out, and replies with its result
  local reply code errors=$SESSION/errors-$1
  ID=$1 BODY=$SESSION/in-$1
  exec {LIFE_W}>&-
  [ "$3" != look ] || errors=$SESSION/errors  # shared by all looks, which start no program
  reply=$( (carry_out "$@") 2> "$errors"; printf '\n%s' $?)
  code=${reply##*$'\n'} reply=${reply%$'\n'*}
  [ "$code" = 0 ] || reply=$(< "$errors")
  [ "$3" = look ] || rm -f "$errors" "$BODY"
  uptime_now
  # One line for each piece: bash writes a line at a time, and other answers may come in between.
  reply=${reply//\\/\\\\} reply=${reply//$'\n'/\\n}
  while [ ${#reply} -gt $PIECE ]; do
    printf '%s - %s %s\n' "$ID" "$UPTIME" "${reply:0:PIECE}" >&"$REPLIES"
    reply=${reply:PIECE}
  done
  printf '%s %s %s %s\n' "$ID" "$code" "$UPTIME" "$reply" >&"$REPLIES"
}

carry_out() {  # the arguments of ``answer``
  uptime_now
  # A host that was suspended must not carry out an old request.
  [ "${UPTIME%.*}" -lt "$2" ] || fail $LATE "it comes too late"
  shift 2
  exec < /dev/null {REPLIES}>&-
  suffers "$1" || exit 0
  "ask_${1//-/_}" "${@:2}"
}

call_serve() {  # DIGEST OWNER, and SSH_CONNECTION of sshd: the addresses and ports of the client and of this host
  local digest size id expires words why OWNED=''
  CLIENT=${3:-127.0.0.1} PORT=${6:-22}
  [[ $CLIENT =~ ^[0-9a-fA-F.:]+$ && $PORT =~ ^[0-9]+$ ]] || exit $INVALID
  digest=$(sha256sum < "$SELF"); digest=${digest%% *}
  if [ "$digest" != "$1" ]; then echo "other $PROTOCOL $digest"; exit 0; fi
  [ "$2" = - ] || (require_name "$2") || exit $INVALID
  [ -d /run/systemd/system ] || { echo "no-systemd"; exit 0; }
  why=$(prepare 2>&1) || { echo "unprepared ${why//$'\n'/; }"; exit 0; }
  if [ "$2" != - ]; then  # a caller that only looks does not become the owner
    [ -e "$LIB/owner" ] || put "$LIB/owner" 644 <<< "$2"
    if [ "$(< "$LIB/owner")" != "$2" ]; then echo "owned $(< "$LIB/owner")"; exit 0; fi
    exec {OWNED}< "$LIB/owner"
  fi
  SESSION=$(mktemp -d "$RUN/session.XXXXXX") || exit 1
  trap 'rm -rf "$SESSION"' EXIT
  exec {LIVES}< "$SESSION" && flock -n "$LIVES"
  mkfifo "$SESSION/life"
  exec {LIFE_W}<> "$SESSION/life"
  exec {REPLIES}>&1 > /dev/null
  uptime_now
  printf 'quarterdeck %s %s %s\n' "$PROTOCOL" "$UPTIME" "$(command -v zstd > /dev/null && echo zstd || echo gzip)" >&"$REPLIES"
  while read -r -t $SILENCE id expires PLANE TOKEN size words; do
    # The state of a host that was cleared is gone: the caller must connect again, and read it.
    [ -z "$OWNED" ] || [ -e "$SESSION/cleared" ] || [ "$LIB/owner" -ef "/dev/fd/$OWNED" ] || break
    [[ $id =~ ^[0-9]+$ && $expires =~ ^[0-9]+$ && $size =~ ^[0-9]+$ && $TOKEN =~ ^[0-9]+$ && $words =~ ^[a-z][a-z-]*( |$) ]] || break
    [ "$PLANE" = - ] || (require_name "$PLANE") || break
    # A request with an incomplete body is not carried out.
    [ "$size" = 0 ] || { head -c "$size" > "$SESSION/in-$id" && [ "$(stat -c %s "$SESSION/in-$id")" = "$size" ]; } || break
    set -f
    # shellcheck disable=SC2086 # it is split into words on purpose, and globs are off
    set -- $words
    set +f
    [ "$(type -t "ask_${1//-/_}")" = function ] || break
    answer "$id" "$expires" "$@" &
  done
}

[ $# -gt 0 ] || fail $INVALID "host serve|starting|ended|let-go|undo-fault|allow|vrrp"
verb=$1; shift
case $verb in
  serve | starting | ended | let-go | undo-fault | allow | vrrp) "call_${verb//-/_}" "$@" ;;
  *) fail $INVALID "there is no $verb" ;;
esac
