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

class_root() {  # $1: CLASS=PATH, or CLASS=@PATH where each volume is mounted by itself: sets CLASS, ROOT and MOUNTS
  CLASS=${1%%=*} ROOT=${1#*=} MOUNTS=no
  require_name "$CLASS"
  if [[ $ROOT == @* ]]; then MOUNTS=yes ROOT=${ROOT#@}; fi
  [ -n "$ROOT" ] || { ROOT=$LIB/volumes/$CLASS; return 0; }
  require_path "$ROOT"
  allowed_paths | grep -qxF -- "$ROOT" || fail $PRECONDITION "not-allowed $ROOT"
}

is_away() {  # a disk that is not mounted is not lost data, but not known
  [ $MOUNTS = no ] && [ "$ROOT" != "$LIB/volumes/$CLASS" ] && [ -e "$LIB/classes/$CLASS" ] && [ ! -e "$ROOT/.quarterdeck" ]
}

require_there() { ! is_away || fail $UNAVAILABLE "the disk of storage class $CLASS is not mounted at $ROOT"; }

look_volumes() {
  local below=$1 each volume name arriving entry; shift
  [ "$below" = - ] || require_path "/$below"
  shopt -s nullglob dotglob
  for each in "$@"; do
    class_root "$each"
    if is_away; then printf 'away\t%s\n' "$CLASS"; continue; fi
    if [ $MOUNTS = yes ]; then look_attached "$below"; continue; fi
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
